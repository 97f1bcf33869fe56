#include "prompt/prompt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "problem/python_tokens.h"
#include "problem/text_file.h"
#include "prompt/fence.h"
#include "prompt/texts.h"

namespace kb::prompt {
namespace {

constexpr std::size_t kFewShots = 3;

/// The keys of the problem's table SIZES; none when there is no such table that can be read without
/// Python.
std::vector<std::string> sizes_of(std::string_view source) {
  std::vector<std::string> sizes;
  problem::PythonTokenizer tokens(source);
  problem::Token before;
  int depth = -1;  // of brackets within the table; -1: not in it
  bool named = false;
  while (const auto token = tokens.next()) {
    const bool op = token->kind == problem::TokenKind::op;
    if (depth < 0) {
      if (op && token->text == "{" && named && before.text == "=") depth = 1;
      if (token->kind == problem::TokenKind::newline) named = false;
      if (token->kind == problem::TokenKind::name && token->text == "SIZES") named = true;
    } else if (op && (token->text == "{" || token->text == "(" || token->text == "[")) {
      ++depth;
    } else if (op && (token->text == "}" || token->text == ")" || token->text == "]")) {
      if (--depth == 0) return sizes;
    } else if (op && token->text == ":" && depth == 1 &&
               before.kind == problem::TokenKind::string && before.text.size() >= 2) {
      sizes.emplace_back(before.text.substr(1, before.text.size() - 2));
    }
    before = *token;
  }
  return sizes;
}

std::string as_list(std::string_view lines) {
  std::string list;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    if (!list.empty()) list += '\n';
    list.append("- ").append(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return list;
}

/// "Ada Lovelace" → "ada_lovelace"
std::string key_of(std::string_view architecture) {
  std::string key;
  for (const char c : architecture)
    key += c == ' ' ? '_' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return key;
}

std::string value_or_nothing(const Names& names, std::string_view key) {
  const auto found = names.find(key);
  return found == names.end() ? std::string() : found->second;
}

}  // namespace

std::string_view name_of(Shots shots) {
  switch (shots) {
    case Shots::zero: return "zero";
    case Shots::one: return "one";
    case Shots::few: return "few";
  }
  return "zero";
}

std::optional<Shots> parse_shots(std::string_view text) {
  for (const auto shots : {Shots::zero, Shots::one, Shots::few})
    if (name_of(shots) == text) return shots;
  return std::nullopt;
}

std::size_t estimate_tokens(std::string_view text) {
  // In tenths of a token. A word takes one for its first letters and one for each few more; a blank
  // before a word belongs to it, a run of blanks (indentation) is one.
  constexpr std::size_t kToken = 10;
  std::size_t tenths = 0;
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           static_cast<unsigned char>(c) >= 0x80;
  };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (is_letter(text[at])) {
      while (at < text.size() && is_letter(text[at])) ++at;
      tenths += kToken + (at - begin > 6 ? (at - begin - 6) * 2 : 0);
    } else if (is_digit(text[at])) {
      while (at < text.size() && is_digit(text[at])) ++at;
      tenths += (at - begin) * 8;
    } else if (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r') {
      while (at < text.size() &&
             (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r'))
        ++at;
      if (at - begin > 1 || text[begin] != ' ') tenths += kToken;
    } else {
      ++at;
      tenths += 7;  // signs often go in pairs
    }
  }
  return (tenths + kToken - 1) / kToken;
}

Library::Library(std::unique_ptr<Texts> texts) : texts_(std::move(texts)) {}
Library::~Library() = default;
Library::Library(Library&&) noexcept = default;
Library& Library::operator=(Library&&) noexcept = default;

std::expected<Library, std::string> Library::load(const std::filesystem::path& root,
                                                  const std::filesystem::path& user_file) {
  auto texts = std::make_unique<Texts>();
  auto header = problem::read_text_file(root / "include" / "kernelbench" / "kernel.h");
  if (!header) return std::unexpected(header.error());
  texts->kernel_header = std::move(*header);
  const auto problems = root / "problems";
  if (auto done = texts->read(root / "prompts" / "kernelbench.toml", root, problems); !done)
    return std::unexpected(done.error());
  if (!user_file.empty()) {
    std::error_code error;
    const auto folder = std::filesystem::absolute(user_file, error).parent_path();
    if (auto done = texts->read(user_file, folder, problems); !done)
      return std::unexpected(done.error());
  }
  return Library(std::move(texts));
}

const std::vector<Backend>& Library::backends() const {
  return texts_->backends;
}

const Backend* Library::backend(std::string_view name) const {
  const auto found =
      std::ranges::find(texts_->backends, name, [](const Backend& one) { return one.name; });
  return found == texts_->backends.end() ? nullptr : &*found;
}

std::expected<Names, std::string> Library::general(const Request& request) const {
  const Backend* chosen = backend(request.backend);
  if (!chosen) {
    std::vector<std::string_view> names;
    for (const auto& one : texts_->backends) names.push_back(one.name);
    return std::unexpected(fmt::format("there is no backend '{}'; the backends are {}",
                                       problem::printable(request.backend),
                                       fmt::join(names, ", ")));
  }
  if (!texts_->precision.contains(request.precision))
    return std::unexpected(fmt::format("there is no precision '{}'; it is fp32, fp16 or bf16",
                                       problem::printable(request.precision)));
  const bool native = chosen->language != problem::Backend::python;
  return Names{
      {"backend", chosen->name},
      {"title", chosen->title},
      {"label", texts_->of_backend.at(chosen->name).label},
      {"entry_point", native ? "`kb_run`" : "`class ModelNew(nn.Module)`"},
      {"precision_name", request.precision},
      {"size_name", request.size},
      {"gpu_name", request.gpu ? std::string(request.gpu->name) : std::string()},
      {"gpu_architecture", request.gpu ? std::string(request.gpu->architecture) : std::string()},
      {"kernel_header", fenced("c", texts_->kernel_header)}};
}

std::expected<Prompt, std::string> Library::render(const problem::Problem& problem,
                                                   const Request& request) const {
  const auto general_names = general(request);
  if (!general_names) return std::unexpected(general_names.error());
  const Names& general = *general_names;
  const Backend& chosen = *backend(request.backend);
  if (request.with_hardware && !request.gpu)
    return std::unexpected("there is no hardware to describe: name a GPU");
  if (request.gpu && chosen.language == problem::Backend::cpp)
    return std::unexpected(
        fmt::format("backend '{}' is for the CPU: it takes no GPU", chosen.name));
  if (request.size != "public") {
    const auto sizes = sizes_of(problem.source);
    if (std::ranges::find(sizes, request.size) == sizes.end())
      return std::unexpected(fmt::format(
          "{} has no size '{}'; it has public{}{}", problem::printable(problem.label),
          problem::printable(request.size), sizes.empty() ? "" : ", ", fmt::join(sizes, ", ")));
  }

  const BackendTexts& texts = texts_->of_backend.at(chosen.name);
  const auto text = [&](std::string_view name) { return value_or_nothing(texts_->text, name); };
  const auto with = [&](std::initializer_list<Names::value_type> more) {
    Names names = general;
    names.insert(more.begin(), more.end());
    return names;
  };

  Prompt prompt;
  const std::size_t most = request.shots == Shots::zero  ? 0
                           : request.shots == Shots::one ? 1
                                                         : kFewShots;
  std::vector<std::string> examples;
  for (const auto& example : texts.examples) {
    if (examples.size() == most) break;
    // Its kernel would be the answer.
    if (example.problem.hash == problem.hash) continue;
    examples.push_back(
        expand(text("example"), with({{"number", std::to_string(examples.size() + 1)},
                                      {"problem", fenced("python", example.problem.source)},
                                      {"code", fenced(texts.label, example.kernel)}})));
  }
  prompt.examples = examples.size();
  std::string hardware;
  if (request.gpu && request.with_hardware) {
    const std::string maker = request.gpu->vendor == card::Vendor::amd ? "amd" : "nvidia";
    std::string practice = expand(value_or_nothing(texts_->card_practice, maker), general);
    const auto own = value_or_nothing(texts_->card_practice, key_of(request.gpu->architecture));
    if (!own.empty()) practice += "\n" + expand(own, general);
    hardware = expand(text("hardware"),
                      with({{"card", as_list(card::describe(*request.gpu))},
                            {"terms", expand(value_or_nothing(texts_->terms, maker), general)},
                            {"card_practice", practice}}));
  } else if (request.gpu) {
    hardware = expand(text("device"), general);
  }

  prompt.system = expand(text("system"), general) + "\n";
  prompt.user =
      expand(text("task"),
             with({{"problem", fenced("python", problem.source)},
                   {"interface", expand(texts.interface, general)},
                   {"practice", expand(texts.practice, general)},
                   {"precision", expand(texts_->precision.at(request.precision), general)},
                   {"size", request.size == "public" ? "" : expand(text("size"), general)},
                   {"hardware", hardware},
                   {"examples",
                    examples.empty()
                        ? ""
                        : expand(text("examples"),
                                 with({{"count_of_examples",
                                        examples.size() == 1 ? "An example" : "Examples"},
                                       {"list_of_examples",
                                        fmt::format("{}", fmt::join(examples, "\n\n"))}}))}})) +
      "\n";
  prompt.estimated_tokens = estimate_tokens(prompt.system) + estimate_tokens(prompt.user);
  return prompt;
}

}  // namespace kb::prompt

#include "prompt/texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "problem/problem.h"
#include "problem/text_file.h"
#include "problem/toml_text.h"

namespace kb::prompt {
namespace {

using Result = std::expected<void, std::string>;
using problem::entries_of;
using problem::line_of;
using NameSet = std::set<std::string, std::less<>>;

const NameSet& general_names() {
  static const NameSet names = {"backend",        "title",     "label",    "entry_point",
                                "precision_name", "size_name", "gpu_name", "gpu_architecture",
                                "kernel_header"};
  return names;
}

/// What each text of [text] may use beside the general names. Their keys are the texts that exist.
const std::map<std::string, NameSet, std::less<>>& names_of_text() {
  static const std::map<std::string, NameSet, std::less<>> names = {
      {"system", {}},
      {"task", {"problem", "interface", "examples", "size", "precision", "hardware", "practice"}},
      {"example", {"number", "problem", "code"}},
      {"examples", {"count_of_examples", "list_of_examples"}},
      {"hardware", {"card", "terms", "card_practice"}},
      {"device", {}},
      {"size", {}},
      {"refine", {"verdict", "details", "speed", "profile", "source", "advice"}},
      {"source", {"code"}}};
  return names;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

std::optional<problem::Backend> language_of(std::string_view name) {
  for (const auto one : {problem::Backend::cpp, problem::Backend::cuda_cpp, problem::Backend::hip,
                         problem::Backend::python})
    if (problem::name_of(one) == name) return one;
  return std::nullopt;
}

std::string suffix_of(problem::Backend language) {
  switch (language) {
    case problem::Backend::cpp: return ".cpp";
    case problem::Backend::cuda_cpp: return ".cu";
    case problem::Backend::hip: return ".hip";
    case problem::Backend::python: return ".py";
  }
  return ".py";
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

/// One file on its way into the texts.
class Reader {
 public:
  Reader(const std::filesystem::path& file, std::string_view source,
         const std::filesystem::path& examples_root, const std::filesystem::path& problems_root,
         Library::Texts& texts)
      : shown_(problem::printable(file.string())),
        source_(source),
        examples_root_(examples_root),
        problems_root_(problems_root),
        texts_(texts) {}

  Result read(const toml::value& root) {
    for (const auto& [name, table, line] : entries_of(root)) {
      if (!table->is_table()) return fail(line, fmt::format("{} is not a table", shown(name)));
      Result done;
      if (name == "text") {
        done = read_texts(*table);
      } else if (name == "precision") {
        done = read_table(*table, name, texts_.precision, kPrecisions);
      } else if (name == "terms") {
        done = read_table(*table, name, texts_.terms, kMakers);
      } else if (name == "card_practice") {
        done = read_table(*table, name, texts_.card_practice, {});
      } else if (name == "verdict") {
        done = read_table(*table, name, texts_.verdict, {});
      } else if (name == "flag") {
        done = read_table(*table, name, texts_.flag, {});
      } else if (name == "backend") {
        done = read_backends(*table);
      } else {
        done =
            fail(line, fmt::format("there is no table [{}]; the tables are text, precision, terms, "
                                   "card_practice, verdict, flag and backend.NAME",
                                   shown(name)));
      }
      if (!done) return done;
    }
    return {};
  }

 private:
  static constexpr std::array<std::string_view, 3> kPrecisions = {"fp32", "fp16", "bf16"};
  static constexpr std::array<std::string_view, 2> kMakers = {"nvidia", "amd"};

  std::unexpected<std::string> fail(std::size_t line, std::string_view what) const {
    return std::unexpected(fmt::format("{}:{}: {}", shown_, line, what));
  }
  static std::string shown(std::string_view text) { return problem::printable(text); }

  /// The line that the text of a string which begins on `line` begins on: the next one, where
  /// three quotes end the line.
  std::size_t first_line_of_text(std::size_t line) const {
    std::string_view rest = source_;
    for (std::size_t i = 1; i < line; ++i)
      rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
    const std::string_view first = trimmed(rest.substr(0, rest.find('\n')));
    return first.ends_with("\"\"\"") || first.ends_with("'''") ? line + 1 : line;
  }

  /// The text of `value`, whose names must be general ones or in `more`.
  std::expected<std::string, std::string> text_of(std::string_view key, const toml::value& value,
                                                  const NameSet& more = {}) const {
    const auto* text = problem::string_in(&value);
    if (!text) return fail(line_of(value), fmt::format("{} is not a string", shown(key)));
    for (const auto& place : placeholders_of(*text)) {
      if (general_names().contains(place.name) || more.contains(place.name)) continue;
      NameSet known = general_names();
      known.insert(more.begin(), more.end());
      return fail(first_line_of_text(line_of(value)) + place.line,
                  fmt::format("{{{{{}}}}} stands for nothing here; {} may use {} (\\{{{{ is text)",
                              place.name, shown(key), fmt::join(known, ", ")));
    }
    return std::string(trimmed(*text));
  }

  Result read_texts(const toml::value& table) {
    for (const auto& [key, value, line] : entries_of(table)) {
      const auto known = names_of_text().find(key);
      if (known == names_of_text().end()) {
        NameSet texts;
        for (const auto& [name, names] : names_of_text()) texts.insert(name);
        return fail(line, fmt::format("there is no text {}; the texts are {}", shown(key),
                                      fmt::join(texts, ", ")));
      }
      auto text = text_of(key, *value, known->second);
      if (!text) return std::unexpected(text.error());
      texts_.text[key] = std::move(*text);
    }
    return {};
  }

  /// `allowed`: the keys that may be there; empty: any.
  Result read_table(const toml::value& table, std::string_view name, Names& into,
                    std::span<const std::string_view> allowed) {
    for (const auto& [key, value, line] : entries_of(table)) {
      if (!allowed.empty() && std::ranges::find(allowed, key) == allowed.end())
        return fail(line, fmt::format("[{}] has no {}; it has {}", name, shown(key),
                                      fmt::join(allowed, ", ")));
      auto text = text_of(key, *value);
      if (!text) return std::unexpected(text.error());
      into[key] = std::move(*text);
    }
    return {};
  }

  Result read_backends(const toml::value& table) {
    for (const auto& [name, backend, line] : entries_of(table)) {
      if (!backend->is_table() || !is_name(name))
        return fail(line,
                    fmt::format("backend.{} is not a table whose name is made of a-z, 0-9, - and _",
                                shown(name)));
      if (auto done = read_backend(name, line, *backend); !done) return done;
    }
    return {};
  }

  Result read_backend(const std::string& name, std::size_t line, const toml::value& table) {
    const bool is_new = !texts_.of_backend.contains(name);
    BackendTexts& texts = texts_.of_backend[name];
    if (is_new) {
      for (const auto* needed : {"language", "title", "label", "interface"})
        if (!problem::member_of(table, needed))
          return fail(line, fmt::format("the new backend {} needs `{}`", name, needed));
      texts_.backends.push_back({.name = name});
    }
    Backend& backend =
        *std::ranges::find(texts_.backends, name, [](const Backend& one) { return one.name; });
    for (const auto& [key, value, at] : entries_of(table)) {
      if (key == "examples") {
        if (auto done = read_examples(*value, texts.examples); !done) return done;
        continue;
      }
      const std::map<std::string_view, std::string*> fields = {{"title", &texts.title},
                                                               {"label", &texts.label},
                                                               {"interface", &texts.interface},
                                                               {"practice", &texts.practice}};
      const auto field = fields.find(key);
      if (field == fields.end() && key != "language")
        return fail(at, fmt::format("a backend has no `{}`; it has language, title, label, "
                                    "interface, practice and examples",
                                    shown(key)));
      auto text = text_of(key, *value);
      if (!text) return std::unexpected(text.error());
      if (field != fields.end()) {
        *field->second = std::move(*text);
        continue;
      }
      const auto language = language_of(*text);
      if (!language)
        return fail(at, fmt::format("there is no language {}; it is cpp, cuda_cpp, hip or python",
                                    shown(*text)));
      backend.language = *language;
      backend.suffix = suffix_of(*language);
    }
    backend.title = texts.title;
    backend.label = texts.label;
    return {};
  }

  Result read_examples(const toml::value& value, std::vector<Example>& into) {
    if (!value.is_array()) return fail(line_of(value), "examples is not a list");
    into.clear();
    for (const auto& item : value.as_array()) {
      const std::size_t line = line_of(item);
      const auto* problem_text = problem::string_in(problem::member_of(item, "problem"));
      const auto* kernel_path = problem::string_in(problem::member_of(item, "kernel"));
      if (!problem_text || !kernel_path || item.as_table().size() != 2)
        return fail(line, "an example is { problem = \"…\", kernel = \"…\" } with two strings");
      auto problem = load_problem(*problem_text);
      if (!problem) return fail(line, problem.error());
      auto kernel = problem::read_text_file(examples_root_ / *kernel_path);
      if (!kernel) return fail(line, kernel.error());
      into.push_back({std::move(*problem), std::move(*kernel)});
    }
    return {};
  }

  std::expected<problem::Problem, std::string> load_problem(const std::string& text) const {
    if (const auto id = problem::parse_id(text)) {
      const auto catalog = problem::Catalog::open(problems_root_);
      if (!catalog) return std::unexpected(catalog.error());
      return catalog->load(*id);
    }
    return problem::load_file(examples_root_ / text);
  }

  std::string shown_;
  std::string_view source_;
  std::filesystem::path examples_root_, problems_root_;
  Library::Texts& texts_;
};

}  // namespace

Result Library::Texts::read(const std::filesystem::path& file,
                            const std::filesystem::path& examples_root,
                            const std::filesystem::path& problems_root) {
  const auto source = problem::read_text_file(file);
  if (!source) return std::unexpected(source.error());
  const auto root = problem::parse_toml(*source);
  if (!root)
    return std::unexpected(fmt::format("{}:{}: not TOML: {}", problem::printable(file.string()),
                                       root.error().line, root.error().what));
  return Reader(file, *source, examples_root, problems_root, *this).read(*root);
}

}  // namespace kb::prompt

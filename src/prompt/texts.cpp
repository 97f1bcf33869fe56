#include "prompt/texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "problem/problem.h"
#include "problem/text_file.h"

namespace kb::prompt {
namespace {

using Result = std::expected<void, std::string>;
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
      {"refine", {"verdict", "details", "speed", "profile", "code", "advice"}}};
  return names;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

std::optional<problem::Backend> language_of(std::string_view name) {
  for (const auto one :
       {problem::Backend::cpp, problem::Backend::cuda_cpp, problem::Backend::python})
    if (problem::name_of(one) == name) return one;
  return std::nullopt;
}

std::string suffix_of(problem::Backend language) {
  switch (language) {
    case problem::Backend::cpp: return ".cpp";
    case problem::Backend::cuda_cpp: return ".cu";
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
  Reader(const std::filesystem::path& file, const std::filesystem::path& examples_root,
         const std::filesystem::path& problems_root, Library::Texts& texts)
      : shown_(problem::printable(file.string())),
        examples_root_(examples_root),
        problems_root_(problems_root),
        texts_(texts) {}

  Result read(const toml::table& root) {
    for (const auto& [key, node] : root) {
      const std::string_view name = key.str();
      const toml::table* table = node.as_table();
      if (!table)
        return fail(key.source().begin.line, fmt::format("{} is not a table", shown(name)));
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
        done = fail(key.source().begin.line,
                    fmt::format("there is no table [{}]; the tables are text, precision, terms, "
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

  /// The text of `node`, whose names must be general ones or in `more`.
  std::expected<std::string, std::string> text_of(std::string_view key, const toml::node& node,
                                                  const NameSet& more = {}) const {
    const auto* value = node.as_string();
    if (!value)
      return fail(node.source().begin.line, fmt::format("{} is not a string", shown(key)));
    const std::string& text = value->get();
    for (const auto& place : placeholders_of(text)) {
      if (general_names().contains(place.name) || more.contains(place.name)) continue;
      NameSet known = general_names();
      known.insert(more.begin(), more.end());
      // A text that spans lines ends on the line of its closing quotes.
      const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n'));
      const std::size_t last = node.source().end.line;
      const std::size_t line = last > lines ? last - lines + place.line : node.source().begin.line;
      return fail(line, fmt::format("{{{{{}}}}} stands for nothing here; {} may use {} (\\{{{{ is "
                                    "text)",
                                    place.name, shown(key), fmt::join(known, ", ")));
    }
    return std::string(trimmed(text));
  }

  Result read_texts(const toml::table& table) {
    for (const auto& [key, node] : table) {
      const auto known = names_of_text().find(key.str());
      if (known == names_of_text().end()) {
        NameSet texts;
        for (const auto& [name, names] : names_of_text()) texts.insert(name);
        return fail(key.source().begin.line, fmt::format("there is no text {}; the texts are {}",
                                                         shown(key.str()), fmt::join(texts, ", ")));
      }
      auto text = text_of(key.str(), node, known->second);
      if (!text) return std::unexpected(text.error());
      texts_.text[std::string(key.str())] = std::move(*text);
    }
    return {};
  }

  /// `allowed`: the keys that may be there; empty: any.
  Result read_table(const toml::table& table, std::string_view name, Names& into,
                    std::span<const std::string_view> allowed) {
    for (const auto& [key, node] : table) {
      if (!allowed.empty() && std::ranges::find(allowed, key.str()) == allowed.end())
        return fail(key.source().begin.line,
                    fmt::format("[{}] has no {}; it has {}", name, shown(key.str()),
                                fmt::join(allowed, ", ")));
      auto text = text_of(key.str(), node);
      if (!text) return std::unexpected(text.error());
      into[std::string(key.str())] = std::move(*text);
    }
    return {};
  }

  Result read_backends(const toml::table& table) {
    // The library sorts a table by its names; people mean the order in which they wrote it.
    std::vector<std::pair<const toml::key*, const toml::node*>> entries;
    for (const auto& [key, node] : table) entries.emplace_back(&key, &node);
    std::ranges::sort(entries, {}, [](const auto& entry) {
      return std::pair(entry.first->source().begin.line, entry.first->source().begin.column);
    });
    for (const auto& [key, node] : entries) {
      const toml::table* backend = node->as_table();
      const std::size_t line = key->source().begin.line;
      if (!backend || !is_name(key->str()))
        return fail(line,
                    fmt::format("backend.{} is not a table whose name is made of a-z, 0-9, - and _",
                                shown(key->str())));
      if (auto done = read_backend(std::string(key->str()), line, *backend); !done) return done;
    }
    return {};
  }

  Result read_backend(const std::string& name, std::size_t line, const toml::table& table) {
    const bool is_new = !texts_.of_backend.contains(name);
    BackendTexts& texts = texts_.of_backend[name];
    if (is_new) {
      for (const auto* needed : {"language", "title", "label", "interface"})
        if (!table.contains(needed))
          return fail(line, fmt::format("the new backend {} needs `{}`", name, needed));
      texts_.backends.push_back({.name = name});
    }
    Backend& backend =
        *std::ranges::find(texts_.backends, name, [](const Backend& one) { return one.name; });
    for (const auto& [key, node] : table) {
      if (key.str() == "examples") {
        if (auto done = read_examples(node, texts.examples); !done) return done;
        continue;
      }
      const std::map<std::string_view, std::string*> fields = {{"title", &texts.title},
                                                               {"label", &texts.label},
                                                               {"interface", &texts.interface},
                                                               {"practice", &texts.practice}};
      const auto field = fields.find(key.str());
      if (field == fields.end() && key.str() != "language")
        return fail(key.source().begin.line,
                    fmt::format("a backend has no `{}`; it has language, title, label, interface, "
                                "practice and examples",
                                shown(key.str())));
      auto text = text_of(key.str(), node);
      if (!text) return std::unexpected(text.error());
      if (field != fields.end()) {
        *field->second = std::move(*text);
        continue;
      }
      const auto language = language_of(*text);
      if (!language)
        return fail(
            node.source().begin.line,
            fmt::format("there is no language {}; it is cpp, cuda_cpp or python", shown(*text)));
      backend.language = *language;
      backend.suffix = suffix_of(*language);
    }
    backend.title = texts.title;
    return {};
  }

  Result read_examples(const toml::node& node, std::vector<Example>& into) {
    const auto* list = node.as_array();
    if (!list) return fail(node.source().begin.line, "examples is not a list");
    into.clear();
    for (const auto& item : *list) {
      const std::size_t line = item.source().begin.line;
      const auto* table = item.as_table();
      const auto field = [&](std::string_view name) {
        return table ? (*table)[name].value<std::string>() : std::nullopt;
      };
      const auto problem_text = field("problem"), kernel_path = field("kernel");
      if (!table || table->size() != 2 || !problem_text || !kernel_path)
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
  std::filesystem::path examples_root_, problems_root_;
  Library::Texts& texts_;
};

}  // namespace

Result Library::Texts::read(const std::filesystem::path& file,
                            const std::filesystem::path& examples_root,
                            const std::filesystem::path& problems_root) {
  const auto source = problem::read_text_file(file);
  if (!source) return std::unexpected(source.error());
  const std::string shown = problem::printable(file.string());
  try {
    const toml::table root = toml::parse(*source, file.string());
    return Reader(file, examples_root, problems_root, *this).read(root);
  } catch (const toml::parse_error& error) {
    return std::unexpected(fmt::format("{}:{}: not TOML: {}", shown, error.source().begin.line,
                                       problem::printable(error.description())));
  }
}

}  // namespace kb::prompt

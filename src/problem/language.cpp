#include "problem/language.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "problem/python_tokens.h"

namespace kb::problem {
namespace {

constexpr std::array kAll = {Language::cpp,           Language::cuda_cpp, Language::torch,
                             Language::cpp_extension, Language::cuda,     Language::thunderkittens,
                             Language::hip,           Language::triton,   Language::helion,
                             Language::cute,          Language::tilelang, Language::cuda_tile,
                             Language::cupy};

// The module whose use marks a language, the more particular first: Helion's and TileLang's files
// may well call a helper of Triton's.
constexpr std::array<std::pair<std::string_view, Language>, 6> kModules = {
    {{"helion", Language::helion},
     {"tilelang", Language::tilelang},
     {"cutlass", Language::cute},
     {"cuda.tile", Language::cuda_tile},
     {"triton", Language::triton},
     {"cupy", Language::cupy}}};

bool is_in(std::string_view module, std::string_view package) {
  return module == package ||
         (module.starts_with(package) && module.substr(package.size()).starts_with('.'));
}

// Reads the statements of a file: what it imports under which name, which names it uses elsewhere,
// and its strings.
class Reader {
 public:
  explicit Reader(std::string_view source) : tokens_(source) {
    while (const auto token = tokens_.next()) read(*token);
    end_statement();
  }

  /// True when a name that was imported out of `package` is used, or all of it was imported.
  bool uses_module(std::string_view package) const {
    return std::ranges::any_of(imports_, [&](const auto& import) {
      const auto& [name, module] = import;
      return is_in(module, package) && (name == "*" || names_.contains(name));
    });
  }
  bool imports(std::string_view package) const {
    return std::ranges::any_of(imports_,
                               [&](const auto& import) { return is_in(import.second, package); });
  }
  /// True when the name stands anywhere in the code, also behind a dot.
  bool mentions(std::string_view name) const {
    return names_.contains(name) || members_.contains(name);
  }
  const std::vector<std::string_view>& strings() const { return strings_; }

 private:
  void read(const Token& token) {
    const bool ends = token.kind == TokenKind::newline || token.kind == TokenKind::indent ||
                      token.kind == TokenKind::dedent;
    if (ends || (token.kind == TokenKind::op && token.text == ";" && brackets_ == 0)) {
      end_statement();
      return;
    }
    if (token.kind == TokenKind::op) {
      if (token.text == "(" || token.text == "[" || token.text == "{") ++brackets_;
      if ((token.text == ")" || token.text == "]" || token.text == "}") && brackets_ > 0)
        --brackets_;
    }
    // A string that begins a statement is documentation.
    if (token.kind == TokenKind::string && !statement_.empty()) {
      strings_.push_back(token.text);
      // importlib.import_module("triton"), __import__("triton")
      if (statement_.size() >= 2 && statement_.back() == "(") {
        const auto function = statement_[statement_.size() - 2];
        if (function == "import_module" || function == "__import__")
          imports_.emplace_back("*", token.text.substr(1, token.text.size() - 2));
      }
    }
    const bool importing =
        !statement_.empty() && (statement_[0] == "import" || statement_[0] == "from");
    if (token.kind == TokenKind::name && !importing)
      (!statement_.empty() && statement_.back() == "." ? members_ : names_).insert(token.text);
    // `if x: import triton` begins a statement behind the colon.
    if (token.kind == TokenKind::op && token.text == ":" && brackets_ == 0 && !importing)
      statement_.clear();
    else
      statement_.push_back(token.text);
  }

  void end_statement() {
    if (!statement_.empty() && statement_[0] == "import") read_import();
    if (!statement_.empty() && statement_[0] == "from") read_from();
    statement_.clear();
    brackets_ = 0;
  }

  // Reads a.b.c at `at`, and leaves `at` behind it.
  std::string module_at(std::size_t& at) const {
    std::string module;
    while (at < statement_.size() && statement_[at] != "," && statement_[at] != "as" &&
           statement_[at] != "import")
      module += statement_[at++];
    return module;
  }

  // The name behind `as` at `at`, or `name`; leaves `at` behind it.
  std::string_view name_at(std::size_t& at, std::string_view name) const {
    if (at + 1 >= statement_.size() || statement_[at] != "as") return name;
    at += 2;
    return statement_[at - 1];
  }

  // import a.b, c.d as e
  void read_import() {
    for (std::size_t at = 1; at < statement_.size(); ++at) {
      const std::string_view root = statement_[at];
      const std::string module = module_at(at);
      imports_.emplace_back(name_at(at, root), module);
    }
  }

  // from a.b import c, d as e   from a.b import (c, d)   from a.b import *
  void read_from() {
    std::size_t at = 1;
    const std::string module = module_at(at);
    while (++at < statement_.size()) {
      const std::string_view name = statement_[at];
      if (name == "(" || name == ")" || name == ",") continue;
      ++at;
      const std::string_view bound = name_at(at, name);
      --at;
      imports_.emplace_back(bound, name == "*" ? module : module + "." + std::string(name));
    }
  }

  PythonTokenizer tokens_;
  std::vector<std::string_view> statement_;
  std::size_t brackets_ = 0;
  std::vector<std::pair<std::string, std::string>> imports_;  // the bound name, what of
  std::set<std::string_view> names_, members_;
  std::vector<std::string_view> strings_;
};

// True when a line of `code` includes a header whose path holds `part`.
bool includes(std::string_view code, std::string_view part) {
  for (std::size_t at = 0; (at = code.find('#', at)) != std::string_view::npos; ++at) {
    const auto line = code.substr(at, code.find_first_of("\r\n", at) - at);
    const auto word = line.find_first_not_of(" \t", 1);
    if (word != std::string_view::npos && line.substr(word).starts_with("include") &&
        line.find(part) != std::string_view::npos)
      return true;
  }
  return false;
}

Language language_of_extension(const Reader& reader) {
  const auto any = [&](const auto& property) {
    return std::ranges::any_of(reader.strings(), property);
  };
  if (any([](std::string_view code) { return includes(code, "kittens"); }))
    return Language::thunderkittens;
  if (any([](std::string_view code) { return includes(code, "hip/hip_"); })) return Language::hip;
  const bool device_code = any([](std::string_view code) {
    return code.find("__global__") != std::string_view::npos ||
           code.find(".cu\"") != std::string_view::npos ||
           code.find(".cu'") != std::string_view::npos;
  });
  return device_code || reader.mentions("cuda_sources") ? Language::cuda : Language::cpp_extension;
}

}  // namespace

std::string_view name_of(Language language) {
  switch (language) {
    case Language::unknown: return "";
    case Language::cpp: return "cpp";
    case Language::cuda_cpp: return "cuda_cpp";
    case Language::torch: return "torch";
    case Language::cpp_extension: return "cpp_extension";
    case Language::cuda: return "cuda";
    case Language::thunderkittens: return "thunderkittens";
    case Language::hip: return "hip";
    case Language::triton: return "triton";
    case Language::helion: return "helion";
    case Language::cute: return "cute";
    case Language::tilelang: return "tilelang";
    case Language::cuda_tile: return "cuda_tile";
    case Language::cupy: return "cupy";
  }
  return "";
}

std::optional<Language> language_named(std::string_view name) {
  const auto found = std::ranges::find(kAll, name, [](Language one) { return name_of(one); });
  return found == kAll.end() ? std::nullopt : std::optional(*found);
}

std::span<const Language> all_languages() {
  return kAll;
}

bool is_python(Language language) {
  return language != Language::unknown && language != Language::cpp &&
         language != Language::cuda_cpp;
}

bool needs_gpu(Language language) {
  switch (language) {
    case Language::cuda_cpp:
    case Language::hip:
    case Language::thunderkittens:
    case Language::cute:
    case Language::tilelang:
    case Language::cuda_tile:
    case Language::cupy: return true;
    // Extensions may have a way for the CPU; Triton and Helion have interpreters.
    default: return false;
  }
}

Language language_of_python(std::string_view source) {
  const Reader reader(source);
  for (const auto& [module, language] : kModules)
    if (reader.uses_module(module)) return language;
  // torch.cuda._compile_kernel compiles CUDA without an extension.
  if (reader.mentions("_compile_kernel")) return Language::cuda;
  if (reader.mentions("load_inline") || reader.mentions("cpp_extension") ||
      reader.imports("torch.utils.cpp_extension"))
    return language_of_extension(reader);
  return Language::torch;
}

std::optional<std::string> refused_precision(Language language, std::string_view precision,
                                             bool on_cpu) {
  // Products of bfloat16 come out wrong there (Triton 3.6): an honest kernel would be blamed.
  if (on_cpu && language == Language::triton && precision == "bf16")
    return "Triton's interpreter on the CPU has no bf16: judge it on a GPU, or give --precision "
           "fp32 or fp16";
  std::vector<std::string_view> taken;
  if (language == Language::tilelang) taken = {"fp16", "bf16"};
  if (language == Language::thunderkittens) taken = {"bf16"};
  if (taken.empty() || std::ranges::find(taken, precision) != taken.end()) return std::nullopt;
  return fmt::format("{} candidates are judged at {} only, not at {}: give --precision {}",
                     name_of(language), fmt::join(taken, " and "), precision, taken.back());
}

}  // namespace kb::problem

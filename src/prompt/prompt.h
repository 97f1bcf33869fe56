// What is sent to a language model: the prompts of prompts/kernelbench.toml, filled in for one
// problem, and the message that gives a judgement back to the model.
//
// The texts are data. A user's file (`--prompts FILE`) replaces them by name and adds backends of
// its own; docs/prompts.md has the format. Templates know {{name}} and nothing else: a name that
// does not exist is an error, and what is put in is never expanded again.
#pragma once

#include <cstddef>
#include <expected>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "card/card.h"
#include "problem/candidate.h"
#include "problem/problem_file.h"

namespace kb::prompt {

enum class Shots { zero, one, few };
std::string_view name_of(Shots shots);  ///< "zero", "one", "few"
std::optional<Shots> parse_shots(std::string_view text);

/// What to ask for.
struct Request {
  std::string backend = "cuda";    ///< a name in Library::backends()
  std::string precision = "fp32";  ///< fp32, fp16, bf16
  Shots shots = Shots::one;
  const card::Card* gpu = nullptr;  ///< null: the prompt names no card
  bool with_hardware = false;       ///< the card's figures, terms and good practice; needs `gpu`
  std::string size = "public";      ///< or a key of the problem's SIZES
};

struct Prompt {
  std::string system, user;
  std::size_t examples = 0;  ///< how many there are: fewer than asked for, if there are no more
  std::size_t estimated_tokens = 0;  ///< of both: see estimate_tokens
};

/// A backend as the prompts describe it.
struct Backend {
  std::string name;                                      ///< "triton"
  std::string title;                                     ///< "Triton"
  std::string label;                                     ///< of a fenced block: "python"
  problem::Backend language = problem::Backend::python;  ///< what extract_code and the judge take
  std::string suffix;  ///< of a sample's file: ".py", ".cu", ".hip", ".cpp"
};

/// Tokens that `text` takes, roughly: tokenizers differ among themselves by a fifth and more. A
/// word is one or a few by its length, a run of blanks one, signs a little less than one each.
std::size_t estimate_tokens(std::string_view text);

/// The texts, read and checked once; does not change afterwards.
class Library {
 public:
  struct Texts;  ///< src/prompt/texts.h
  /// `root` holds prompts/, include/ and examples/ (problem::installation_root()); `user_file` is
  /// laid over it when not empty. Error: one sentence, with file and line.
  static std::expected<Library, std::string> load(const std::filesystem::path& root,
                                                  const std::filesystem::path& user_file = {});
  ~Library();
  Library(Library&&) noexcept;
  Library& operator=(Library&&) noexcept;

  const std::vector<Backend>& backends() const;  ///< in the order of the files
  /// Null when there is none of that name.
  const Backend* backend(std::string_view name) const;

  /// The first message to a model. Error: one sentence (no such backend, no such size, …).
  std::expected<Prompt, std::string> render(const problem::Problem& problem,
                                            const Request& request) const;

  /// The next user message of a conversation that began with `render`: what became of
  /// `previous_code`. `result` is the object that `eval --json` prints; its text is untrusted and
  /// is fenced. An empty `previous_code` is left out: the model has it before it. Error: one
  /// sentence (`result` is not such an object, no such backend).
  std::expected<std::string, std::string> refine(const Request& request,
                                                 const nlohmann::json& result,
                                                 std::string_view previous_code) const;

 private:
  explicit Library(std::unique_ptr<Texts> texts);
  /// What the names that every text may use stand for.
  std::expected<std::map<std::string, std::string, std::less<>>, std::string> general(
      const Request& request) const;

  std::unique_ptr<Texts> texts_;
};

}  // namespace kb::prompt

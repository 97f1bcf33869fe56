// A conversation with a model about one kernel: it hears what became of each of its kernels, and
// the best one is remembered. Knows no disk, no network and no device.
#pragma once

#include <compare>
#include <cstddef>
#include <expected>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "llm/chat.h"
#include "prompt/prompt.h"

namespace kb::refine {

/// How good a result is: correct before compiled before anything else, then by what the speedup is
/// at least (the lower end of its interval).
struct Merit {
  bool correct = false, compiled = false;
  double speedup = 0;  ///< 0 unless correct and timed
  auto operator<=>(const Merit&) const = default;
};
/// `result` is the object that `eval --json` prints.
Merit merit_of(const nlohmann::json& result);

/// "correct  1.43x [1.38, 1.47]"
std::string in_words(const nlohmann::json& result);

/// When a kernel is good enough.
struct Target {
  double speedup = 1;  ///< the whole interval is at or above it
  bool timed = true;   ///< false: nothing is timed, and a correct kernel will do
};

struct Turn {
  std::string code;  ///< empty: the answer had none
  nlohmann::json result;
};

class Conversation {
 public:
  /// Begins with `first`; `library`, which outlives it, has the words for `request`.
  Conversation(const prompt::Library& library, prompt::Request request, prompt::Prompt first);

  /// What the model is asked next: the first prompt, and by turns each kernel and its judgement. It
  /// gets its kernels back, not its reasoning. Error: one sentence (a result that is none).
  std::expected<llm::Prompt, std::string> next() const;
  void add(Turn turn);

  std::size_t turns() const { return turns_.size(); }
  /// Index of the best turn; of equals the earliest. There must be a turn.
  std::size_t best() const { return best_; }
  const Turn& operator[](std::size_t turn) const { return turns_[turn]; }
  /// True when the best turn is good enough.
  bool reached(const Target& target) const;

 private:
  const prompt::Library& library_;
  prompt::Request request_;
  prompt::Prompt first_;
  std::vector<Turn> turns_;
  std::size_t best_ = 0;
};

}  // namespace kb::refine

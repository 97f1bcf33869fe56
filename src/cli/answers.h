// What came back from a model: counted, told, and the code in it, for the commands that ask one.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "cli/asking.h"
#include "llm/answers.h"
#include "problem/candidate.h"

namespace kb::cli {

/// What a command's questions came to. Not thread-safe.
class AnswerTally {
 public:
  /// True when it is now known, and was not before, that all other questions would meet the same
  /// wall: so many met it, and none before them was answered. The user has been told.
  bool add(const llm::Answer& answer);
  void without_code() { ++without_code_; }
  /// Every question has its answer.
  bool finished() const { return finished_; }
  /// Statuses, tokens and cost, a line each; empty when nothing was asked.
  std::string summary(const AskingFlags& flags, bool replays) const;

 private:
  std::map<std::string_view, std::size_t> statuses_;
  llm::Usage used_;
  double cost_usd_ = 0;
  std::size_t cost_unknown_ = 0, without_code_ = 0, without_usage_ = 0;
  int hopeless_ = 0;  // in a row
  bool any_answer_ = false, finished_ = true;
};

/// The code in an answer, empty where there is none; the record then says how it was found, and
/// that it is kept in `file`.
std::string take_code(llm::Record& record, problem::Backend backend, const std::string& file);

/// What an answer was, for its line of progress.
std::string line_of(const llm::Record& record);

}  // namespace kb::cli

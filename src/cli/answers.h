// One question after another: asked, kept and counted, for the commands that ask a model.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "cli/asking.h"
#include "llm/answers.h"
#include "problem/candidate.h"

namespace kb::cli {

/// A question, and where its answer goes.
struct Inquiry {
  const llm::Question& question;  ///< its name is the record's
  std::string prompt_sha256;
  nlohmann::json about;      ///< of the record
  problem::Backend backend;  ///< of the kernel
  std::string file;          ///< of the kernel
};

struct Reply {
  llm::Record record;
  std::optional<std::string> code;  ///< none: not answered this time; empty: no code in the answer
};

/// Asks, and keeps what comes: first the answer, raw, so that it is safe whatever happens to its
/// code; then that (keep_code). UsageError when the disk refuses. Thread-safe for different names.
Reply ask_and_keep(Asking& asking, const llm::AnswerFolder& folder, const Inquiry& inquiry,
                   const std::stop_token& stop);

/// Writes the code in an answer as `file`, an empty one where there is none: it is a sample that
/// failed, and would not count if it were missing. The record then says how it was found. Returns
/// the code. UsageError when the disk refuses.
std::string keep_code(const llm::AnswerFolder& folder, const std::string& name, llm::Record& record,
                      problem::Backend backend, const std::string& file);

/// What a command's questions came to. Not thread-safe.
class AnswerTally {
 public:
  /// True when it is now known, and was not before, that all other questions would meet the same
  /// wall: so many met it, and none before them was answered. The user has been told.
  bool add(const Reply& reply);
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

/// What an answer was, for its line of progress.
std::string line_of(const llm::Record& record);

}  // namespace kb::cli

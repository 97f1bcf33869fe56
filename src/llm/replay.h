// Answers that were recorded before: the whole loop without a key, a network or a cent.
#pragma once

#include <expected>
#include <filesystem>
#include <string>

#include "llm/client.h"

namespace kb::llm {

/// Serves the answers of a run folder (or its folder answers/) by their names:
/// level_1_problem_19_sample_0.json as AnswerFolder writes them, or …_sample_0.md, the bare text of
/// an answer as one would copy it from a chat. A question without a record is not_recorded.
class Replay : public Model {
 public:
  /// Error: one sentence (no such folder, no answers in it).
  static std::expected<Replay, std::string> open(const std::filesystem::path& folder);

  Answer ask(const Question& question, const std::stop_token& stop) override;

 private:
  explicit Replay(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;
};

}  // namespace kb::llm

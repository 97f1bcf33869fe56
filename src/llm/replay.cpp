#include "llm/replay.h"

#include <fmt/format.h>

#include "llm/answers.h"
#include "llm/text.h"
#include "problem/text_file.h"

namespace kb::llm {

namespace fs = std::filesystem;

std::expected<Replay, std::string> Replay::open(const fs::path& folder) {
  const std::string shown = one_line(folder.string());
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return std::unexpected(fmt::format("there is no folder {} to replay", shown));
  const fs::path answers =
      fs::is_directory(folder / "answers", error) ? folder / "answers" : folder;
  for (const auto& entry : fs::directory_iterator(answers, error)) {
    const auto suffix = entry.path().extension();
    if (suffix == ".json" || suffix == ".md") return Replay(answers);
  }
  return std::unexpected(
      fmt::format("{} holds no recorded answers (level_1_problem_19_sample_0.json or .md)", shown));
}

Answer Replay::ask(const Question& question, const std::stop_token& stop) {
  Answer answer;
  if (stop.stop_requested()) return answer;
  const auto failed = [&](Status status, std::string message) {
    answer.status = status;
    answer.message = std::move(message);
    return answer;
  };
  std::error_code error;
  const fs::path recorded = folder_ / (question.name + ".json");
  if (fs::exists(recorded, error)) {
    auto record = read_record(recorded);
    if (!record) return failed(Status::not_an_answer, record.error());
    return std::move(record->answer);
  }
  const fs::path bare = folder_ / (question.name + ".md");
  if (fs::exists(bare, error)) {
    auto text = problem::read_text_file(bare);
    if (!text) return failed(Status::not_an_answer, text.error());
    answer.text = std::move(*text);
    return is_blank(answer.text) ? failed(Status::empty, "the answer has no text")
                                 : failed(Status::answered, "");
  }
  return failed(Status::not_recorded,
                fmt::format("no {}.json or .md in {}", question.name, one_line(folder_.string())));
}

}  // namespace kb::llm

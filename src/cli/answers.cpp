#include "cli/answers.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/progress.h"
#include "prompt/extract.h"

namespace kb::cli {
namespace {

// So many questions that all meet the same wall are enough to know that the others would.
constexpr int kHopeless = 3;

}  // namespace

bool AnswerTally::add(const llm::Answer& answer) {
  const bool final = llm::is_final(answer.status);
  ++statuses_[llm::name_of(answer.status)];
  if (!final) finished_ = false;
  any_answer_ = any_answer_ || final;
  if (answer.usage) {
    used_.input += answer.usage->input;
    used_.output += answer.usage->output;
  } else if (final) {
    ++without_usage_;
  }
  if (answer.cost_usd)
    cost_usd_ += *answer.cost_usd;
  else if (final || answer.usage)
    ++cost_unknown_;
  hopeless_ = llm::is_hopeless(answer.status) ? hopeless_ + 1 : 0;
  if (any_answer_ || hopeless_ != kHopeless) return false;
  fmt::print(stderr,
             "kernelbench: the first {} questions ended as {} ({}): the others are not asked\n",
             kHopeless, llm::name_of(answer.status), answer.message);
  return true;
}

std::string AnswerTally::summary(const AskingFlags& flags, bool replays) const {
  if (statuses_.empty()) return {};
  std::string text;
  for (const auto& [status, number] : statuses_)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number, status);
  if (without_code_ > 0) text += fmt::format(" ({} without code)", without_code_);
  text += fmt::format("\n{} tokens in, {} out", used_.input, used_.output);
  if (without_usage_ > 0) text += fmt::format(" (and {} answers of unknown size)", without_usage_);
  if (replays) return text + "; replayed, nothing was spent\n";
  if (cost_unknown_ == 0) return text + fmt::format("; ${:.4f}\n", cost_usd_);
  return text +
         fmt::format("; {}the cost of {} answers is unknown (no price for this model in {})\n",
                     cost_usd_ > 0 ? fmt::format("${:.4f}, and ", cost_usd_) : "", cost_unknown_,
                     flags.prices.empty() ? "prices.toml" : flags.prices);
}

std::string take_code(llm::Record& record, problem::Backend backend, const std::string& file) {
  auto extraction = prompt::extract_code(record.answer.text, backend);
  nlohmann::json& code = record.about["code"];
  if (!extraction) {
    code = {
        {"how", nullptr}, {"message", extraction.error()}, {"warnings", nlohmann::json::array()}};
    return {};
  }
  code = {{"how", prompt::name_of(extraction->how)},
          {"message", ""},
          {"warnings", extraction->warnings},
          {"file", file}};
  return std::move(extraction->code);
}

std::string line_of(const llm::Record& record) {
  const llm::Answer& answer = record.answer;
  std::string line = fmt::format("{:<14}", llm::name_of(answer.status));
  if (const auto code = record.about.find("code"); code != record.about.end()) {
    const auto& how = code->at("how");
    line += fmt::format(" {:<9}", how.is_string() ? how.get<std::string>() : "no code");
  }
  if (answer.usage) line += fmt::format(" {:>6} tokens", answer.usage->output);
  if (answer.cost_usd) line += fmt::format("  ${:.4f}", *answer.cost_usd);
  if (answer.attempts.size() > 1) line += fmt::format("  {} attempts", answer.attempts.size());
  if (!answer.message.empty()) line += "  " + printable(answer.message, false);
  return line;
}

}  // namespace kb::cli

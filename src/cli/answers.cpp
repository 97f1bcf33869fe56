#include "cli/answers.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/failure.h"
#include "cli/progress.h"
#include "prompt/extract.h"

namespace kb::cli {
namespace {

// So many questions that all meet the same wall are enough to know that the others would.
constexpr int kHopeless = 3;

}  // namespace

Reply ask_and_keep(Asking& asking, const llm::AnswerFolder& folder, const Inquiry& inquiry,
                   const std::stop_token& stop) {
  Reply reply{{asking.model().ask(inquiry.question, stop), inquiry.prompt_sha256, inquiry.about},
              std::nullopt};
  llm::Record& record = reply.record;
  if (record.answer.status == llm::Status::not_asked) return reply;
  asking.price(record.answer);
  const std::string& name = inquiry.question.name;
  value_or_usage_error(folder.put(name, record));
  if (llm::is_final(record.answer.status))
    reply.code = keep_code(folder, name, record, inquiry.backend, inquiry.file);
  return reply;
}

std::string keep_code(const llm::AnswerFolder& folder, const std::string& name, llm::Record& record,
                      problem::Backend backend, const std::string& file) {
  const auto extraction = prompt::extract_code(record.answer.text, backend);
  const std::string code = extraction ? extraction->code : "";
  if (extraction)
    record.about["code"] = {{"how", prompt::name_of(extraction->how)},
                            {"message", ""},
                            {"warnings", extraction->warnings},
                            {"file", file}};
  else
    record.about["code"] = {
        {"how", nullptr}, {"message", extraction.error()}, {"warnings", nlohmann::json::array()}};
  value_or_usage_error(folder.put_file(file, code));
  value_or_usage_error(folder.put(name, record));
  return code;
}

bool AnswerTally::add(const Reply& reply) {
  const llm::Answer& answer = reply.record.answer;
  const bool final = llm::is_final(answer.status);
  ++statuses_[llm::name_of(answer.status)];
  if (!final) finished_ = false;
  any_answer_ = any_answer_ || final;
  if (reply.code && reply.code->empty()) ++without_code_;
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

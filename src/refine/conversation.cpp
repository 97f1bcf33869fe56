#include "refine/conversation.h"

#include <fmt/format.h>

#include <utility>

#include "prompt/fence.h"

namespace kb::refine {

Merit merit_of(const nlohmann::json& result) {
  Merit merit{result.value("verdict", "") == "correct", result.value("compiled", false), 0};
  if (!merit.correct) return merit;
  const auto interval = result.find("speedup_ci95"), speedup = result.find("speedup");
  if (interval != result.end() && interval->is_array())
    merit.speedup = interval->at(0).get<double>();
  else if (speedup != result.end() && speedup->is_number())
    merit.speedup = speedup->get<double>();
  return merit;
}

std::string in_words(const nlohmann::json& result) {
  std::string words = result.value("verdict", "");
  const auto interval = result.find("speedup_ci95"), speedup = result.find("speedup");
  if (speedup != result.end() && speedup->is_number())
    words += fmt::format("  {:.3g}x", speedup->get<double>());
  if (interval != result.end() && interval->is_array())
    words += fmt::format(" [{:.3g}, {:.3g}]", interval->at(0).get<double>(),
                         interval->at(1).get<double>());
  return words;
}

Conversation::Conversation(const prompt::Library& library, prompt::Request request,
                           prompt::Prompt first)
    : library_(library), request_(std::move(request)), first_(std::move(first)) {}

std::expected<llm::Prompt, std::string> Conversation::next() const {
  using From = llm::Message::From;
  llm::Prompt prompt{first_.system, {{From::user, first_.user}}};
  const std::string& label = library_.backend(request_.backend)->label;
  for (const auto& turn : turns_) {
    auto judgement = library_.refine(request_, turn.result, {});
    if (!judgement) return std::unexpected(std::move(judgement.error()));
    // Of the answer the kernel alone: reasoning is long, and some endpoints refuse to have it back.
    prompt.messages.push_back({From::model, turn.code.empty()
                                                ? std::string("There is no kernel in this answer.")
                                                : prompt::fenced(label, turn.code)});
    prompt.messages.push_back({From::user, std::move(*judgement)});
  }
  return prompt;
}

void Conversation::add(Turn turn) {
  turns_.push_back(std::move(turn));
  if (merit_of(turns_.back().result) > merit_of(turns_[best_].result)) best_ = turns_.size() - 1;
}

bool Conversation::reached(const Target& target) const {
  if (turns_.empty()) return false;
  const Merit merit = merit_of(turns_[best_].result);
  return merit.correct && (!target.timed || merit.speedup >= target.speedup);
}

}  // namespace kb::refine

#include "llm/chat.h"

#include "digest/sha256.h"

namespace kb::llm {

nlohmann::json to_json(const Prompt& prompt) {
  auto messages = nlohmann::json::array();
  for (const auto& message : prompt.messages)
    messages.push_back({{"role", message.from == Message::From::user ? "user" : "assistant"},
                        {"text", message.text}});
  return {{"system", prompt.system}, {"messages", std::move(messages)}};
}

std::string hash_of(const Prompt& prompt) {
  return sha256_hex(to_json(prompt).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

nlohmann::json to_json(const Settings& settings) {
  nlohmann::json json = {{"model", settings.model}};
  if (settings.temperature) json["temperature"] = *settings.temperature;
  if (settings.top_p) json["top_p"] = *settings.top_p;
  if (settings.max_tokens) json["max_tokens"] = *settings.max_tokens;
  if (settings.seed) json["seed"] = *settings.seed;
  if (!settings.reasoning_effort.empty()) json["reasoning_effort"] = settings.reasoning_effort;
  if (settings.thinking_budget) json["thinking_budget"] = *settings.thinking_budget;
  if (!settings.extra.empty()) json["extra"] = settings.extra;
  return json;
}

}  // namespace kb::llm

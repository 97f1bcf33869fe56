// POST …/chat/completions, as OpenAI defined it and most servers speak it.
#include <fmt/format.h>

#include "llm/dialect.h"
#include "llm/text.h"

namespace kb::llm {
namespace {

using nlohmann::json;

// A message's content is text or a list of parts; those with text count.
std::string content_text(const json& message, std::string_view name) {
  const auto* content = member(message, name);
  if (content == nullptr) return {};
  if (content->is_string()) return content->get<std::string>();
  std::string text;
  if (content->is_array())
    for (const auto& part : *content) text += text_member(part, "text");
  return text;
}

// `message` of a whole reply and `delta` of an event have the same members. What a model thinks is
// `reasoning_content` (DeepSeek, vLLM, SGLang) or `reasoning` (OpenRouter, Together, Ollama).
void read_message(const json& message, Reading& reading) {
  if (!message.is_object()) return;
  reading.recognized = true;
  reading.text += content_text(message, "content");
  reading.refusal += text_member(message, "refusal");
  const std::string reasoning = content_text(message, "reasoning_content");
  reading.reasoning += reasoning.empty() ? content_text(message, "reasoning") : reasoning;
}

void read_usage(const json& reply, Reading& reading) {
  const auto* usage = member(reply, "usage");
  if (usage == nullptr || !usage->is_object()) return;
  Usage read;
  read.input = count_member(*usage, "prompt_tokens").value_or(0);
  read.output = count_member(*usage, "completion_tokens").value_or(0);
  if (const auto* details = member(*usage, "prompt_tokens_details"))
    read.cached_input = count_member(*details, "cached_tokens").value_or(0);
  // DeepSeek's name for the same.
  if (const auto hit = count_member(*usage, "prompt_cache_hit_tokens")) read.cached_input = *hit;
  if (const auto* details = member(*usage, "completion_tokens_details"))
    read.reasoning = count_member(*details, "reasoning_tokens").value_or(0);
  reading.usage = read;
  // OpenRouter: what the answer cost, in US dollars.
  if (const auto* cost = member(*usage, "cost"); cost != nullptr && cost->is_number())
    reading.cost_usd = cost->get<double>();
}

void read_choice(const json& reply, const char* message_name, Reading& reading) {
  reading.error = read_error(reply);
  if (const std::string model = text_member(reply, "model"); !model.empty()) reading.model = model;
  read_usage(reply, reading);
  const auto* choices = member(reply, "choices");
  if (choices == nullptr || !choices->is_array()) return;
  reading.recognized = true;  // the event with the usage has no choice
  if (choices->empty()) return;
  const json& choice = choices->front();
  if (const auto* message = member(choice, message_name)) read_message(*message, reading);
  // OpenRouter reports what befell the provider behind it in the choice.
  if (auto error = read_error(choice)) reading.error = error;
  const std::string reason = text_member(choice, "finish_reason");
  if (reason.empty()) return;
  reading.finish_reason = reason;
  if (reason == "stop" || reason == "eos")
    reading.finish = Reading::Finish::stop;
  else if (reason == "length")
    reading.finish = Reading::Finish::length;
  else if (reason == "content_filter")
    reading.finish = Reading::Finish::refused;
  else
    reading.finish = Reading::Finish::other;
}

class OpenAi : public Dialect {
 public:
  std::expected<void, std::string> check(const Endpoint& endpoint,
                                         const Settings& settings) const override {
    if (settings.thinking_budget && !endpoint.quirks.reasoning_object)
      return std::unexpected(
          "OpenAI's form of request has no thinking budget: use --reasoning-effort, or put what "
          "this server understands into --extra");
    return {};
  }

  HttpRequest request(const Endpoint& endpoint, const Settings& settings,
                      const Question& question) const override {
    auto messages = json::array();
    if (!question.prompt.system.empty())
      messages.push_back({{"role", "system"}, {"content", question.prompt.system}});
    for (const auto& message : question.prompt.messages)
      messages.push_back({{"role", message.from == Message::From::user ? "user" : "assistant"},
                          {"content", message.text}});
    json body = {{"model", settings.model}, {"messages", std::move(messages)}};
    if (settings.temperature) body["temperature"] = *settings.temperature;
    if (settings.top_p) body["top_p"] = *settings.top_p;
    if (settings.max_tokens)
      body[endpoint.quirks.max_completion_tokens ? "max_completion_tokens" : "max_tokens"] =
          *settings.max_tokens;
    if (settings.seed) body["seed"] = *settings.seed + question.sample;
    if (endpoint.quirks.reasoning_object) {
      if (settings.thinking_budget) body["reasoning"]["max_tokens"] = *settings.thinking_budget;
      if (!settings.reasoning_effort.empty())
        body["reasoning"]["effort"] = settings.reasoning_effort;
    } else if (!settings.reasoning_effort.empty()) {
      body["reasoning_effort"] = settings.reasoning_effort;
    }
    if (settings.stream) {
      body["stream"] = true;
      body["stream_options"] = {{"include_usage", true}};
    }
    body.merge_patch(settings.extra);
    HttpRequest request{endpoint.base_url + "/chat/completions",
                        {"Content-Type: application/json"},
                        body.dump(-1, ' ', false, json::error_handler_t::replace)};
    if (!endpoint.key.empty()) request.headers.push_back("Authorization: Bearer " + endpoint.key);
    return request;
  }

  void read_whole(const json& reply, Reading& reading) const override {
    read_choice(reply, "message", reading);
  }

  void read_event(std::string_view, const json& data, Reading& reading) const override {
    read_choice(data, "delta", reading);
  }
};

}  // namespace

const Dialect& openai_dialect() {
  static const OpenAi dialect;
  return dialect;
}

}  // namespace kb::llm

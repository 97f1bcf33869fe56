// POST …/models/MODEL:generateContent, Google's own form.
#include <algorithm>
#include <cctype>

#include "llm/dialect.h"
#include "llm/text.h"

namespace kb::llm {
namespace {

using nlohmann::json;

void read_usage(const json& reply, Reading& reading) {
  const auto* usage = member(reply, "usageMetadata");
  if (usage == nullptr || !usage->is_object()) return;
  Usage read;
  read.input = count_member(*usage, "promptTokenCount").value_or(0);
  read.cached_input = count_member(*usage, "cachedContentTokenCount").value_or(0);
  read.reasoning = count_member(*usage, "thoughtsTokenCount").value_or(0);
  // Unlike the others, Google does not count thoughts among the answer's tokens.
  read.output = count_member(*usage, "candidatesTokenCount").value_or(0) + read.reasoning;
  reading.usage = read;
}

// An event of a stream is a whole reply that holds a piece of the text.
void read_reply(const json& reply, Reading& reading) {
  reading.error = read_error(reply);
  if (const std::string model = text_member(reply, "modelVersion"); !model.empty())
    reading.model = model;
  read_usage(reply, reading);
  if (const auto* feedback = member(reply, "promptFeedback")) {
    reading.recognized = true;
    if (const std::string reason = text_member(*feedback, "blockReason"); !reason.empty()) {
      reading.finish = Reading::Finish::refused;
      reading.finish_reason = reason;
      reading.refusal = "the prompt was blocked: " + reason;
    }
  }
  const auto* candidates = member(reply, "candidates");
  if (candidates == nullptr || !candidates->is_array() || candidates->empty()) return;
  reading.recognized = true;
  const json& candidate = candidates->front();
  if (const auto* content = member(candidate, "content"))
    if (const auto* parts = member(*content, "parts"); parts != nullptr && parts->is_array())
      for (const auto& part : *parts) {
        const auto* thought = member(part, "thought");
        const bool is_thought = thought != nullptr && thought->is_boolean() && thought->get<bool>();
        (is_thought ? reading.reasoning : reading.text) += text_member(part, "text");
      }
  const std::string reason = text_member(candidate, "finishReason");
  if (reason.empty()) return;
  reading.finish_reason = reason;
  if (reason == "STOP") {
    reading.finish = Reading::Finish::stop;
  } else if (reason == "MAX_TOKENS") {
    reading.finish = Reading::Finish::length;
  } else if (reason == "SAFETY" || reason == "RECITATION" || reason == "BLOCKLIST" ||
             reason == "PROHIBITED_CONTENT" || reason == "SPII") {
    reading.finish = Reading::Finish::refused;
    reading.refusal = "the answer was stopped: " + reason;
  } else {
    reading.finish = Reading::Finish::other;
  }
}

class Google : public Dialect {
 public:
  std::expected<void, std::string> check(const Endpoint&, const Settings& settings) const override {
    // The model's name is part of the address.
    const bool plain = std::ranges::all_of(settings.model, [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
    });
    if (!plain)
      return std::unexpected("a model of Google's is named like gemini-2.5-pro, without any path");
    if (settings.thinking_budget && !settings.reasoning_effort.empty())
      return std::unexpected(
          "Google's models take a thinking budget or a reasoning effort: leave out one of "
          "--thinking-budget and --reasoning-effort");
    return {};
  }

  HttpRequest request(const Endpoint& endpoint, const Settings& settings,
                      const Question& question) const override {
    auto contents = json::array();
    for (const auto& message : question.prompt.messages)
      contents.push_back({{"role", message.from == Message::From::user ? "user" : "model"},
                          {"parts", json::array({{{"text", message.text}}})}});
    auto generation = json::object();
    if (settings.temperature) generation["temperature"] = *settings.temperature;
    if (settings.top_p) generation["topP"] = *settings.top_p;
    if (settings.max_tokens) generation["maxOutputTokens"] = *settings.max_tokens;
    if (settings.seed) generation["seed"] = *settings.seed + question.sample;
    if (settings.thinking_budget)
      generation["thinkingConfig"] = {{"thinkingBudget", *settings.thinking_budget},
                                      {"includeThoughts", *settings.thinking_budget != 0}};
    if (!settings.reasoning_effort.empty())
      generation["thinkingConfig"] = {{"thinkingLevel", settings.reasoning_effort},
                                      {"includeThoughts", true}};
    json body = {{"contents", std::move(contents)}, {"generationConfig", std::move(generation)}};
    if (!question.prompt.system.empty())
      body["systemInstruction"] = {{"parts", json::array({{{"text", question.prompt.system}}})}};
    body.merge_patch(settings.extra);
    const char* method = settings.stream ? ":streamGenerateContent?alt=sse" : ":generateContent";
    HttpRequest request{endpoint.base_url + "/models/" + settings.model + method,
                        {"Content-Type: application/json"},
                        body.dump(-1, ' ', false, json::error_handler_t::replace)};
    if (!endpoint.key.empty()) request.headers.push_back("x-goog-api-key: " + endpoint.key);
    return request;
  }

  void read_whole(const json& reply, Reading& reading) const override {
    read_reply(reply, reading);
  }

  void read_event(std::string_view, const json& data, Reading& reading) const override {
    read_reply(data, reading);
  }
};

}  // namespace

const Dialect& google_dialect() {
  static const Google dialect;
  return dialect;
}

}  // namespace kb::llm

// POST …/v1/messages, Anthropic's own form.
#include <fmt/format.h>

#include "llm/dialect.h"
#include "llm/text.h"

namespace kb::llm {
namespace {

using nlohmann::json;

// The form requires a limit. This one every model of the last years takes, and it is more than a
// kernel with its reasoning needs.
constexpr int kDefaultMaxTokens = 32'000;
constexpr int kLeastBudget = 1024;

void read_usage(const json& holder, Reading& reading) {
  const auto* usage = member(holder, "usage");
  if (usage == nullptr || !usage->is_object()) return;
  Usage read = reading.usage.value_or(Usage{});
  // A stream says what went in at its start and what came out at its end.
  if (const auto fresh = count_member(*usage, "input_tokens")) {
    read.cached_input = count_member(*usage, "cache_read_input_tokens").value_or(0);
    read.input = *fresh + read.cached_input +
                 count_member(*usage, "cache_creation_input_tokens").value_or(0);
  }
  if (const auto output = count_member(*usage, "output_tokens")) read.output = *output;
  reading.usage = read;
}

void read_stop(const json& holder, Reading& reading) {
  const std::string reason = text_member(holder, "stop_reason");
  if (reason.empty()) return;
  reading.finish_reason = reason;
  if (reason == "end_turn" || reason == "stop_sequence")
    reading.finish = Reading::Finish::stop;
  else if (reason == "max_tokens" || reason == "model_context_window_exceeded")
    reading.finish = Reading::Finish::length;
  else if (reason == "refusal")
    reading.finish = Reading::Finish::refused;
  else
    reading.finish = Reading::Finish::other;
}

class Anthropic : public Dialect {
 public:
  std::expected<void, std::string> check(const Endpoint&, const Settings& settings) const override {
    if (settings.seed)
      return std::unexpected("Anthropic's form of request has no seed: leave --seed out");
    const int budget = settings.thinking_budget.value_or(0);
    const int limit = settings.max_tokens.value_or(kDefaultMaxTokens);
    if (budget > 0 && (budget < kLeastBudget || budget >= limit))
      return std::unexpected(fmt::format(
          "a thinking budget of {} is not possible: it is at least {} and less than --max-tokens "
          "({}), of which it is a part",
          budget, kLeastBudget, limit));
    if (budget > 0 && settings.temperature && *settings.temperature != 1)
      return std::unexpected(
          "Anthropic's models think at temperature 1 only: leave out --temperature or "
          "--thinking-budget");
    return {};
  }

  HttpRequest request(const Endpoint& endpoint, const Settings& settings,
                      const Question& question) const override {
    auto messages = json::array();
    for (const auto& message : question.prompt.messages)
      messages.push_back({{"role", message.from == Message::From::user ? "user" : "assistant"},
                          {"content", message.text}});
    json body = {{"model", settings.model},
                 {"max_tokens", settings.max_tokens.value_or(kDefaultMaxTokens)},
                 {"messages", std::move(messages)}};
    if (!question.prompt.system.empty()) body["system"] = question.prompt.system;
    if (settings.temperature) body["temperature"] = *settings.temperature;
    if (settings.top_p) body["top_p"] = *settings.top_p;
    if (settings.thinking_budget)
      body["thinking"] =
          *settings.thinking_budget == 0
              ? json{{"type", "disabled"}}
              : json{{"type", "enabled"}, {"budget_tokens", *settings.thinking_budget}};
    if (!settings.reasoning_effort.empty()) {
      body["output_config"] = {{"effort", settings.reasoning_effort}};
      // Models from Opus 4.6 on think as the effort says, once they are told that they may.
      if (!settings.thinking_budget) body["thinking"] = {{"type", "adaptive"}};
    }
    if (settings.stream) body["stream"] = true;
    body.merge_patch(settings.extra);
    HttpRequest request{endpoint.base_url + "/v1/messages",
                        {"Content-Type: application/json", "anthropic-version: 2023-06-01"},
                        body.dump(-1, ' ', false, json::error_handler_t::replace)};
    if (!endpoint.key.empty()) request.headers.push_back("x-api-key: " + endpoint.key);
    return request;
  }

  void read_whole(const json& reply, Reading& reading) const override {
    reading.error = read_error(reply);
    reading.model = text_member(reply, "model");
    read_usage(reply, reading);
    read_stop(reply, reading);
    const auto* content = member(reply, "content");
    if (content == nullptr || !content->is_array()) return;
    reading.recognized = true;
    for (const auto& block : *content) {
      reading.text += text_member(block, "text");
      reading.reasoning += text_member(block, "thinking");
    }
  }

  void read_event(std::string_view, const json& data, Reading& reading) const override {
    const std::string type = text_member(data, "type");
    if (type == "error") {
      reading.error = read_error(data);
    } else if (type == "message_start") {
      reading.recognized = true;
      if (const auto* message = member(data, "message")) {
        reading.model = text_member(*message, "model");
        read_usage(*message, reading);
      }
    } else if (type == "content_block_start") {
      if (const auto* block = member(data, "content_block")) {
        reading.text += text_member(*block, "text");
        reading.reasoning += text_member(*block, "thinking");
      }
    } else if (type == "content_block_delta") {
      if (const auto* delta = member(data, "delta")) {
        reading.text += text_member(*delta, "text");
        reading.reasoning += text_member(*delta, "thinking");
      }
    } else if (type == "message_delta") {
      if (const auto* delta = member(data, "delta")) read_stop(*delta, reading);
      read_usage(data, reading);
    } else if (type == "message_stop") {
      reading.closed = true;
    }
  }
};

}  // namespace

const Dialect& anthropic_dialect() {
  static const Anthropic dialect;
  return dialect;
}

}  // namespace kb::llm

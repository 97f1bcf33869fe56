#include "llm/dialect.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <initializer_list>

#include "llm/text.h"

namespace kb::llm {
namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool has_any(const std::string& text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

// Google: {"@type": "…RetryInfo", "retryDelay": "34.5s"} among the details.
std::optional<std::chrono::milliseconds> retry_delay(const nlohmann::json& error) {
  const auto* details = member(error, "details");
  if (details == nullptr || !details->is_array()) return std::nullopt;
  for (const auto& detail : *details) {
    const std::string delay = text_member(detail, "retryDelay");
    char* end = nullptr;
    const double seconds = std::strtod(delay.c_str(), &end);
    if (end != delay.c_str() && std::string_view(end) == "s" && seconds >= 0 && seconds < 1e6)
      return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  }
  return std::nullopt;
}

}  // namespace

const Dialect& dialect_of(Api api) {
  switch (api) {
    case Api::openai: return openai_dialect();
    case Api::anthropic: return anthropic_dialect();
    case Api::google: return google_dialect();
  }
  std::abort();
}

std::optional<ApiError> read_error(const nlohmann::json& reply) {
  // Google wraps what is not streamed as events in an array.
  if (reply.is_array()) return reply.empty() ? std::nullopt : read_error(reply.front());
  const auto* error = member(reply, "error");
  if (error != nullptr && error->is_null()) error = nullptr;
  if (error != nullptr && error->is_string()) return ApiError{error->get<std::string>(), "", 0, {}};
  if (error == nullptr) {
    // vLLM's older form is flat; servers on FastAPI say {"detail": …}.
    if (text_member(reply, "object") == "error")
      error = &reply;
    else if (const auto* detail = member(reply, "detail"))
      return ApiError{detail->is_string() ? detail->get<std::string>() : detail->dump(), "", 0, {}};
    else
      return std::nullopt;
  }
  ApiError found;
  found.message = text_member(*error, "message");
  for (const char* name : {"type", "code", "status", "reason"})
    if (const std::string word = text_member(*error, name); !word.empty()) found.kind += word + " ";
  if (const auto* details = member(*error, "details"); details != nullptr && details->is_array())
    for (const auto& detail : *details)
      if (const std::string reason = text_member(detail, "reason"); !reason.empty())
        found.kind += reason + " ";
  const auto code = count_member(*error, "code");
  if (code && *code >= 300 && *code < 600) found.code = static_cast<int>(*code);
  found.retry_after = retry_delay(*error);
  if (found.message.empty()) found.message = found.kind.empty() ? error->dump() : found.kind;
  return found;
}

Refusal classify(int http_status, const ApiError& error) {
  const std::string kind = lower(error.kind), message = lower(error.message);
  int status = http_status < 300 && error.code != 0 ? error.code : http_status;
  // An error in the middle of a stream has a name and no number.
  if (status < 300) {
    if (has_any(kind, {"overloaded", "server_error", "api_error", "internal", "unavailable"}))
      status = 500;
    else if (has_any(kind, {"rate_limit", "resource_exhausted"}))
      status = 429;
    else if (has_any(kind, {"timeout", "deadline_exceeded"}))
      status = 504;
  }
  if (status == 402 || has_any(kind, {"insufficient_quota", "billing", "insufficient_credits"}) ||
      has_any(message, {"credit balance is too low", "insufficient balance"}))
    return {Status::out_of_credit, false};
  if (status == 401 || status == 403 ||
      has_any(kind, {"authentication_error", "invalid_api_key", "api_key_invalid"}) ||
      (status == 400 && has_any(message, {"api key not valid", "invalid api key"})))
    return {Status::wrong_key, false};
  const bool names_model = has_any(message, {"model"}) || has_any(kind, {"model"});
  if (has_any(kind, {"model_not_found", "not_found_error"}) || (status == 404 && names_model) ||
      (status == 400 && names_model &&
       has_any(message, {"does not exist", "not found", "not a valid model", "unknown model",
                         "invalid model", "model not exist"})))
    return {Status::unknown_model, false};
  if (status == 404 || status == 405 || (status >= 300 && status < 400))
    return {Status::wrong_address, false};
  if (status == 429) return {Status::rate_limited, true};
  if (status == 408 || status == 504 || status == 524) return {Status::timed_out, true};
  if (status >= 500 || status == 409 || status == 425) return {Status::server_error, true};
  return {Status::bad_request, false};
}

}  // namespace kb::llm

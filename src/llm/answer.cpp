#include "llm/answer.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "llm/text.h"

namespace kb::llm {
namespace {

constexpr std::array<std::pair<Status, std::string_view>, 19> kNames = {{
    {Status::answered, "answered"},
    {Status::truncated, "truncated"},
    {Status::refused, "refused"},
    {Status::empty, "empty"},
    {Status::too_large, "too_large"},
    {Status::not_an_answer, "not_an_answer"},
    {Status::cut_off, "cut_off"},
    {Status::timed_out, "timed_out"},
    {Status::rate_limited, "rate_limited"},
    {Status::server_error, "server_error"},
    {Status::unreachable, "unreachable"},
    {Status::insecure, "insecure"},
    {Status::wrong_key, "wrong_key"},
    {Status::out_of_credit, "out_of_credit"},
    {Status::unknown_model, "unknown_model"},
    {Status::bad_request, "bad_request"},
    {Status::wrong_address, "wrong_address"},
    {Status::not_recorded, "not_recorded"},
    {Status::not_asked, "not_asked"},
}};

nlohmann::json to_json(const Attempt& attempt) {
  return {{"status", name_of(attempt.status)},
          {"http_status", attempt.http_status},
          {"seconds", attempt.seconds},
          {"message", attempt.message}};
}

double number_member(const nlohmann::json& object, std::string_view name) {
  const auto* found = member(object, name);
  return found != nullptr && found->is_number() ? found->get<double>() : 0;
}

}  // namespace

std::string_view name_of(Status status) {
  for (const auto& [value, name] : kNames)
    if (value == status) return name;
  std::unreachable();
}

std::optional<Status> parse_status(std::string_view name) {
  for (const auto& [value, known] : kNames)
    if (known == name) return value;
  return std::nullopt;
}

bool is_final(Status status) {
  switch (status) {
    case Status::answered:
    case Status::truncated:
    case Status::refused:
    case Status::empty:
    case Status::too_large: return true;
    default: return false;
  }
}

bool is_hopeless(Status status) {
  switch (status) {
    case Status::unreachable:
    case Status::insecure:
    case Status::wrong_key:
    case Status::out_of_credit:
    case Status::unknown_model:
    case Status::wrong_address: return true;
    default: return false;
  }
}

nlohmann::json to_json(const Answer& answer) {
  auto attempts = nlohmann::json::array();
  for (const auto& attempt : answer.attempts) attempts.push_back(to_json(attempt));
  nlohmann::json usage;
  if (answer.usage)
    usage = {{"input_tokens", answer.usage->input},
             {"cached_input_tokens", answer.usage->cached_input},
             {"output_tokens", answer.usage->output},
             {"reasoning_tokens", answer.usage->reasoning}};
  return {{"status", name_of(answer.status)},
          {"message", answer.message},
          {"text", answer.text},
          {"reasoning", answer.reasoning},
          {"finish_reason", answer.finish_reason},
          {"answered_by", answer.model},
          {"replaced_bytes", answer.replaced_bytes},
          {"usage", std::move(usage)},
          {"cost_usd", answer.cost_usd ? nlohmann::json(*answer.cost_usd) : nlohmann::json()},
          {"cost_source", answer.cost_source},
          {"attempts", std::move(attempts)},
          {"started_at", answer.started_at},
          {"seconds", answer.seconds}};
}

std::expected<Answer, std::string> parse_answer(const nlohmann::json& json) {
  const auto status = parse_status(text_member(json, "status"));
  if (!status) return std::unexpected("it has no `status` that this version knows");
  Answer answer;
  answer.status = *status;
  answer.message = text_member(json, "message");
  answer.text = text_member(json, "text");
  answer.reasoning = text_member(json, "reasoning");
  answer.finish_reason = text_member(json, "finish_reason");
  answer.model = text_member(json, "answered_by");
  answer.replaced_bytes =
      static_cast<std::size_t>(count_member(json, "replaced_bytes").value_or(0));
  if (const auto* usage = member(json, "usage"); usage != nullptr && usage->is_object())
    answer.usage = Usage{count_member(*usage, "input_tokens").value_or(0),
                         count_member(*usage, "cached_input_tokens").value_or(0),
                         count_member(*usage, "output_tokens").value_or(0),
                         count_member(*usage, "reasoning_tokens").value_or(0)};
  if (const auto* cost = member(json, "cost_usd"); cost != nullptr && cost->is_number())
    answer.cost_usd = cost->get<double>();
  answer.cost_source = text_member(json, "cost_source");
  if (const auto* attempts = member(json, "attempts"); attempts != nullptr && attempts->is_array())
    for (const auto& one : *attempts)
      answer.attempts.push_back(
          {parse_status(text_member(one, "status")).value_or(Status::not_asked),
           static_cast<int>(count_member(one, "http_status").value_or(0)),
           number_member(one, "seconds"), text_member(one, "message")});
  answer.started_at = text_member(json, "started_at");
  answer.seconds = number_member(json, "seconds");
  return answer;
}

}  // namespace kb::llm

// What came back for one question: the raw text, or why there is none, and what it took.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::llm {

enum class Status {
  // The model has answered, for better or worse: paid for, kept, never asked again.
  answered,
  truncated,  ///< stopped at the limit of tokens
  refused,    ///< by the model or a filter before it
  empty,      ///< a whole answer without text
  too_large,  ///< more than Limits::max_answer_bytes; the beginning is kept
  // It has not; the question is asked again by the next run.
  not_an_answer,  ///< HTML, half a JSON, a JSON of another shape
  cut_off,        ///< the connection ended in mid-answer
  timed_out,      ///< no whole answer within the limits
  rate_limited,   ///< 429 until the retries were spent
  server_error,   ///< 5xx until the retries were spent
  unreachable,    ///< no such host, no connection, no network
  insecure,       ///< the endpoint's certificate does not prove who it is
  wrong_key,      ///< 401, 403
  out_of_credit,  ///< 402, or a quota that no waiting brings back
  unknown_model,  ///< the endpoint does not serve it
  bad_request,    ///< another 4xx
  wrong_address,  ///< 404 for the path, or a redirection, which is not followed
  not_recorded,   ///< the replay folder has no answer for it
  not_asked,      ///< the run was stopped, or the endpoint had refused every question before
};
std::string_view name_of(Status status);
std::optional<Status> parse_status(std::string_view name);

/// True when there is nothing to ask again.
bool is_final(Status status);
/// True when the endpoint would meet every other question in the same way.
bool is_hopeless(Status status);

/// Tokens as the endpoint counts them.
struct Usage {
  std::int64_t input = 0;         ///< all of them
  std::int64_t cached_input = 0;  ///< of those, read from a cache at a lower price
  std::int64_t output = 0;        ///< all of them
  std::int64_t reasoning = 0;     ///< of those, not part of the answer's text
};

/// One request and its end.
struct Attempt {
  Status status = Status::not_asked;
  int http_status = 0;  ///< 0: there was no reply
  double seconds = 0;
  std::string message;
};

struct Answer {
  Status status = Status::not_asked;
  std::string message;             ///< one line for people; empty when all is well
  std::string text;                ///< what the model wrote, as it came
  std::string reasoning;           ///< what it thought, where the endpoint tells
  std::string finish_reason;       ///< in the endpoint's word
  std::string model;               ///< that answered, in the endpoint's word
  std::size_t replaced_bytes = 0;  ///< ill-formed parts of UTF-8 that became U+FFFD in it
  std::optional<Usage> usage;
  std::optional<double> cost_usd;  ///< none: not known
  std::string cost_source;         ///< "provider", "prices" or empty
  std::vector<Attempt> attempts;
  std::string started_at;  ///< ISO 8601, UTC
  double seconds = 0;      ///< with all attempts and the waits between them
};
nlohmann::json to_json(const Answer& answer);
/// Reads what to_json writes; a missing member has its default, but `status` must be there. Error:
/// one sentence.
std::expected<Answer, std::string> parse_answer(const nlohmann::json& json);

}  // namespace kb::llm

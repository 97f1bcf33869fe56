// The three forms in which models are asked over HTTP: OpenAI's chat completions, which most
// servers speak, Anthropic's messages and Google's generateContent. A dialect makes requests and
// reads replies; it keeps no state and touches no network.
#pragma once

#include <chrono>
#include <expected>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "llm/answer.h"
#include "llm/chat.h"
#include "llm/http.h"
#include "llm/provider.h"

namespace kb::llm {

/// An error object of any of the forms.
struct ApiError {
  std::string message;
  std::string kind;  ///< type, code and status words, for classification
  int code = 0;      ///< an HTTP status, where the object holds one
  std::optional<std::chrono::milliseconds> retry_after;
};

/// An answer being read, event by event or whole.
struct Reading {
  enum class Finish { none, stop, length, refused, other };
  std::string text, reasoning;
  std::string refusal;        ///< the model's or the filter's words
  std::string finish_reason;  ///< the endpoint's word
  std::string model;
  Finish finish = Finish::none;
  std::optional<Usage> usage;
  std::optional<double> cost_usd;  ///< where the endpoint says it
  std::optional<ApiError> error;   ///< in place of an answer, or in the middle of one
  bool recognized = false;         ///< something in it was of the expected shape
  bool closed = false;             ///< the stream's own end has been seen
};

class Dialect {
 public:
  virtual ~Dialect() = default;
  /// Error: one sentence about a setting that this form cannot express.
  virtual std::expected<void, std::string> check(const Endpoint& endpoint,
                                                 const Settings& settings) const = 0;
  virtual HttpRequest request(const Endpoint& endpoint, const Settings& settings,
                              const Question& question) const = 0;
  virtual void read_whole(const nlohmann::json& reply, Reading& reading) const = 0;
  /// `event`: its name, where the form has names.
  virtual void read_event(std::string_view event, const nlohmann::json& data,
                          Reading& reading) const = 0;
};

const Dialect& dialect_of(Api api);
const Dialect& openai_dialect();
const Dialect& anthropic_dialect();
const Dialect& google_dialect();

/// The error in a reply, null when there is none.
std::optional<ApiError> read_error(const nlohmann::json& reply);

/// What a refusal to answer means. `http_status` is the reply's; the error may know better (some
/// endpoints send errors with status 200).
struct Refusal {
  Status status = Status::bad_request;
  bool again = false;  ///< trying later may help
};
Refusal classify(int http_status, const ApiError& error);

}  // namespace kb::llm

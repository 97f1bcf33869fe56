// Asks a model over the network: one question, as many attempts as it takes, and always an Answer.
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>

#include "llm/answer.h"
#include "llm/chat.h"
#include "llm/http.h"
#include "llm/provider.h"
#include "llm/retry.h"

namespace kb::llm {

/// Whoever answers: a Client, or a Replay. May be used by many threads at a time.
class Model {
 public:
  virtual ~Model() = default;
  /// Never throws for what an endpoint does. When `stop` is requested, a question whose request is
  /// out is still waited for (it is paid for); one that waits for its turn is not_asked.
  virtual Answer ask(const Question& question, const std::stop_token& stop) = 0;
};

struct Limits {
  TimeLimits time;
  RetryPolicy retry;
  /// Of one answer with its reasoning. The bytes that carry it may be 16 times as many: a stream
  /// wraps every word.
  std::size_t max_answer_bytes = std::size_t{8} << 20;
};

class Client : public Model {
 public:
  /// `http`, `limiter` and `clock` outlive it. `random`: from [0, 1), called from any thread.
  Client(Endpoint endpoint, Settings settings, const Limits& limits, Http& http,
         RateLimiter& limiter, Clock& clock, std::function<double()> random);

  Answer ask(const Question& question, const std::stop_token& stop) override;

 private:
  struct Outcome;
  Outcome attempt(const HttpRequest& request, Answer& answer);

  Endpoint endpoint_;
  Settings settings_;
  Limits limits_;
  Http& http_;
  RateLimiter& limiter_;
  Clock& clock_;
  std::function<double()> random_;
};

}  // namespace kb::llm

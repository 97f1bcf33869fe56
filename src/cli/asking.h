// What the commands that ask a model share: which model, how, and who answers.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "llm/client.h"
#include "llm/pricing.h"

namespace kb::cli {

/// The command line's words for a model.
struct AskingFlags {
  std::string provider, base_url, api, model, key_variable, extra, prices;
  std::optional<double> temperature, top_p;
  std::optional<int> max_tokens, thinking_budget;
  std::optional<std::int64_t> seed;
  std::string reasoning_effort;
  bool no_stream = false, insecure_http = false;
  unsigned workers = 8;
  int retries = 6;
  std::optional<double> requests_per_minute, tokens_per_minute;
  double connect_timeout_s = 20, timeout_s = 1800, stall_timeout_s = 180;
  std::size_t max_answer_bytes = std::size_t{8} << 20;
};

void add_asking_options(CLI::App& app, AskingFlags& flags);

/// A model made from flags, with all that it needs. UsageError where it cannot be had (no key,
/// unknown provider, a setting that its form cannot express).
class Asking {
 public:
  explicit Asking(const AskingFlags& flags);

  llm::Model& model() { return *model_; }
  /// All that changes an answer; no key.
  const nlohmann::json& configuration() const { return configuration_; }
  /// "gpt-5 of openai", "the answers in examples/replay"
  const std::string& described() const { return described_; }
  bool replays() const { return replays_; }
  /// Fills in what the answer cost, where that is known.
  void price(llm::Answer& answer) const;

 private:
  std::unique_ptr<llm::Http> http_;
  llm::SteadyClock clock_;
  std::optional<llm::RateLimiter> limiter_;
  std::unique_ptr<llm::Model> model_;
  std::optional<llm::Price> price_;
  nlohmann::json configuration_;
  std::string described_;
  bool replays_ = false;
};

/// While it lives, the first Ctrl-C (or SIGTERM) only requests a stop, so that answers under way,
/// which are paid for, can be waited for; the second ends the process. Make it before any thread.
class PatientStop {
 public:
  explicit PatientStop(std::stop_source stop);
  ~PatientStop();
  PatientStop(const PatientStop&) = delete;
  PatientStop& operator=(const PatientStop&) = delete;

 private:
  std::jthread watcher_;
};

}  // namespace kb::cli

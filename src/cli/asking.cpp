#include "cli/asking.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <random>

#include "cli/failure.h"
#include "llm/dialect.h"
#include "llm/replay.h"
#include "llm/text.h"
#include "problem/installation.h"

namespace kb::cli {
namespace {

constexpr std::string_view kReplay = "replay:";

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

llm::Settings settings_from(const AskingFlags& flags) {
  llm::Settings settings{.model = flags.model,
                         .temperature = flags.temperature,
                         .top_p = flags.top_p,
                         .max_tokens = flags.max_tokens,
                         .seed = flags.seed,
                         .reasoning_effort = flags.reasoning_effort,
                         .thinking_budget = flags.thinking_budget,
                         .stream = !flags.no_stream};
  if (!flags.extra.empty()) {
    settings.extra = nlohmann::json::parse(flags.extra, nullptr, false);
    if (!settings.extra.is_object())
      throw UsageError(R"(--extra is a JSON object, such as '{"top_k": 20}')");
  }
  return settings;
}

llm::Limits limits_from(const AskingFlags& flags) {
  llm::Limits limits;
  limits.time = {milliseconds(flags.connect_timeout_s), milliseconds(flags.timeout_s),
                 milliseconds(flags.stall_timeout_s)};
  limits.retry.retries = flags.retries;
  limits.max_answer_bytes = flags.max_answer_bytes;
  return limits;
}

std::optional<llm::Price> price_from(const AskingFlags& flags, const llm::Endpoint& endpoint) {
  const auto file = flags.prices.empty() ? problem::installation_root() / "prices.toml"
                                         : std::filesystem::path(flags.prices);
  return value_or_usage_error(llm::PriceTable::load(file)).find(endpoint.provider, flags.model);
}

}  // namespace

void add_asking_options(CLI::App& app, AskingFlags& flags) {
  const auto seconds = CLI::Range(0.1, 1e6);
  app.add_option("--provider", flags.provider,
                 "openai, anthropic, google, deepseek, together, fireworks, openrouter, sambanova, "
                 "vllm, sglang, ollama, litellm, or replay:FOLDER for recorded answers");
  app.add_option("--base-url", flags.base_url,
                 "of another server, such as http://localhost:8000/v1");
  app.add_option("--api", flags.api, "its form: openai, anthropic or google");
  app.add_option("--model", flags.model, "in the provider's word");
  app.add_option("--key-variable", flags.key_variable,
                 "the environment variable (or line of .env) that holds the key");
  app.add_flag("--insecure-http", flags.insecure_http,
               "let the key travel unencrypted to another machine");
  app.add_option("--temperature", flags.temperature)->check(CLI::Range(0.0, 10.0));
  app.add_option("--top-p", flags.top_p)->check(CLI::Range(0.0, 1.0));
  app.add_option("--max-tokens", flags.max_tokens, "of one answer, its reasoning included")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", flags.seed, "sent to the model; sample i gets this plus i");
  app.add_option("--reasoning-effort", flags.reasoning_effort,
                 "low, medium, high … as the model has it");
  app.add_option("--thinking-budget", flags.thinking_budget, "tokens of reasoning; 0: none")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--extra", flags.extra, "a JSON object that is merged into every request");
  app.add_flag("--no-stream", flags.no_stream, "ask for whole answers");
  app.add_option("--workers", flags.workers, "questions at a time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--retries", flags.retries, "after 429, 5xx, time-outs and lost connections")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  app.add_option("--requests-per-minute", flags.requests_per_minute)->check(CLI::PositiveNumber);
  app.add_option("--tokens-per-minute", flags.tokens_per_minute)->check(CLI::PositiveNumber);
  app.add_option("--connect-timeout", flags.connect_timeout_s, "seconds")
      ->check(seconds)
      ->capture_default_str();
  app.add_option("--answer-timeout", flags.timeout_s, "seconds for one whole answer")
      ->check(seconds)
      ->capture_default_str();
  app.add_option("--stall-timeout", flags.stall_timeout_s,
                 "seconds without a byte, once an answer has begun")
      ->check(seconds)
      ->capture_default_str();
  app.add_option("--max-answer-bytes", flags.max_answer_bytes, "what is more is cut")
      ->check(CLI::Range(std::size_t{1} << 10, std::size_t{32} << 20))
      ->capture_default_str();
  app.add_option("--prices", flags.prices, "a file like the prices.toml that comes with us");
}

Asking::Asking(const AskingFlags& flags) {
  if (flags.provider.starts_with(kReplay)) {
    const std::string folder = flags.provider.substr(kReplay.size());
    model_ = std::make_unique<llm::Replay>(value_or_usage_error(llm::Replay::open(folder)));
    configuration_ = {{"provider", flags.provider}};
    described_ = fmt::format("the answers in {}", llm::one_line(folder));
    replays_ = true;
    return;
  }
  const auto secrets = value_or_usage_error(llm::Secrets::load(
      std::filesystem::current_path(), [](const char* name) { return std::getenv(name); }));
  const auto endpoint = value_or_usage_error(llm::resolve(
      {flags.provider, flags.base_url, flags.api, flags.key_variable, flags.insecure_http},
      secrets));
  if (flags.model.empty())
    throw UsageError("which model? give --model with the provider's name for it");
  const auto settings = settings_from(flags);
  if (auto fits = llm::dialect_of(endpoint.api).check(endpoint, settings); !fits)
    throw UsageError(fits.error());
  price_ = price_from(flags, endpoint);
  configuration_ = {{"provider", endpoint.provider},
                    {"api", llm::name_of(endpoint.api)},
                    {"base_url", endpoint.base_url},
                    {"settings", llm::to_json(settings)}};
  described_ = fmt::format("{} at {}", llm::one_line(flags.model, 80), endpoint.base_url);
  http_ = llm::make_curl_http();
  limiter_.emplace(llm::Rates{flags.requests_per_minute, flags.tokens_per_minute}, clock_);
  // Called by every worker when it has to wait.
  auto random = [generator = std::make_shared<std::mt19937_64>(std::random_device{}()),
                 mutex = std::make_shared<std::mutex>()] {
    const std::scoped_lock lock(*mutex);
    return std::uniform_real_distribution<double>(0, 1)(*generator);
  };
  model_ = std::make_unique<llm::Client>(endpoint, settings, limits_from(flags), *http_, *limiter_,
                                         clock_, std::move(random));
}

void Asking::price(llm::Answer& answer) const {
  if (answer.cost_usd || !answer.usage || !price_) return;
  answer.cost_usd = llm::cost_usd(*price_, *answer.usage);
  answer.cost_source = "prices";
}

PatientStop::PatientStop(std::stop_source stop) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  // Every thread to come inherits the mask; the watcher alone takes the signals.
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  watcher_ = std::jthread([signals, stop](const std::stop_token& ended) mutable {
    constexpr timespec kPeriod{0, 100'000'000};
    while (!ended.stop_requested()) {
      if (sigtimedwait(&signals, nullptr, &kPeriod) < 0) continue;
      stop.request_stop();
      fmt::print(stderr,
                 "\nkernelbench: stopping: waiting for the answers under way, which are paid for "
                 "(once more to quit at once)\n");
      pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
      return;
    }
  });
}

PatientStop::~PatientStop() {
  watcher_.request_stop();
  watcher_.join();
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace kb::cli

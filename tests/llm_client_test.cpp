// The client against a real server on this machine (llm_server.py) that does all that endpoints
// have been seen to do.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <thread>

#include "llm/client.h"
#include "llm/dialect.h"
#include "run_command.h"

namespace kb::llm {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;

const std::string kKey = "test-key-0123456789";
const std::string kCode = "class ModelNew(torch.nn.Module):";

/// The server as a child process; it ends when its standard input does.
class Server {
 public:
  Server() {
    int in[2], out[2];
    if (::pipe(in) != 0 || ::pipe(out) != 0) throw std::runtime_error("pipe failed");
    log_ = folder_.path() / "log";
    const std::string script = test::source_folder() + "/tests/llm_server.py";
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      for (const int fd : {in[0], in[1], out[0], out[1]}) ::close(fd);
      ::execlp("python3", "python3", script.c_str(), "--log", log_.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    std::string line;
    for (char c = 0; ::read(out[0], &c, 1) == 1 && c != '\n';) line += c;
    ::close(out[0]);
    port_ = line.empty() ? 0 : std::stoi(line);
  }
  ~Server() {
    ::close(input_);
    ::kill(child_, SIGTERM);
    ::waitpid(child_, nullptr, 0);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const { return port_; }
  std::vector<nlohmann::json> requests() const {
    std::vector<nlohmann::json> all;
    std::ifstream log(log_);
    for (std::string line; std::getline(log, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  }

 private:
  test::TemporaryFolder folder_;
  std::string log_;
  pid_t child_ = -1;
  int input_ = -1;
  int port_ = 0;
};

/// Waits for nothing, and remembers how long it would have.
class HastyClock : public Clock {
 public:
  Time now() override { return std::chrono::steady_clock::now() + skipped_; }
  bool wait_until(Time time, const std::stop_token& stop) override {
    const auto wait = time - now();
    waits.push_back(std::chrono::duration<double>(wait).count());
    if (wait > 0s) skipped_ += wait;
    return !stop.stop_requested();
  }
  std::vector<double> waits;

 private:
  std::chrono::steady_clock::duration skipped_{};
};

class ClientTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<Server>(); }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override {
    ASSERT_GT(server_->port(), 0) << "python3 tests/llm_server.py did not start";
    limits.time = {2s, 10s, 5s};
    limits.retry.retries = 2;
  }

  Endpoint endpoint(Api api) const {
    const std::string root = "http://127.0.0.1:" + std::to_string(server_->port());
    switch (api) {
      case Api::openai: return {"custom", api, root + "/v1", key, {}};
      case Api::anthropic: return {"anthropic", api, root, key, {}};
      case Api::google: return {"google", api, root + "/v1beta", key, {}};
    }
    std::abort();
  }

  Answer ask(const std::string& model, Api api = Api::openai, bool stream = true) {
    settings.model = model;
    settings.stream = stream;
    return ask_at(endpoint(api));
  }

  Answer ask_at(const Endpoint& endpoint) {
    RateLimiter limiter({}, clock);
    Client client(endpoint, settings, limits, *http, limiter, clock, [] { return 0.5; });
    const auto before = server_->requests().size();
    const Answer answer = client.ask(
        {"q", 0, {"You write kernels.", {{Message::From::user, "Write one."}}}}, stop.get_token());
    const auto requests = server_->requests();
    seen.assign(requests.begin() + static_cast<std::ptrdiff_t>(before), requests.end());
    // Whatever happens, the key is nowhere but in the request.
    EXPECT_THAT(to_json(answer).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                Not(HasSubstr(kKey)));
    return answer;
  }

  static std::unique_ptr<Server> server_;
  std::string key = kKey;
  Settings settings;
  Limits limits;
  HastyClock clock;
  std::stop_source stop;
  std::unique_ptr<Http> http = make_curl_http();
  std::vector<nlohmann::json> seen;  // the server's log of the last question
};
std::unique_ptr<Server> ClientTest::server_;

struct Way {
  Api api;
  bool stream;
};

class EveryWay : public ClientTest, public testing::WithParamInterface<Way> {
 protected:
  Answer ask_so(const std::string& model) { return ask(model, GetParam().api, GetParam().stream); }
};

INSTANTIATE_TEST_SUITE_P(Apis, EveryWay,
                         testing::Values(Way{Api::openai, true}, Way{Api::openai, false},
                                         Way{Api::anthropic, true}, Way{Api::anthropic, false},
                                         Way{Api::google, true}, Way{Api::google, false}),
                         [](const auto& one) {
                           return std::string(name_of(one.param.api)) +
                                  (one.param.stream ? "_stream" : "_whole");
                         });

TEST_P(EveryWay, AnAnswer) {
  const Answer answer = ask_so("good");
  EXPECT_EQ(name_of(answer.status), "answered") << answer.message;
  EXPECT_THAT(answer.text, AllOf(StartsWith("Here is the kernel."), HasSubstr(kCode)));
  EXPECT_EQ(answer.model, "served-model");
  ASSERT_TRUE(answer.usage);
  EXPECT_EQ(answer.usage->input, 1000);
  EXPECT_EQ(answer.usage->cached_input, 400);
  EXPECT_EQ(answer.usage->output, 200);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_TRUE(seen[0]["key_ok"]);
}

TEST_P(EveryWay, ThoughtsAreKeptApart) {
  const Answer answer = ask_so("thinks");
  EXPECT_EQ(name_of(answer.status), "answered");
  EXPECT_THAT(answer.text, StartsWith("Here is the kernel."));
  EXPECT_THAT(answer.reasoning, HasSubstr("bound by memory"));
}

TEST_P(EveryWay, TruncatedRefusedAndEmptyAreAnswers) {
  const Answer cut = ask_so("truncated");
  EXPECT_EQ(name_of(cut.status), "truncated");
  EXPECT_THAT(cut.text, HasSubstr("class ModelNew"));
  EXPECT_EQ(name_of(ask_so("refused").status), "refused");
  EXPECT_EQ(name_of(ask_so("empty").status), "empty");
  EXPECT_EQ(seen.size(), 1u) << "an empty answer is paid for and not asked again";
}

TEST_P(EveryWay, RefusalsByStatus) {
  const std::vector<std::pair<const char*, const char*>> faults = {
      {"401", "wrong_key"},         {"403", "wrong_key"},
      {"404", "unknown_model"},     {"no_such_model", "unknown_model"},
      {"402", "out_of_credit"},     {"400", "bad_request"},
      {"no_path", "wrong_address"}, {"redirect", "wrong_address"}};
  for (const auto& [model, status] : faults) {
    const Answer answer = ask_so(model);
    EXPECT_EQ(name_of(answer.status), status) << model << ": " << answer.message;
    EXPECT_EQ(seen.size(), 1u) << model << " is not to be tried again";
    EXPECT_FALSE(answer.message.empty());
    EXPECT_FALSE(answer.usage) << "an unknown usage is not none";
  }
}

TEST_P(EveryWay, AWrongKeyIsSaid) {
  key = "another-key";
  const Answer answer = ask_so("good");
  EXPECT_EQ(name_of(answer.status), "wrong_key");
  EXPECT_THAT(answer.message, HasSubstr("Incorrect API key"));
}

TEST_P(EveryWay, TemporaryFaultsAreTriedAgain) {
  for (const char* fault : {"429", "429date", "500", "503", "529", "html500", "reset", "cut_off"}) {
    const Answer answer = ask_so(std::string("seq.") + fault + "." + fault + ".good");
    EXPECT_EQ(name_of(answer.status), "answered") << fault << ": " << answer.message;
    EXPECT_EQ(answer.text.find("Here is"), 0u) << "nothing is left of " << fault;
    // libcurl itself repeats a request that a kept connection swallowed.
    EXPECT_GE(answer.attempts.size(), std::string(fault) == "reset" ? 2u : 3u) << fault;
  }
}

TEST_P(EveryWay, RetriesEnd) {
  EXPECT_EQ(name_of(ask_so("429").status), "rate_limited");
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(name_of(ask_so("500").status), "server_error");
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(name_of(ask_so("cut_off").status), "cut_off");
  EXPECT_EQ(seen.size(), 3u);
}

TEST_P(EveryWay, ALongWaitIsNotGranted) {
  const Answer answer = ask_so("429long");
  EXPECT_EQ(name_of(answer.status), "rate_limited");
  EXPECT_THAT(answer.message, HasSubstr("86400 s"));
  EXPECT_EQ(seen.size(), 1u);
}

TEST_P(EveryWay, WhatIsNoAnswer) {
  for (const char* fault : {"html", "half_json", "half_event", "other_json", "a_list", "nothing"}) {
    const Answer answer = ask_so(fault);
    EXPECT_EQ(name_of(answer.status), "not_an_answer") << fault << ": " << answer.message;
    EXPECT_FALSE(is_final(answer.status));
  }
  EXPECT_THAT(ask_so("html").message, HasSubstr("HTML page"));
}

TEST_P(EveryWay, TenMegabytes) {
  limits.max_answer_bytes = std::size_t{1} << 20;
  const Answer answer = ask_so("big");
  EXPECT_EQ(name_of(answer.status), "too_large") << answer.message;
  EXPECT_LE(answer.text.size(), limits.max_answer_bytes);
  limits.max_answer_bytes = std::size_t{11} << 20;
  EXPECT_EQ(name_of(ask_so("big").status), "answered");
}

TEST_P(EveryWay, AnEndlessReplyEnds) {
  limits.max_answer_bytes = std::size_t{256} << 10;
  for (const char* fault : {"endless", "endless_line", "endless_comments"}) {
    const Answer answer = ask_so(fault);
    EXPECT_EQ(name_of(answer.status), "too_large") << fault << ": " << answer.message;
    EXPECT_EQ(seen.size(), 1u);
  }
}

TEST_P(EveryWay, SilenceAndStallsEnd) {
  limits.retry.retries = 1;
  limits.time = {2s, 500ms, 5s};
  EXPECT_EQ(name_of(ask_so("silent").status), "timed_out");
  EXPECT_EQ(seen.size(), 2u);
  limits.time = {2s, 30s, 300ms};
  EXPECT_EQ(name_of(ask_so("stalls").status), "timed_out");
  EXPECT_EQ(name_of(ask_so("slow").status), "answered") << "before the first byte a model thinks";
}

TEST_P(EveryWay, InvalidUtf8IsReplacedAndSaid) {
  for (const char* fault : {"invalid_utf8", "half_surrogate"}) {
    const Answer answer = ask_so(fault);
    EXPECT_EQ(name_of(answer.status), "answered") << fault << ": " << answer.message;
    EXPECT_THAT(answer.text, HasSubstr(kCode));
    EXPECT_GT(answer.replaced_bytes, 0u) << fault;
  }
}

TEST_P(EveryWay, TheKeyIsNeverQuoted) {
  // ask_at looks through all that is kept.
  EXPECT_EQ(name_of(ask_so("quotes_key").status), "bad_request");
  EXPECT_THAT(ask_so("says_key").text, HasSubstr("[key]"));
}

TEST_P(EveryWay, MessagesAreOneCleanLine) {
  const Answer answer = ask_so("escapes");
  EXPECT_THAT(answer.message, AllOf(HasSubstr("red"), Not(HasSubstr("\x1b")), Not(HasSubstr("\n")),
                                    Not(HasSubstr("\xc2\x9b"))));
  EXPECT_LT(answer.message.size(), 400u);
}

TEST_P(EveryWay, StoppedBeforeItsTurn) {
  stop.request_stop();
  EXPECT_EQ(name_of(ask_so("good").status), "not_asked");
  EXPECT_THAT(seen, IsEmpty());
}

class EveryStream : public EveryWay {};
INSTANTIATE_TEST_SUITE_P(Apis, EveryStream,
                         testing::Values(Way{Api::openai, true}, Way{Api::anthropic, true},
                                         Way{Api::google, true}),
                         [](const auto& one) { return std::string(name_of(one.param.api)); });

TEST_P(EveryStream, OddStreamsAreRead) {
  for (const char* way : {"ignores_stream", "unnamed_stream", "comments", "no_done"}) {
    const Answer answer = ask_so(way);
    EXPECT_EQ(name_of(answer.status), "answered") << way << ": " << answer.message;
    EXPECT_THAT(answer.text, HasSubstr(kCode)) << way;
  }
}

TEST_P(EveryStream, AStreamThatStaysOpenIsNotWaitedFor) {
  limits.time = {2s, 30s, 2s};
  const Answer answer = ask_so("stays_open");
  EXPECT_EQ(name_of(answer.status), "answered") << answer.message;
  EXPECT_EQ(seen.size(), 1u);
}

TEST_P(EveryStream, AnErrorInMidStreamIsTriedAgain) {
  const Answer again = ask_so("seq.error_in_stream.good");
  EXPECT_EQ(name_of(again.status), "answered") << again.message;
  EXPECT_THAT(again.text, StartsWith("Here is"));
  const Answer answer = ask_so("error_in_stream");
  EXPECT_EQ(name_of(answer.status), "server_error") << answer.message;
  EXPECT_THAT(answer.message, HasSubstr("Overloaded"));
}

TEST_P(EveryStream, WhatCameBeforeTheCutIsKept) {
  const Answer answer = ask_so("cut_off");
  EXPECT_EQ(name_of(answer.status), "cut_off");
  EXPECT_THAT(answer.text, StartsWith("Here is"));
}

TEST_F(ClientTest, RefusalInWords) {
  const Answer answer = ask("refuses_in_words", Api::openai, false);
  EXPECT_EQ(name_of(answer.status), "refused");
  EXPECT_THAT(answer.message, HasSubstr("I will not write kernels."));
  EXPECT_EQ(name_of(ask("blocked", Api::google, false).status), "refused");
}

TEST_F(ClientTest, AnErrorWithStatus200) {
  EXPECT_EQ(name_of(ask("error_with_200", Api::openai, false).status), "server_error");
  EXPECT_EQ(seen.size(), 3u);
}

TEST_F(ClientTest, AQuotaIsNotWaitedFor) {
  EXPECT_EQ(name_of(ask("quota").status), "out_of_credit");
  EXPECT_EQ(seen.size(), 1u);
}

TEST_F(ClientTest, NobodyThere) {
  limits.time.connect = 1s;
  Endpoint nobody = endpoint(Api::openai);
  nobody.base_url = "http://127.0.0.1:1/v1";
  EXPECT_EQ(name_of(ask_at(nobody).status), "unreachable");
  nobody.base_url = "http://no-such-host.invalid/v1";
  const Answer answer = ask_at(nobody);
  EXPECT_EQ(name_of(answer.status), "unreachable");
  EXPECT_THAT(answer.message, HasSubstr("no-such-host.invalid"));
}

TEST_F(ClientTest, TlsToAServerWithoutIt) {
  Endpoint plain = endpoint(Api::openai);
  plain.base_url = "https" + plain.base_url.substr(4);
  const Answer answer = ask_at(plain);
  EXPECT_THAT(name_of(answer.status), AnyOf("unreachable", "insecure")) << answer.message;
  EXPECT_THAT(seen, IsEmpty());
}

TEST_F(ClientTest, OtherProtocolsAreNotSpoken) {
  Endpoint file = endpoint(Api::openai);
  file.base_url = "file:///etc";
  EXPECT_EQ(name_of(ask_at(file).status), "wrong_address");
}

TEST_F(ClientTest, WaitsGrowAndAreShared) {
  limits.retry.retries = 3;
  ask("500");
  ASSERT_EQ(clock.waits.size(), 3u);
  EXPECT_NEAR(clock.waits[0], 0.75, 0.1);
  EXPECT_NEAR(clock.waits[1], 1.5, 0.1);
  EXPECT_NEAR(clock.waits[2], 3, 0.1);
}

TEST_F(ClientTest, SettingsReachTheServer) {
  settings.temperature = 0.5;
  settings.top_p = 0.9;
  settings.max_tokens = 3000;
  settings.reasoning_effort = "high";
  settings.seed = 7;
  settings.extra = {{"chat_template_kwargs", {{"enable_thinking", true}}}};
  ask("good");
  auto body = seen.at(0)["body"];
  EXPECT_EQ(body["temperature"], 0.5);
  EXPECT_EQ(body["top_p"], 0.9);
  EXPECT_EQ(body["max_tokens"], 3000);
  EXPECT_EQ(body["reasoning_effort"], "high");
  EXPECT_EQ(body["seed"], 7);
  EXPECT_EQ(body["chat_template_kwargs"]["enable_thinking"], true);
  EXPECT_EQ(body["messages"][0]["role"], "system");
  EXPECT_EQ(body["messages"][1]["content"], "Write one.");

  settings.extra = nlohmann::json::object();
  settings.reasoning_effort.clear();
  settings.thinking_budget = 2000;
  ask("good", Api::google);
  body = seen.at(0)["body"];
  EXPECT_EQ(body["generationConfig"]["thinkingConfig"]["thinkingBudget"], 2000);
  EXPECT_EQ(body["generationConfig"]["maxOutputTokens"], 3000);
  EXPECT_EQ(body["generationConfig"]["topP"], 0.9);
  EXPECT_EQ(body["generationConfig"]["seed"], 7);
  EXPECT_EQ(body["systemInstruction"]["parts"][0]["text"], "You write kernels.");

  settings.seed.reset();
  settings.temperature.reset();
  ask("good", Api::anthropic);
  body = seen.at(0)["body"];
  EXPECT_EQ(body["thinking"], nlohmann::json({{"type", "enabled"}, {"budget_tokens", 2000}}));
  EXPECT_EQ(body["system"], "You write kernels.");
  settings.thinking_budget.reset();
  settings.reasoning_effort = "low";
  ask("good", Api::anthropic);
  body = seen.at(0)["body"];
  EXPECT_EQ(body["thinking"]["type"], "adaptive");
  EXPECT_EQ(body["output_config"]["effort"], "low");
}

TEST_F(ClientTest, ManyWorkersAtOnce) {
  settings.model = "slow";
  RateLimiter limiter({}, clock);
  Client client(endpoint(Api::openai), settings, limits, *http, limiter, clock, [] { return 0.5; });
  std::vector<Answer> answers(8);
  {
    std::vector<std::jthread> workers;
    for (std::size_t i = 0; i < answers.size(); ++i)
      workers.emplace_back([&, i] {
        answers[i] = client.ask({"q", static_cast<int>(i), {"", {{Message::From::user, "?"}}}}, {});
      });
  }
  for (const auto& answer : answers) EXPECT_EQ(name_of(answer.status), "answered");
}

}  // namespace
}  // namespace kb::llm

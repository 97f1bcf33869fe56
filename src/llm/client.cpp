// A reply is read while it arrives, so that an endless one ends at a limit and a broken one keeps
// what came before the break. What befalls one question is written down in its Answer and nowhere
// else: the others go on.
#include "llm/client.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "llm/dialect.h"
#include "llm/stream.h"
#include "llm/text.h"

namespace kb::llm {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMaxErrorBytes = std::size_t{64} << 10;
constexpr std::size_t kStreamOverhead = 16;
// A shorter "key" is a word that a server without keys is given ("EMPTY", "none"), and may as well
// stand in a kernel.
constexpr std::size_t kShortestKeyInText = 16;

double seconds_between(Clock::Time from, Clock::Time to) {
  return std::chrono::duration<double>(to - from).count();
}

bool looks_like_html(std::string_view content_type, std::string_view body) {
  const auto first = body.find_first_not_of(" \t\r\n");
  return content_type.starts_with("text/html") ||
         (first != std::string_view::npos && body[first] == '<');
}

bool looks_like_events(std::string_view body) {
  const auto first = body.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  body.remove_prefix(first);
  return body.starts_with("data:") || body.starts_with("event:") || body.starts_with(": ");
}

// Takes one reply in: a stream of events, a whole JSON, or an error's text.
class Reception : public HttpReceiver {
 public:
  Reception(const Dialect& dialect, std::size_t max_answer_bytes)
      : dialect_(dialect), max_answer_bytes_(max_answer_bytes), events_(max_answer_bytes * 2) {}

  void begin(const HttpHead& head) override {
    head_ = head;
    if (head.status < 200 || head.status >= 300)
      form_ = Form::error;
    else if (head.content_type.starts_with("text/event-stream"))
      form_ = Form::stream;
  }

  bool body(std::string_view bytes) override {
    received_ += bytes.size();
    if (form_ == Form::error) {
      // Enough to know what went wrong.
      body_ += bytes.substr(0, kMaxErrorBytes - body_.size());
      return body_.size() < kMaxErrorBytes;
    }
    if (received_ > max_answer_bytes_ * kStreamOverhead) return !(too_large_ = true);
    if (form_ == Form::whole) {
      body_ += bytes;
      // Some servers forget to name their streams.
      if (!head_.content_type.starts_with("application/json") && looks_like_events(body_)) {
        form_ = Form::stream;
        const std::string begun = std::exchange(body_, {});
        return take_events(begun);
      }
      // JSON's escapes can double a text.
      if (body_.size() > 2 * max_answer_bytes_ + kMaxErrorBytes) return !(too_large_ = true);
      return true;
    }
    return take_events(bytes);
  }

  bool has_all() const override { return reading_.closed; }

  // Call once, after the transfer.
  void finish() {
    if (form_ == Form::stream && !too_large_ && !malformed_ && !reading_.closed && !reading_.error)
      events_.finish([this](auto event, auto data) { return take_event(event, data); });
    if (form_ != Form::whole || too_large_) return;
    auto parsed = parse_json(body_);
    if (!parsed) {
      malformed_ = true;
      return;
    }
    replaced_ = parsed->replaced;
    dialect_.read_whole(parsed->json, reading_);
    check_size();
  }

  enum class Form { whole, stream, error };
  Form form() const { return form_; }
  const HttpHead& head() const { return head_; }
  const std::string& body_text() const { return body_; }
  Reading& reading() { return reading_; }
  bool too_large() const { return too_large_; }
  bool malformed() const { return malformed_; }
  std::size_t received() const { return received_; }
  std::size_t replaced() const { return replaced_; }

 private:
  bool take_events(std::string_view bytes) {
    const auto result =
        events_.feed(bytes, [this](auto event, auto data) { return take_event(event, data); });
    if (result == EventStream::Result::event_too_large) too_large_ = true;
    return result == EventStream::Result::more;
  }

  bool take_event(std::string_view event, std::string_view data) {
    if (data == "[DONE]") {
      reading_.closed = true;
      return true;
    }
    if (reading_.closed || is_blank(data)) return true;
    const auto parsed = parse_json(data);
    if (!parsed) {
      malformed_ = true;
      return false;
    }
    replaced_ += parsed->replaced;
    dialect_.read_event(event, parsed->json, reading_);
    check_size();
    return !too_large_ && !reading_.error;
  }

  void check_size() {
    if (reading_.text.size() + reading_.reasoning.size() <= max_answer_bytes_) return;
    too_large_ = true;
    cut_utf8(reading_.reasoning, max_answer_bytes_);
    cut_utf8(reading_.text, max_answer_bytes_ - reading_.reasoning.size());
  }

  const Dialect& dialect_;
  std::size_t max_answer_bytes_;
  HttpHead head_;
  Form form_ = Form::whole;
  EventStream events_;
  Reading reading_;
  std::string body_;
  std::size_t received_ = 0, replaced_ = 0;
  bool too_large_ = false, malformed_ = false;
};

std::optional<milliseconds> asked_wait(const HttpHead& head, const std::optional<ApiError>& error) {
  const auto now = std::chrono::system_clock::now();
  if (const auto wait = parse_retry_after(head.retry_after_ms, now)) return *wait / 1000;
  if (const auto wait = parse_retry_after(head.retry_after, now)) return wait;
  return error ? error->retry_after : std::nullopt;
}

std::string host_of(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme == std::string_view::npos) return "another path";
  const std::string_view rest = url.substr(scheme + 3);
  const std::string_view host = rest.substr(0, rest.find_first_of("/?#"));
  return one_line(host.substr(host.find('@') == std::string_view::npos ? 0 : host.find('@') + 1),
                  100);
}

std::string size_text(std::size_t bytes) {
  return bytes < (std::size_t{1} << 20) ? fmt::format("{} KiB", bytes >> 10)
                                        : fmt::format("{} MiB", bytes >> 20);
}

}  // namespace

struct Client::Outcome {
  Status status = Status::not_asked;
  std::string message;
  int http_status = 0;
  bool again = false;
  std::optional<milliseconds> asked;
};

Client::Client(Endpoint endpoint, Settings settings, const Limits& limits, Http& http,
               RateLimiter& limiter, Clock& clock, std::function<double()> random)
    : endpoint_(std::move(endpoint)),
      settings_(std::move(settings)),
      limits_(limits),
      http_(http),
      limiter_(limiter),
      clock_(clock),
      random_(std::move(random)) {}

Client::Outcome Client::attempt(const HttpRequest& request, Answer& answer) {
  Reception reception(dialect_of(endpoint_.api), limits_.max_answer_bytes);
  const HttpResult result = http_.post(request, limits_.time, reception);
  reception.finish();
  Reading& reading = reception.reading();

  // A later attempt that brings nothing leaves what an earlier one brought.
  if (reading.recognized || answer.text.empty()) {
    answer.text = std::move(reading.text);
    answer.reasoning = std::move(reading.reasoning);
    answer.finish_reason = std::move(reading.finish_reason);
    answer.replaced_bytes = reception.replaced();
    answer.usage = reading.usage;
    answer.cost_usd = reading.cost_usd;
    if (!reading.model.empty()) answer.model = one_line(reading.model, 200);
  }
  if (reading.usage) limiter_.spend_tokens(reading.usage->input + reading.usage->output);

  // Endpoints have been seen to quote headers back; the mask comes before the cut.
  const auto shown = [&](std::string text, std::size_t max_bytes = 300) {
    mask_secret(text, endpoint_.key);
    return is_blank(text) ? std::string("it says nothing") : one_line(text, max_bytes);
  };
  Outcome outcome;
  outcome.http_status = reception.head().status;
  const auto is = [&](Status status, std::string message, bool again = false) {
    outcome.status = status;
    outcome.message = std::move(message);
    outcome.again = again;
    return outcome;
  };

  // The reply says no.
  std::optional<ApiError> error = reading.error;
  if (reception.form() == Reception::Form::error) {
    if (const auto parsed = parse_json(reception.body_text())) error = read_error(parsed->json);
    const bool html = looks_like_html(reception.head().content_type, reception.body_text());
    if (!error) error = ApiError{html ? "an HTML page" : reception.body_text(), "", 0, {}};
    const Refusal refusal = classify(outcome.http_status, *error);
    outcome.asked = asked_wait(reception.head(), error);
    if (outcome.http_status < 400)
      return is(Status::wrong_address,
                fmt::format("redirects to {}, and a key is not taken there: give the right "
                            "--base-url",
                            host_of(reception.head().location)));
    return is(refusal.status,
              fmt::format("HTTP {}: {}", outcome.http_status, shown(error->message)),
              refusal.again);
  }
  if (error) {
    const Refusal refusal = classify(outcome.http_status, *error);
    outcome.asked = asked_wait(reception.head(), error);
    return is(refusal.status, shown(error->message), refusal.again);
  }

  // Nothing that could be a reply.
  switch (result.end) {
    case HttpEnd::unreachable: return is(Status::unreachable, shown(result.message), true);
    case HttpEnd::insecure: return is(Status::insecure, shown(result.message));
    case HttpEnd::bad_url: return is(Status::wrong_address, shown(result.message));
    default: break;
  }
  if (reception.too_large())
    return is(Status::too_large,
              fmt::format("more than {} of answer, or {} of transfer: cut there",
                          size_text(limits_.max_answer_bytes),
                          size_text(limits_.max_answer_bytes * kStreamOverhead)));

  // A reply that has its end counts, however the connection ended.
  const bool has_end = reading.finish != Reading::Finish::none || reading.closed;
  if (!has_end && result.end == HttpEnd::timed_out)
    return is(
        Status::timed_out,
        reception.received() == 0
            ? fmt::format("no reply: {}", shown(result.message))
            : fmt::format("no whole answer within {} s, and {} s without a byte end it too",
                          limits_.time.total.count() / 1000, limits_.time.stall.count() / 1000),
        true);
  if (!has_end && result.end == HttpEnd::cut_off)
    return is(Status::cut_off, shown(result.message), true);
  if (reception.malformed() || !reading.recognized) {
    if (looks_like_html(reception.head().content_type, reception.body_text()))
      return is(Status::not_an_answer, "an HTML page came in place of JSON: check --base-url");
    return is(Status::not_an_answer, reception.malformed()
                                         ? "what came is not JSON, or half of one"
                                         : fmt::format("a reply without an answer in it: {}",
                                                       shown(reception.body_text(), 120)));
  }
  if (!has_end && reception.form() == Reception::Form::stream)
    return is(Status::cut_off, "the stream ended before the answer did", true);

  // An answer.
  if (reading.finish == Reading::Finish::refused)
    return is(Status::refused, shown(reading.refusal));
  if (reading.finish == Reading::Finish::length)
    return is(Status::truncated, "stopped at the limit of tokens");
  if (is_blank(answer.text)) {
    if (!reading.refusal.empty()) return is(Status::refused, shown(reading.refusal));
    return is(Status::empty, "the answer has no text");
  }
  return is(Status::answered, "");
}

Answer Client::ask(const Question& question, const std::stop_token& stop) {
  const HttpRequest request = dialect_of(endpoint_.api).request(endpoint_, settings_, question);
  Answer answer;
  answer.started_at = fmt::format(
      "{:%Y-%m-%dT%H:%M:%SZ}",
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
  const auto start = clock_.now();
  for (int tried = 0; limiter_.admit(stop);) {
    const auto begun = clock_.now();
    Outcome outcome = attempt(request, answer);
    answer.status = outcome.status;
    answer.message = outcome.message;
    answer.attempts.push_back({outcome.status, outcome.http_status,
                               seconds_between(begun, clock_.now()), outcome.message});
    if (!outcome.again || tried++ == limits_.retry.retries) break;
    const auto wait = wait_before(tried, outcome.asked, random_(), limits_.retry);
    if (!wait) {
      answer.message +=
          fmt::format(" (it asks to wait {} s, which is too long)", outcome.asked->count() / 1000);
      break;
    }
    const auto until = clock_.now() + *wait;
    if (outcome.status == Status::rate_limited) limiter_.hold_until(until);
    if (!clock_.wait_until(until, stop)) break;
  }
  answer.seconds = seconds_between(start, clock_.now());
  if (endpoint_.key.size() >= kShortestKeyInText)
    for (std::string* text :
         {&answer.text, &answer.reasoning, &answer.finish_reason, &answer.model})
      mask_secret(*text, endpoint_.key);
  if (answer.cost_usd) answer.cost_source = "provider";
  return answer;
}

}  // namespace kb::llm

// One POST over HTTP, with limits on all that an endpoint can do to us. The client behind it is
// libcurl; tests of what lies above use their own.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kb::llm {

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  ///< "name: value"
  std::string body;
};

struct TimeLimits {
  std::chrono::milliseconds connect{20'000};
  std::chrono::milliseconds total{1'800'000};
  /// Between two bytes of a reply that has begun. Before its first byte a model may think, and
  /// only `total` counts.
  std::chrono::milliseconds stall{180'000};
};

/// What a reply begins with; header values as sent, empty when they are missing.
struct HttpHead {
  int status = 0;
  std::string content_type, retry_after, retry_after_ms, location;
};

/// Takes a reply in.
class HttpReceiver {
 public:
  virtual ~HttpReceiver() = default;
  /// Once, before any body; not at all when there was no reply.
  virtual void begin(const HttpHead& head) = 0;
  /// False ends the transfer.
  virtual bool body(std::string_view bytes) = 0;
  /// True when all that matters has come: an endpoint that keeps the connection open is not waited
  /// for much longer.
  virtual bool has_all() const = 0;
};

/// How a transfer ended; a reply of any status may be `complete`.
enum class HttpEnd {
  complete,
  ended_by_receiver,
  unreachable,  ///< no such host, nobody listens, no route, no TLS
  insecure,     ///< a certificate that proves nothing
  timed_out,
  cut_off,  ///< the connection ended before the reply did
  bad_url,
};

struct HttpResult {
  HttpEnd end = HttpEnd::complete;
  std::string message;  ///< libcurl's, in one sentence; holds no header of ours
};

/// May be used by many threads at a time.
class Http {
 public:
  virtual ~Http() = default;
  virtual HttpResult post(const HttpRequest& request, const TimeLimits& limits,
                          HttpReceiver& receiver) = 0;
};

/// The real one: HTTP and HTTPS only, certificates verified (against $CURL_CA_BUNDLE or
/// $SSL_CERT_FILE where they are set), proxies as the environment says, redirections not followed.
std::unique_ptr<Http> make_curl_http();

}  // namespace kb::llm

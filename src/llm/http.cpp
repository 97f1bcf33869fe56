#include "llm/http.h"

#include <curl/curl.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <mutex>
#include <stdexcept>

#include "version.h"

namespace kb::llm {
namespace {

using Clock = std::chrono::steady_clock;

// How long an endpoint may keep a connection open after the last event of an answer. The end of the
// transfer usually comes in the same packet; waiting for it keeps the connection for the next one.
constexpr std::chrono::seconds kAfterAll{2};

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
using Easy = std::unique_ptr<CURL, FreeEasy>;

struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using List = std::unique_ptr<curl_slist, FreeList>;

// One transfer's state, reached from libcurl's callbacks.
struct Transfer {
  HttpReceiver& receiver;
  const TimeLimits& limits;
  HttpHead head;
  bool begun = false;
  bool ended_by_receiver = false;
  Clock::time_point last_byte;

  void begin() {
    if (!begun) receiver.begin(head);
    begun = true;
  }
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::tolower(static_cast<unsigned char>(a[i])) !=
        std::tolower(static_cast<unsigned char>(b[i])))
      return false;
  return true;
}

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) {
    transfer.head = {};  // of the last reply, where there are several (100 Continue)
    return line.size();
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return line.size();
  const std::string_view name = line.substr(0, colon);
  HttpHead& head = transfer.head;
  const std::array<std::pair<std::string_view, std::string*>, 4> wanted = {{
      {"content-type", &head.content_type},
      {"retry-after", &head.retry_after},
      {"retry-after-ms", &head.retry_after_ms},
      {"location", &head.location},
  }};
  for (const auto& [known, value] : wanted)
    if (equal_ignoring_case(name, known)) *value = trimmed(line.substr(colon + 1));
  return line.size();
}

struct Handle {
  CURL* easy;
  Transfer* transfer;
};

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
  const auto& handle = *static_cast<Handle*>(user);
  Transfer& transfer = *handle.transfer;
  transfer.last_byte = Clock::now();
  if (!transfer.begun) {
    long status = 0;
    curl_easy_getinfo(handle.easy, CURLINFO_RESPONSE_CODE, &status);
    transfer.head.status = static_cast<int>(status);
    transfer.begin();
  }
  if (transfer.receiver.body({data, size * count})) return size * count;
  transfer.ended_by_receiver = true;
  return size * count == 0 ? 1 : 0;  // anything else than what was given ends the transfer
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const Transfer& transfer = *static_cast<Transfer*>(user);
  if (!transfer.begun) return 0;
  const auto silence = Clock::now() - transfer.last_byte;
  return transfer.receiver.has_all() ? silence > kAfterAll : silence > transfer.limits.stall;
}

HttpEnd end_of(CURLcode code) {
  switch (code) {
    case CURLE_OK: return HttpEnd::complete;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR: return HttpEnd::unreachable;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS: return HttpEnd::insecure;
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_ABORTED_BY_CALLBACK: return HttpEnd::timed_out;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL: return HttpEnd::bad_url;
    default: return HttpEnd::cut_off;
  }
}

class CurlHttp : public Http {
 public:
  CurlHttp() {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    for (const char* variable : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
      const char* file = std::getenv(variable);
      if (authorities_.empty() && file != nullptr) authorities_ = file;
    }
  }

  HttpResult post(const HttpRequest& request, const TimeLimits& limits,
                  HttpReceiver& receiver) override {
    Easy easy = take();
    Transfer transfer{receiver, limits, {}, false, false, Clock::now()};
    Handle handle{easy.get(), &transfer};
    List headers;
    for (const auto& header : request.headers) append(headers, header);
    append(headers, "Expect:");  // no round trip before a large body
    std::array<char, CURL_ERROR_SIZE> message{};
    const auto set = [&](CURLoption option, auto value) {
      curl_easy_setopt(easy.get(), option, value);
    };
    set(CURLOPT_URL, request.url.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
    set(CURLOPT_PROTOCOLS_STR, "http,https");
#else
    set(CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    // A redirection would take the key to where it leads.
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_USERAGENT, "kernelbench/" KERNELBENCH_VERSION);
    if (!authorities_.empty()) set(CURLOPT_CAINFO, authorities_.c_str());
    set(CURLOPT_HTTPHEADER, headers.get());
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_POSTFIELDS, request.body.c_str());
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(limits.connect.count()));
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(limits.total.count()));
    set(CURLOPT_ERRORBUFFER, message.data());
    set(CURLOPT_HEADERFUNCTION, &on_header);
    set(CURLOPT_HEADERDATA, &transfer);
    set(CURLOPT_WRITEFUNCTION, &on_body);
    set(CURLOPT_WRITEDATA, &handle);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &on_progress);
    set(CURLOPT_XFERINFODATA, &transfer);

    const CURLcode code = curl_easy_perform(easy.get());
    long status = 0;
    curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
    transfer.head.status = static_cast<int>(status);
    if (status >= 200) transfer.begin();  // a reply without a body
    HttpResult result{end_of(code), code == CURLE_OK ? "" : message.data()};
    if (code != CURLE_OK && result.message.empty()) result.message = curl_easy_strerror(code);
    if (transfer.ended_by_receiver) result = {HttpEnd::ended_by_receiver, ""};
    // Forgets the request, its key included; keeps the connection.
    curl_easy_reset(easy.get());
    give_back(std::move(easy));
    return result;
  }

 private:
  static void append(List& list, const std::string& line) {
    curl_slist* longer = curl_slist_append(list.get(), line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    list.release();
    list.reset(longer);
  }

  Easy take() {
    const std::scoped_lock lock(mutex_);
    if (idle_.empty()) {
      Easy easy(curl_easy_init());
      if (!easy) throw std::runtime_error("libcurl cannot be started");
      return easy;
    }
    Easy easy = std::move(idle_.back());
    idle_.pop_back();
    return easy;
  }

  void give_back(Easy easy) {
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(easy));
  }

  std::string authorities_;
  std::mutex mutex_;
  std::vector<Easy> idle_;
};

}  // namespace

std::unique_ptr<Http> make_curl_http() {
  return std::make_unique<CurlHttp>();
}

}  // namespace kb::llm

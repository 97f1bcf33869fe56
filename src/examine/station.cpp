#include "examine/station.h"

#include "problem/text_file.h"

namespace kb::examine {
namespace {

using worker::Fault;
using worker::FaultKind;

constexpr std::size_t kMaxText = 2000;
constexpr std::chrono::milliseconds kHelloLimit{300'000};
// Beside what the problem may use: the process that has torch imported.
constexpr std::uint64_t kWorkerBytes = 1ull << 30;
constexpr const char* kWeightSeed = "42";  // the judge's

}  // namespace

Station::Station(const Environment& environment, const Terms& terms)
    : terms_(terms),
      pool_(environment.launcher, {.python = environment.python,
                                   .package_folder = environment.package_folder,
                                   .threads = 1,
                                   .memory_bytes = terms.memory_bytes + kWorkerBytes,
                                   .bind_threads = false}) {}

std::expected<nlohmann::json, Fault> Station::ask(const char* operation,
                                                  const problem::Problem& problem) {
  if (!worker_) {
    auto started = pool_.take();
    if (!started) return std::unexpected(started.error());
    worker_.emplace(std::move(*started));
    if (auto hello = worker_->await_hello(kHelloLimit); !hello)
      return std::unexpected(Fault{FaultKind::infrastructure, hello.error().text});
  }
  auto reply = worker_->request({{"op", operation},
                                 {"source", problem.source},
                                 {"path", problem.path.filename().string()},
                                 {"size", terms_.size},
                                 {"set", terms_.set},
                                 {"precision", "fp32"},
                                 {"device", "cpu"},
                                 {"weight_seed", kWeightSeed},
                                 {"memory_bytes", terms_.memory_bytes},
                                 {"threads", 1}},
                                {}, terms_.time_limit);
  // What did not answer, or not sensibly, is ended; in the other cases its child has ended.
  if (!reply && reply.error().kind != FaultKind::problem &&
      reply.error().kind != FaultKind::out_of_memory)
    worker_.reset();
  return reply;
}

std::string last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (const auto end = text.rfind('\n'); end != text.npos) text.remove_prefix(end + 1);
  return problem::printable(text.substr(0, kMaxText));
}

}  // namespace kb::examine

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

// Stations work side by side.
WorkerNeeds unbound(WorkerNeeds needs) {
  needs.bind_threads = false;
  return needs;
}

}  // namespace

Station::Station(const Environment& environment, const Terms& terms)
    : terms_(terms),
      pool_(environment.launcher, {.python = environment.python,
                                   .package_folder = environment.package_folder,
                                   .threads = 1,
                                   .memory_bytes = terms.memory_bytes + kWorkerBytes,
                                   .needs = unbound(terms.needs)}) {}

std::expected<void, Fault> Station::prepare() {
  if (worker_) return {};
  auto started = pool_.take();
  if (!started) return std::unexpected(started.error());
  if (auto hello = started->await_hello(kHelloLimit); !hello)
    return std::unexpected(Fault{FaultKind::infrastructure, hello.error().text});
  worker_.emplace(std::move(*started));
  return {};
}

std::expected<nlohmann::json, Fault> Station::ask(const char* operation,
                                                  const problem::Problem& problem) {
  if (auto ready = prepare(); !ready) return std::unexpected(ready.error());
  auto reply = worker_->request({{"op", operation},
                                 {"source", problem.source},
                                 {"path", problem.path.filename().string()},
                                 {"size", terms_.size},
                                 {"set", terms_.set},
                                 {"precision", "fp32"},
                                 {"device", terms_.device},
                                 {"weight_seed", kWeightSeed},
                                 {"memory_bytes", terms_.memory_bytes},
                                 {"threads", 1}},
                                {}, terms_.time_limit);
  // What did not answer, or not sensibly, is ended. In the other cases the worker is well, unless
  // the memory limit has ended it with its child.
  if (!reply && ((reply.error().kind != FaultKind::problem &&
                  reply.error().kind != FaultKind::out_of_memory) ||
                 worker_->process().wait(std::chrono::milliseconds(0))))
    worker_.reset();
  return reply;
}

std::string last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (const auto end = text.rfind('\n'); end != text.npos) text.remove_prefix(end + 1);
  return problem::printable(text.substr(0, kMaxText));
}

}  // namespace kb::examine

#include "judge/panel.h"

#include <algorithm>
#include <utility>

#include "judge/building.h"

namespace kb::judge {
namespace {

constexpr int kMostOvertaken = 32;

class Permit {
 public:
  explicit Permit(std::counting_semaphore<>& semaphore) : semaphore_(semaphore) {
    semaphore_.acquire();
  }
  ~Permit() { semaphore_.release(); }
  Permit(const Permit&) = delete;
  Permit& operator=(const Permit&) = delete;

 private:
  std::counting_semaphore<>& semaphore_;
};

}  // namespace

std::expected<std::unique_ptr<Panel>, std::string> Panel::open(
    const Environment& environment, const Options& options, const std::vector<std::string>& devices,
    unsigned compilations) {
  auto architecture = architecture_of(devices);
  if (!architecture) return std::unexpected(architecture.error());
  std::unique_ptr<Panel> panel(
      new Panel(environment, options, std::move(*architecture), compilations));
  for (const auto& device : devices)
    if (auto seated = panel->seat(device); !seated) return std::unexpected(seated.error());
  return panel;
}

// A worker dies with the thread that started it, so each evaluator keeps to its own.
std::expected<void, std::string> Panel::seat(const std::string& device) {
  std::promise<std::string> opened;
  auto failure = opened.get_future();
  judges_.emplace_back([this, device, opened = std::move(opened)](
                           const std::stop_token& end) mutable { serve(device, opened, end); });
  if (auto why = failure.get(); !why.empty()) return std::unexpected(std::move(why));
  return {};
}

std::optional<nlohmann::json> Panel::judge(const problem::Problem& problem,
                                           const problem::Candidate& candidate,
                                           const std::stop_token& stop) {
  const auto build = [&] {
    return build_candidate(environment_.builder,
                           {environment_.python, environment_.installation_root, architecture_},
                           problem, candidate);
  };
  Request request{problem, candidate, stop, build, {}};
  // A GPU judges others meanwhile. A CPU compiles in its turn: no compiler may run beside the
  // clock.
  if (!architecture_.empty()) {
    const Permit permit(compilers_);
    request.build = [built = build()] { return built; };
  }
  auto result = request.result.get_future();
  {
    const std::scoped_lock lock(mutex_);
    queue_.push_back(&request);
  }
  asked_.notify_one();
  return result.get();
}

// Of the problem whose reference is loaded, where there is one, unless the first has waited for
// enough of those.
Panel::Request* Panel::next(const std::string& last_problem, const std::stop_token& end) {
  std::unique_lock lock(mutex_);
  if (!asked_.wait(lock, end, [this] { return !queue_.empty(); })) return nullptr;
  auto chosen = queue_.begin();
  if ((*chosen)->overtaken < kMostOvertaken) {
    const auto ready = std::ranges::find_if(
        queue_, [&](const Request* request) { return request->problem.label == last_problem; });
    if (ready != queue_.end()) chosen = ready;
  }
  for (auto* earlier : std::ranges::subrange(queue_.begin(), chosen)) ++earlier->overtaken;
  Request* request = *chosen;
  queue_.erase(chosen);
  return request;
}

bool Panel::nothing_waits() {
  const std::scoped_lock lock(mutex_);
  return queue_.empty();
}

// By what is in the queue, after a request about `problem`.
std::size_t Panel::torch_workers_waited_for(const std::string& problem) {
  constexpr std::size_t kOfAReference = 2;
  const std::scoped_lock lock(mutex_);
  std::size_t count = 0;
  for (const auto* request : queue_)
    count += (request->problem.label == problem ? 0 : kOfAReference) +
             (request->candidate.backend == problem::Backend::python ? 1 : 0);
  return count;
}

void Panel::serve(const std::string& device, std::promise<std::string>& opened,
                  const std::stop_token& end) {
  auto one = open_device(device);
  if (!one) {
    opened.set_value(one.error());
    return;
  }
  Options options = options_;
  options.device = device;
  Evaluator evaluator(environment_, options, std::move(*one));
  opened.set_value("");
  std::string last_problem;
  while (true) {
    if (nothing_waits()) evaluator.stand_by();
    auto* request = next(last_problem, end);
    if (request == nullptr) break;
    // The request is gone as soon as it has its result.
    auto result = std::move(request->result);
    if (request->stop.stop_requested()) {
      result.set_value(std::nullopt);
      continue;
    }
    last_problem = request->problem.label;
    result.set_value(
        to_json(judge_one_of_many(evaluator, request->problem, request->candidate, request->build,
                                  torch_workers_waited_for(last_problem)),
                options));
  }
}

}  // namespace kb::judge

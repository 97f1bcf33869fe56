#include "worker/times.h"

#include <cmath>

namespace kb::worker {

nlohmann::json to_json(const TimeRequest& request) {
  return {{"op", "time"},
          {"mode", request.mode},
          {"slots", request.slots},
          {"warmup", request.warmup},
          {"reps", request.reps}};
}

std::expected<std::vector<double>, std::string> parse_times(const nlohmann::json& reply,
                                                            std::size_t samples) {
  const auto list = reply.find("times_us");
  if (list == reply.end() || !list->is_array() || list->size() != samples ||
      list->size() > static_cast<std::size_t>(kMaxTimes))
    return std::unexpected(std::string("the worker's times are not the list that was asked for"));
  std::vector<double> times;
  for (const auto& entry : *list) {
    const double time = entry.is_number() ? entry.get<double>() : -1;
    if (!std::isfinite(time) || time < 0)
      return std::unexpected(std::string("one of the worker's times is no time"));
    times.push_back(time);
  }
  return times;
}

}  // namespace kb::worker

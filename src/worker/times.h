// What the judge asks a worker to time by itself (`time` of docs/protocol.md), and its answer.
#pragma once

#include <cstdint>
#include <expected>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kb::worker {

inline constexpr int kMaxTimes = 1000;

struct TimeRequest {
  std::string mode;  ///< host, event, do_bench
  std::vector<std::uint32_t> slots;
  int warmup = 0;
  int reps = 1;  ///< 1 … kMaxTimes

  /// How many times the answer holds: do_bench repeats by time, and answers with its median.
  std::size_t samples() const { return mode == "do_bench" ? 1 : static_cast<std::size_t>(reps); }
};

nlohmann::json to_json(const TimeRequest& request);

/// `times_us` of a reply: exactly `samples` finite numbers, none of them negative. Error: one
/// sentence.
std::expected<std::vector<double>, std::string> parse_times(const nlohmann::json& reply,
                                                            std::size_t samples);

}  // namespace kb::worker

// What PyTorch's own profiler tells, which needs no permission: names and times, no counters.
#pragma once

#include <expected>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kb::profile {

/// On a GPU a kernel, on the CPU an operator of PyTorch.
struct Operator {
  std::string name;    ///< printable, bounded
  double calls = 0;    ///< in one call of the model, on average
  double time_us = 0;  ///< of all of them, without what they call in turn
};

struct Operators {
  std::vector<Operator> entries;  ///< the one that took longest first
  double time_us = 0;             ///< of one call of the model, all of it
};

/// Reads what python/kernelbench_worker/profiled.py answers. The candidate shares its process: the
/// answer is hostile. Error: one sentence, the worker's own where it says why it failed.
std::expected<Operators, std::string> parse_operators(const nlohmann::json& answer);

/// The error in an answer that is not `ok`; empty where it is.
std::string error_in(const nlohmann::json& answer);

/// `text` in one line, fit for a terminal, at most `max_bytes`.
std::string clean(std::string_view text, std::size_t max_bytes);

/// Where the time goes, in a sentence.
std::string what_takes_longest(const Operators& operators);

}  // namespace kb::profile

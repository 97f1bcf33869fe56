// What a user can ask of an evaluation.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace kb::judge {

using std::chrono::milliseconds;

struct TimeLimits {
  milliseconds compile{300'000};
  milliseconds load{60'000};         ///< import, construction, kb_create
  milliseconds first_call{180'000};  ///< may hold a JIT compiler
  milliseconds call{10'000};         ///< each later call
  milliseconds evaluation{600'000};  ///< the whole, compilation aside
};

enum class Rules { own, kernelbench };

/// Whose clock times the calls: the judge's, or, for comparison with other tools, the workers' own.
enum class Timer { sealed, event, do_bench, host };

constexpr std::string_view name_of(Timer timer) {
  switch (timer) {
    case Timer::sealed: return "sealed";
    case Timer::event: return "event";
    case Timer::do_bench: return "do_bench";
    case Timer::host: return "host";
  }
  return "sealed";
}

struct Options {
  std::string device = "cpu";
  std::string precision = "fp32";                 ///< fp32, fp16, bf16
  std::string size = "public";                    ///< or a key of the problem's SIZES
  nlohmann::json set = nlohmann::json::object();  ///< module constant → value, after `size`
  Rules rules = Rules::own;
  int correctness_trials = 5;
  bool stress = true;
  bool timing = true;
  Timer timer = Timer::sealed;
  int pairs = 0;                            ///< 0: by the size, 30 … 45
  int calls = 0;                            ///< of a turn; 0: by how long one takes
  double timing_budget_ms = 6000;           ///< what the plan of pairs aims at
  double excessive_speedup = 10;            ///< above: flag `excessive_speedup`, for review
  unsigned threads = 0;                     ///< of the model, on both sides; 0: every CPU
  std::uint64_t memory_bytes = 8ull << 30;  ///< of a worker, beside the arena
  TimeLimits limits;

  bool sealed_timing() const { return timing && timer == Timer::sealed; }
};

/// Canonical JSON of what makes two results comparable (all but paths and limits of time): part of
/// the store's key.
nlohmann::json settings_json(const Options& options);

}  // namespace kb::judge

// Any bytes as KernelBench's files: reading, scoring and printing them ends, and prints no control
// character.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "score/baseline.h"
#include "score/kernelbench_files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  kb::score::parse_pass_at_k(text);
  const auto baseline = kb::score::Baseline::parse(text);
  auto evaluations = kb::score::parse_eval_results(text, 1);
  if (!evaluations) return 0;
  if (baseline) kb::score::use_baseline(*baseline, *evaluations);
  kb::score::Options options;
  options.thresholds = {1};
  options.ks = {1};
  const auto summaries = kb::score::summarize(*evaluations, options);
  for (const char c : kb::score::to_report(summaries, *evaluations).text()) {
    if (c != '\n' && static_cast<unsigned char>(c) < 0x20) std::abort();
  }
  return 0;
}

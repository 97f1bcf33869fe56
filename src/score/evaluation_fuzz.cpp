// Any bytes as a result: reading, scoring and printing it ends, and prints no control character.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "score/score.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto evaluation = kb::score::parse_evaluation(std::string(data, data + size));
  if (!evaluation) return 0;
  const auto summaries = kb::score::summarize({*evaluation});
  for (const char c : kb::score::to_report(summaries, {*evaluation}).text()) {
    if (c != '\n' && static_cast<unsigned char>(c) < 0x20) std::abort();
  }
  return 0;
}

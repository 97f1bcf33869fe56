// The printed report of Nsight Compute: whatever it holds is read or refused, and no name or
// sentence that comes of it holds a control character.

#include <cstdlib>

#include "profile/bound.h"
#include "profile/raw_page.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kb::profile;  // NOLINT: a program's only file
  auto launches = parse_raw_page({reinterpret_cast<const char*>(data), size}, 50);
  if (!launches) return 0;
  if (launches->size() > 50) std::abort();
  const auto counters = counters_of(std::move(*launches));
  std::string text = what_bounds(counters);
  for (const auto& kernel : kernels_of(counters)) text += kernel.name;
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) std::abort();
  return 0;
}

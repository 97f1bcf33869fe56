#include "judge/device.h"

#include <sys/random.h>

#include <stdexcept>

namespace kb::judge {

std::uint64_t secret_seed() {
  std::uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != static_cast<ssize_t>(sizeof seed))
    throw std::runtime_error("getrandom(2) failed");
  return seed;
}

}  // namespace kb::judge

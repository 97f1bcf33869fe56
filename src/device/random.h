// Counter-based random numbers: the i-th one is a function of a key and of i, so that threads need
// share no state and the values do not depend on who computes them.
//
// random_bits is the output function of splitmix64 (Steele, Lea, Flood: Fast Splittable
// Pseudorandom Number Generators, OOPSLA 2014) at its (i+1)-th step from the state `key`. It is
// good enough for test data and not for secrets: who sees values can find the key. The secrets
// (seeds, guard words) come from getrandom(); what is derived from them here must not be shown to a
// candidate whole.
#pragma once

#include <cstdint>

namespace kb {

/// The `index`-th of the 64-bit numbers that belong to `key`.
constexpr std::uint64_t random_bits(std::uint64_t key, std::uint64_t index) {
  std::uint64_t z = key + (index + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// Maps 32 random bits to [0, bound) by multiplication; off from uniform by at most bound / 2^32.
constexpr std::uint32_t random_below(std::uint32_t bits, std::uint32_t bound) {
  return static_cast<std::uint32_t>((std::uint64_t{bits} * bound) >> 32);
}

}  // namespace kb

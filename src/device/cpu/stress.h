// Stress inputs: the problem's own random inputs, transformed so that kernels which assume their
// distribution, sample a sum, or look at the magnitude give themselves away (threats C4, C5, C13).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "device/cpu/thread_pool.h"
#include "device/tensor.h"

namespace kb::cpu {

enum class Stress : std::uint8_t {
  scaled_up,       ///< x * 16
  scaled_down,     ///< x / 64
  sign_flipped,    ///< the sign of each element drawn at random
  heavy_tails,     ///< each element times exp(1.5 z), z standard normal (log-normal factors)
  outliers,        ///< about 1 element in 4096 (at least 1) times ±100, at random places
  small_integers,  ///< each element replaced by a random integer in [-4, 4], exact in every
                   ///< precision
  planted  ///< the sign of about 1 element in 65536 (at least 3) flipped, at random places: too few
           ///< to be found by looking at a sample, and without any effect on time
};
inline constexpr std::array kAllStress = {
    Stress::scaled_up, Stress::scaled_down,    Stress::sign_flipped, Stress::heavy_tails,
    Stress::outliers,  Stress::small_integers, Stress::planted};

std::string_view name_of(Stress kind);

/// Transforms a dense floating tensor in place; a tensor of integers or bools is left as it is.
/// The random choices are a function of `seed` alone (counter-based, independent of the number of
/// threads).
void apply_stress(Stress kind, std::span<std::byte> data, DType dtype, std::uint64_t seed,
                  ThreadPool& pool);

}  // namespace kb::cpu

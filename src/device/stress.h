// Stress inputs: the problem's own random inputs, transformed so that kernels which assume their
// distribution, sample a sum, or look at the magnitude give themselves away (threats C4, C5, C13).
//
// Element i of a tensor draws from u(i) = random_bits(key, i), 64 bits (device/random.h), where
// key = random_bits(seed, number of the kind): a function of the seed, the kind and the place
// alone, so that every device makes the same choices.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kb {

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

inline constexpr int kStressFactorBits = 14;
/// What heavy_tails multiplies by: exp(1.5 q_k) for k in [0, 2^14), q_k the (k + 1/2) / 2^14
/// quantile of the standard normal distribution. |q| reaches 4.0, the factors 1/410 to 410.
std::vector<double> stress_factors();

}  // namespace kb

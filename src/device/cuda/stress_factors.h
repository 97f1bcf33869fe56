// The table behind Stress::heavy_tails.
#pragma once

#include <vector>

namespace kb::cuda {

/// exp(1.5 q_k) for k in [0, 2^14), as device/cpu/stress.cpp defines it.
std::vector<double> log_normal_factors();

}  // namespace kb::cuda

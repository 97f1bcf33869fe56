// NVIDIA GPUs as devices. Implemented twice: here where kernelbench was built with CUDA, and in
// device/no_cuda where it was not.
#pragma once

#include <expected>
#include <memory>
#include <string>

#include "device/device.h"

namespace kb::cuda {

/// How many GPUs can be used; 0 without a driver, or in a build without CUDA.
int device_count();
/// One sentence: why there is none, and what to do; or which driver and runtime there are.
std::string availability();
/// "sm_90" for the GPU `index`; empty when there is none.
std::string architecture(int index);

/// Opens GPU `index` (its primary context, in this process) for one thread. Error: one sentence.
std::expected<std::unique_ptr<Device>, std::string> open_device(int index);

}  // namespace kb::cuda

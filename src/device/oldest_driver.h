// Which NVIDIA driver the programs need that a CUDA toolkit makes.
#pragma once

#include <string_view>

namespace kb {

/// The oldest driver on Linux that runs what toolkits of this major version made: "525.60.13",
/// "580". For every minor version, as long as it is machine code of the GPU and not PTX, which the
/// judge's kernels are on Ampere, Ada and Hopper and candidates everywhere ("CUDA minor version
/// compatibility", in the release notes of CUDA).
std::string_view oldest_driver(int cuda_major);

/// Is the driver `version` ("550.54.14") as new as `oldest`? Compares number by number; what is
/// missing counts as 0.
bool is_driver_as_new(std::string_view version, std::string_view oldest);

}  // namespace kb

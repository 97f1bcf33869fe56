// The device "cuda" in a build without CUDA: there is none.
#include "device/cuda/cuda.h"

namespace kb::cuda {

int device_count() {
  return 0;
}

std::string availability() {
  return "this kernelbench was built without CUDA: install the CUDA toolkit (nvcc 12.4 or later) "
         "and build it again";
}

std::string architecture(int) {
  return "";
}

std::expected<std::unique_ptr<Device>, std::string> open_device(int) {
  return std::unexpected(availability());
}

}  // namespace kb::cuda

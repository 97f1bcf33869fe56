#include "worker/native/device.h"

namespace kb::worker::native {

std::expected<std::unique_ptr<Device>, Fault> open_cuda() {
  return std::unexpected(Fault{FaultKind::unsupported, "this kernelbench was built without CUDA"});
}

}  // namespace kb::worker::native

#include "worker/native/device.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <string>

namespace kb::worker::native {
namespace {

class CpuDevice final : public Device {
 public:
  std::expected<std::byte*, Fault> map(int fd, std::size_t bytes) override {
    return map_shared(fd, bytes);
  }
  DLDevice dl_device() const override { return {kDLCPU, 0}; }
};

std::unexpected<Fault> no_events() {
  return std::unexpected(Fault{FaultKind::unsupported, "this device has no events to time by"});
}

}  // namespace

std::expected<void, Fault> Device::overwrite(std::size_t) {
  return no_events();
}
std::expected<void, Fault> Device::make_events(std::size_t) {
  return no_events();
}
std::expected<void, Fault> Device::record(std::size_t) {
  return no_events();
}
std::expected<double, Fault> Device::elapsed_us(std::size_t, std::size_t) {
  return no_events();
}

std::expected<std::byte*, Fault> map_shared(int fd, std::size_t bytes) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || static_cast<std::size_t>(info.st_size) < bytes)
    return std::unexpected(
        Fault{FaultKind::protocol, "the shared memory is smaller than its layout"});
  void* base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED)
    return std::unexpected(Fault{FaultKind::out_of_memory, "the shared memory cannot be mapped"});
  return static_cast<std::byte*>(base);
}

std::unique_ptr<Device> open_cpu() {
  return std::make_unique<CpuDevice>();
}

std::expected<std::unique_ptr<Device>, Fault> open_device(std::string_view name) {
  if (name == "cpu") return open_cpu();
  if (name == "cuda") return open_cuda();
  return std::unexpected(
      Fault{FaultKind::unsupported, "the native worker does not know the device \"" +
                                        std::string(name) + "\": it runs on \"cpu\" and \"cuda\""});
}

}  // namespace kb::worker::native

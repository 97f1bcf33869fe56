#include "device/cuda/driver.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace kb::cuda {
namespace {

std::optional<Driver> load() {
  auto driver = look_up_driver();
  Dl_info info;
  if (driver && dladdr(reinterpret_cast<void*>(driver->create), &info) != 0 &&
      info.dli_fname != nullptr) {
    std::error_code error;
    const auto path = std::filesystem::canonical(info.dli_fname, error);
    if (!error) driver->folder = path.parent_path().string();
  }
  return driver;
}

}  // namespace

std::string Driver::explain(CUresult result) const {
  const char* text = nullptr;
  if (get_error_string(result, &text) != CUDA_SUCCESS || text == nullptr)
    return "error " + std::to_string(static_cast<int>(result));
  return text;
}

const Driver* driver() {
  static const std::optional<Driver> loaded = load();
  return loaded ? &*loaded : nullptr;
}

}  // namespace kb::cuda

#include "device/cuda/driver.h"

#include <dlfcn.h>

#include <filesystem>
#include <optional>
#include <system_error>

namespace kb::cuda {
namespace {

std::optional<Driver> load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  Driver driver;
  bool complete = true;
  auto look_up = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) complete = false;
  };
  look_up(driver.get_error_string, "cuGetErrorString");
  look_up(driver.get_granularity, "cuMemGetAllocationGranularity");
  look_up(driver.create, "cuMemCreate");
  look_up(driver.release, "cuMemRelease");
  look_up(driver.reserve, "cuMemAddressReserve");
  look_up(driver.free_address, "cuMemAddressFree");
  look_up(driver.map, "cuMemMap");
  look_up(driver.unmap, "cuMemUnmap");
  look_up(driver.set_access, "cuMemSetAccess");
  look_up(driver.export_handle, "cuMemExportToShareableHandle");
  look_up(driver.import_handle, "cuMemImportFromShareableHandle");
  if (!complete) return std::nullopt;

  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(driver.create), &info) != 0 && info.dli_fname != nullptr) {
    std::error_code error;
    const auto path = std::filesystem::canonical(info.dli_fname, error);
    if (!error) driver.folder = path.parent_path().string();
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

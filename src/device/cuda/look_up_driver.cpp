#include <dlfcn.h>

#include <type_traits>

#include "device/cuda/driver.h"

namespace kb::cuda {

std::optional<Driver> look_up_driver() {
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
  return complete ? std::optional(driver) : std::nullopt;
}

}  // namespace kb::cuda

// What src/device/cuda/driver.cpp is for CUDA's driver: HIP's runtime has it all.
#include "device/cuda/driver.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace kb::cuda {

std::string Driver::explain(hipError_t result) const {
  const char* text = nullptr;
  if (get_error_string(result, &text) != hipSuccess || text == nullptr)
    return "error " + std::to_string(static_cast<int>(result));
  return text;
}

const Driver* driver() {
  static const Driver linked = [] {
    Driver driver{.get_error_string = &hipDrvGetErrorString,
                  .get_granularity = &hipMemGetAllocationGranularity,
                  .create = &hipMemCreate,
                  .release = &hipMemRelease,
                  .reserve = &hipMemAddressReserve,
                  .free_address = &hipMemAddressFree,
                  .map = &hipMemMap,
                  .unmap = &hipMemUnmap,
                  .set_access = &hipMemSetAccess,
                  .export_handle = &hipMemExportToShareableHandle,
                  .import_handle = &hipMemImportFromShareableHandle,
                  .folder = {}};
    Dl_info info;
    if (dladdr(reinterpret_cast<void*>(driver.create), &info) != 0 && info.dli_fname != nullptr) {
      std::error_code error;
      const auto path = std::filesystem::canonical(info.dli_fname, error);
      if (!error) driver.folder = path.parent_path().string();
    }
    return driver;
  }();
  return &linked;
}

}  // namespace kb::cuda

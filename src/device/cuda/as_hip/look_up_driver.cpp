// What src/device/cuda/look_up_driver.cpp is for CUDA's driver: HIP's runtime has it all.
#include "device/cuda/driver.h"

namespace kb::cuda {

std::optional<Driver> look_up_driver() {
  return Driver{.get_error_string = &hipDrvGetErrorString,
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
}

}  // namespace kb::cuda

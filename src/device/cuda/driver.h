// The CUDA driver's functions that the runtime does not offer, looked up when first needed: the
// program must also start where there is no driver.
#pragma once

#include <cuda.h>

#include <optional>
#include <string>

namespace kb::cuda {

struct Driver {
  decltype(&::cuGetErrorString) get_error_string;
  decltype(&::cuMemGetAllocationGranularity) get_granularity;
  decltype(&::cuMemCreate) create;
  decltype(&::cuMemRelease) release;
  decltype(&::cuMemAddressReserve) reserve;
  decltype(&::cuMemAddressFree) free_address;
  decltype(&::cuMemMap) map;
  decltype(&::cuMemUnmap) unmap;
  decltype(&::cuMemSetAccess) set_access;
  decltype(&::cuMemExportToShareableHandle) export_handle;
  decltype(&::cuMemImportFromShareableHandle) import_handle;

  std::string folder;  ///< where the loaded libcuda.so.1 really lies; empty when not known

  std::string explain(CUresult result) const;
};

/// The functions; null where one of them is missing. The one thing in which HIP differs, so it has
/// a file of its own.
std::optional<Driver> look_up_driver();

/// Null where there is no driver (or one without virtual memory management). Loaded once.
const Driver* driver();

}  // namespace kb::cuda

// Device memory: shared with a worker through a descriptor, or private to this process.
#pragma once

#include <expected>
#include <memory>
#include <string>

#include "device/device.h"

namespace kb::cuda {

/// Memory of GPU `index` that a worker can map (the driver's virtual memory management, exported as
/// a POSIX descriptor), mapped here for reading and writing. Contents are not set.
std::expected<std::unique_ptr<Memory>, std::string> allocate_shared(int index, std::size_t bytes);

/// A plain allocation. Contents are not set.
std::expected<std::unique_ptr<Memory>, std::string> allocate_private(int index, std::size_t bytes);

}  // namespace kb::cuda

// Where a native candidate runs.
#pragma once

#include <dlpack/dlpack.h>

#include <cstddef>
#include <expected>
#include <memory>
#include <string_view>

#include "worker/fault.h"

namespace kb::worker::native {

class Device {
 public:
  virtual ~Device() = default;

  /// Maps the data behind a descriptor; it stays mapped for the life of the process. Fault:
  /// out_of_memory or protocol.
  virtual std::expected<std::byte*, Fault> map(int fd, std::size_t bytes) = 0;
  virtual DLDevice dl_device() const = 0;
  /// What candidates get as kb_call.stream.
  virtual void* stream() const { return nullptr; }
  /// Called by the stub once a turn: uses the device as little as possible.
  virtual std::expected<void, Fault> launch_nothing() { return {}; }
  /// Waits for all work of this process, on whatever stream. Fault: runtime or out_of_memory, with
  /// what the device says.
  virtual std::expected<void, Fault> synchronize() { return {}; }

  // ---- for `time`: the device's own clock. Fault: unsupported on the CPU. -----------------------
  virtual std::size_t l2_bytes() const { return 0; }
  /// Enqueues writing over a buffer of the worker's own of that size.
  virtual std::expected<void, Fault> overwrite(std::size_t bytes);
  /// Makes the events 0 … count - 1, as far as they do not exist.
  virtual std::expected<void, Fault> make_events(std::size_t count);
  /// Enqueues an event behind the calls.
  virtual std::expected<void, Fault> record(std::size_t event);
  /// Between two events that have happened.
  virtual std::expected<double, Fault> elapsed_us(std::size_t from, std::size_t to);
};

/// Maps a memfd, for the life of the process. Fault: out_of_memory or protocol.
std::expected<std::byte*, Fault> map_shared(int fd, std::size_t bytes);

std::unique_ptr<Device> open_cpu();
/// The only GPU that this process sees. Fault: unsupported. Implemented twice: in cuda/ and, for a
/// build without CUDA, in no_cuda/.
std::expected<std::unique_ptr<Device>, Fault> open_cuda();

/// The device called `name` in the protocol.
std::expected<std::unique_ptr<Device>, Fault> open_device(std::string_view name);

}  // namespace kb::worker::native

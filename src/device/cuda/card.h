// What a GPU is, as far as it does not change while it is used.
#pragma once

#include <cstddef>
#include <string>

namespace kb::cuda {

struct Card {
  std::string name;        ///< "NVIDIA H200"
  std::string uuid;        ///< "GPU-…"
  std::string pci_bus_id;  ///< "0000:1b:00.0"
  int major = 0, minor = 0;
  std::size_t memory_bytes = 0;
  std::size_t l2_bytes = 0;
  int multiprocessors = 0;
  double datasheet_bytes_per_s = 0;  ///< of the memory; 0 when the driver does not say

  std::string architecture() const;        ///< "sm_90"
  std::string compute_capability() const;  ///< "9.0"
};

/// The runtime's GPU `index`, which must exist; without what the runtime cannot say.
Card card(int index);

/// "13.0"
std::string cuda_version_text(int version);

}  // namespace kb::cuda

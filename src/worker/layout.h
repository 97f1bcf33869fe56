// Where everything lies in the two memories that the judge shares with a worker: control (doorbell
// page, publications; always host memory) and data (tensors; the device's memory). The judge plans
// it; the worker is told (`attach`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "worker/spec.h"

namespace kb::worker {

/// The offsets of a list of tensors for each slot: offsets[slot][tensor], in bytes.
using SlotOffsets = std::vector<std::vector<std::size_t>>;

/// A region holds one set of the problem's outputs for each slot.
struct RegionRequest {
  std::string name;
  bool float64 = false;         ///< floating outputs are stored as float64 (the truth)
  std::size_t guard_bytes = 0;  ///< left free before and after each tensor
  unsigned slots = 0;           ///< only the first so many slots have one; 0: all
};

struct Layout {
  std::size_t size = 0;          ///< of data
  std::size_t control_size = 0;  ///< of control
  std::size_t publications = 0;  ///< in control; 0: none (native workers)
  unsigned slots = 0;
  std::vector<std::size_t> params;  ///< one offset a parameter
  SlotOffsets inputs;               ///< one a tensor input (plain values have no place)
  struct Region {
    std::vector<TensorSpec> tensors;
    SlotOffsets offsets;
  };
  std::map<std::string, Region> regions;
};

/// Every tensor is aligned to 4096 bytes (so that a guard band or a neighbour never shares its
/// page).
Layout plan_layout(const ProblemSpec& spec, unsigned slots,
                   const std::vector<RegionRequest>& regions, bool publications);
/// The `layout` object of the protocol. `device`: "cpu" or "cuda".
nlohmann::json to_json(const Layout& layout, const ProblemSpec& spec, const std::string& device);

/// What the address of a publication counts from.
enum class PublishedIn : std::uint64_t { process = 0, data = 1, heap = 2 };
/// i64 words of a publication record.
inline constexpr std::size_t kPublicationWords = 24;

}  // namespace kb::worker

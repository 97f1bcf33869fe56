// Where everything lies in an arena. The judge plans it; the worker is told (`attach`).
#pragma once

#include <cstddef>
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
};

struct Layout {
  std::size_t size = 0;
  std::size_t publications = 0;  ///< 0: none (native workers)
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
/// The `layout` object of the protocol.
nlohmann::json to_json(const Layout& layout, const ProblemSpec& spec);

/// i64 words of a publication record.
inline constexpr std::size_t kPublicationWords = 24;

}  // namespace kb::worker

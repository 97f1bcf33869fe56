// What a tensor is to the judge: an element type, a shape and (elsewhere) an address. No ownership.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kb {

/// Element types in the order of the worker protocol's dtype codes (docs/protocol.md).
enum class DType : std::uint8_t {
  float64,
  float32,
  float16,
  bfloat16,
  int64,
  int32,
  int16,
  int8,
  uint8,
  boolean,
};
inline constexpr int kNumDTypes = 10;

/// Bytes of one element.
std::size_t size_of(DType dtype);
/// PyTorch's name without "torch.": "float32", "bool", …
std::string_view name_of(DType dtype);
/// Null when `name` is no supported dtype.
std::optional<DType> dtype_from_name(std::string_view name);
/// True for the four floating-point types.
bool is_floating(DType dtype);

struct TensorSpec {
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;  ///< row-major; empty for a scalar tensor

  std::int64_t numel() const;
  std::size_t bytes() const;
  bool operator==(const TensorSpec&) const = default;
};

}  // namespace kb

#include "device/tensor.h"

#include <array>
#include <stdexcept>

namespace kb {
namespace {

struct DTypeFacts {
  std::string_view name;
  std::size_t size;
  bool floating;
};

/// In the order of the enum.
constexpr std::array<DTypeFacts, kNumDTypes> kFacts = {{
    {"float64", 8, true},
    {"float32", 4, true},
    {"float16", 2, true},
    {"bfloat16", 2, true},
    {"int64", 8, false},
    {"int32", 4, false},
    {"int16", 2, false},
    {"int8", 1, false},
    {"uint8", 1, false},
    {"bool", 1, false},
}};
static_assert(static_cast<int>(DType::boolean) == kNumDTypes - 1);

/// Throws for a value outside the enum, which a careless cast of a protocol byte could make.
const DTypeFacts& facts_of(DType dtype) {
  return kFacts.at(static_cast<std::size_t>(dtype));
}

}  // namespace

std::size_t size_of(DType dtype) {
  return facts_of(dtype).size;
}

std::string_view name_of(DType dtype) {
  return facts_of(dtype).name;
}

bool is_floating(DType dtype) {
  return facts_of(dtype).floating;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kFacts.size(); ++i) {
    if (kFacts[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::int64_t TensorSpec::numel() const {
  // Zeros first: a tensor with an empty dimension has no elements, however large the others are.
  for (std::int64_t extent : shape) {
    if (extent < 0) throw std::invalid_argument("a tensor's dimension is negative");
  }
  for (std::int64_t extent : shape) {
    if (extent == 0) return 0;
  }
  std::int64_t elements = 1;
  for (std::int64_t extent : shape) {
    if (__builtin_mul_overflow(elements, extent, &elements)) {
      throw std::invalid_argument("a tensor's element count exceeds 64 bits");
    }
  }
  return elements;
}

std::size_t TensorSpec::bytes() const {
  std::size_t total = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(numel()), size_of(dtype), &total)) {
    throw std::invalid_argument("a tensor's size exceeds 64 bits");
  }
  return total;
}

}  // namespace kb

// For the tests: the GPU, opened once, and tensors with random values.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "device/cpu/half.h"
#include "device/cuda/cuda.h"
#include "device/cuda/cuda_device.h"
#include "device/random.h"

namespace kb::cuda {

/// Skips without a GPU.
class GpuTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (device_count() == 0) return;
    auto opened = CudaDevice::open(0);
    ASSERT_TRUE(opened) << opened.error();
    device_ = std::move(*opened);
  }
  static void TearDownTestSuite() { device_.reset(); }
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "no GPU: " << availability();
    ASSERT_NE(device_, nullptr);
  }

  static std::unique_ptr<Memory> allocate(std::size_t bytes, bool shared = false) {
    auto memory = device_->allocate(bytes, shared);
    if (!memory) {
      ADD_FAILURE() << memory.error();
      return nullptr;
    }
    return std::move(*memory);
  }
  static std::unique_ptr<Memory> on_device(std::span<const std::byte> bytes) {
    auto memory = allocate(bytes.size());
    device_->upload(memory->bytes(), bytes);
    return memory;
  }
  static std::vector<std::byte> on_host(std::span<const std::byte> bytes) {
    std::vector<std::byte> copy(bytes.size());
    auto done = device_->download(copy, bytes);
    EXPECT_TRUE(done) << done.error();
    return copy;
  }

  inline static std::unique_ptr<CudaDevice> device_;
};

/// Writes `x` as element `i` of a tensor of this type.
inline void store(std::span<std::byte> bytes, DType dtype, std::size_t i, double x) {
  auto put = [&](auto value) {
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  };
  switch (dtype) {
    case DType::float64: return put(x);
    case DType::float32: return put(static_cast<float>(x));
    case DType::float16: return put(cpu::to_float16(static_cast<float>(x)));
    case DType::bfloat16: return put(cpu::to_bfloat16(static_cast<float>(x)));
    case DType::int64: return put(static_cast<std::int64_t>(x));
    case DType::int32: return put(static_cast<std::int32_t>(x));
    case DType::int16: return put(static_cast<std::int16_t>(x));
    case DType::int8: return put(static_cast<std::int8_t>(x));
    case DType::uint8:
    case DType::boolean: return put(static_cast<std::uint8_t>(x));
  }
}

/// In [-1, 1).
inline double uniform(std::uint64_t seed, std::size_t i) {
  return static_cast<double>(random_bits(seed, i) >> 11) * 0x1p-52 - 1;
}

}  // namespace kb::cuda

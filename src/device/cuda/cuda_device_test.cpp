#include "device/cuda/cuda_device.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "device/cpu/memory.h"
#include "device/cpu/stress.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "device/cuda/test_device.h"

namespace kb::cuda {
namespace {

using CudaDeviceTest = GpuTest;

TEST(Availability, SaysSomethingWithAndWithoutADriver) {
  EXPECT_GE(device_count(), 0);
  EXPECT_FALSE(availability().empty());
  EXPECT_EQ(architecture(-1), "");
  EXPECT_EQ(architecture(device_count()), "");
  const auto none = open_device(device_count());
  ASSERT_FALSE(none);
  EXPECT_FALSE(none.error().empty());
}

TEST(Availability, NamesTheDriverThatThisBuildNeeds) {
  const std::string words = availability();
  if (words.find("shows no GPU") != std::string::npos) GTEST_SKIP() << "the driver is new enough";
  EXPECT_NE(words.find(fmt::format("built with CUDA {}.{} and needs driver {} or later",
                                   CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10,
                                   CUDART_VERSION < 13000 ? "525.60.13" : "580")),
            std::string::npos)
      << words;
}

TEST_F(CudaDeviceTest, DescribesItself) {
  EXPECT_EQ(device_->name(), "cuda:0");
  const nlohmann::json description = device_->describe();
  EXPECT_EQ(description["architecture"], architecture(0));
  EXPECT_EQ(description["uuid"].get<std::string>().size(), 40U);
  EXPECT_GT(description["memory_bytes"], 0);
  EXPECT_GT(device_->cache_bytes(), 0U);
  EXPECT_GT(device_->free_bytes(), 0U);
  const WorkerNeeds needs = device_->worker_needs();
  for (const std::string& node : needs.device_nodes)
    EXPECT_EQ(access(node.c_str(), F_OK), 0) << node;
  ASSERT_EQ(needs.folders.size(), 1U);
  EXPECT_EQ(access((needs.folders[0] + "/libcuda.so.1").c_str(), F_OK), 0) << needs.folders[0];
  const nlohmann::json telemetry = device_->telemetry();
  for (const char* key : {"sm_mhz", "mem_mhz", "power_w", "temperature_c", "throttle_reasons"})
    EXPECT_TRUE(telemetry.contains(key)) << key;
}

TEST_F(CudaDeviceTest, SharesMemoryThroughADescriptor) {
  constexpr std::size_t kBytes = (5 << 20) + 3;
  auto memory = allocate(kBytes, true);
  ASSERT_GE(memory->fd(), 0);
  EXPECT_EQ(on_host(memory->bytes()), std::vector<std::byte>(kBytes));

  const Driver& cu = *driver();
  CUmemGenericAllocationHandle handle = 0;
  const auto fd = static_cast<std::intptr_t>(memory->fd());
  ASSERT_EQ(cu.import_handle(&handle, reinterpret_cast<void*>(fd),
                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  CUdeviceptr address = 0;
  constexpr std::size_t kMapped = 6 << 20;  // a multiple of 2 MiB
  ASSERT_EQ(cu.reserve(&address, kMapped, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cu.map(address, kMapped, 0, handle, 0), CUDA_SUCCESS);
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  ASSERT_EQ(cu.set_access(address, kMapped, &access, 1), CUDA_SUCCESS);
  device_->write_guard(memory->bytes(), 5);
  const std::span<const std::byte> there(reinterpret_cast<const std::byte*>(address), kBytes);
  EXPECT_TRUE(cpu::guard_intact(on_host(there), 5));
  EXPECT_EQ(cu.unmap(address, kMapped), CUDA_SUCCESS);
  EXPECT_EQ(cu.free_address(address, kMapped), CUDA_SUCCESS);
  EXPECT_EQ(cu.release(handle), CUDA_SUCCESS);
}

TEST_F(CudaDeviceTest, AllocatesNothingAndTooMuch) {
  for (bool shared : {false, true}) {
    auto empty = allocate(0, shared);
    EXPECT_TRUE(empty->bytes().empty());
    EXPECT_EQ(empty->fd() >= 0, shared);
    device_->poison(empty->bytes());
    device_->copy(empty->bytes(), empty->bytes());
    EXPECT_TRUE(on_host(empty->bytes()).empty());
    const auto refused = device_->allocate(std::size_t{1} << 50, shared);
    ASSERT_FALSE(refused);
    EXPECT_FALSE(refused.error().empty());
  }
  EXPECT_TRUE(device_->synchronize()) << "running out of memory is no failure of the device";
  EXPECT_EQ(allocate(100)->fd(), -1);
}

TEST_F(CudaDeviceTest, CopiesPoisonsAndGuards) {
  constexpr std::size_t kBytes = (1 << 20) + 5;
  std::vector<std::byte> bytes(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<std::byte>(random_bits(1, i));
  auto from = on_device(bytes);
  auto to = allocate(kBytes);
  EXPECT_EQ(on_host(to->bytes()), std::vector<std::byte>(kBytes));
  device_->copy(to->bytes(), from->bytes());
  EXPECT_EQ(on_host(to->bytes()), bytes);
  device_->poison(to->range(3, 1000));
  std::fill_n(bytes.begin() + 3, 1000, std::byte{0xFF});
  EXPECT_EQ(on_host(to->bytes()), bytes);
  for (std::size_t n : {std::size_t{0}, std::size_t{13}, kGuardBytes}) {
    device_->write_guard(to->range(5, n), 42);
    cpu::write_guard(std::span(bytes).subspan(5, n), 42);
    EXPECT_EQ(on_host(to->bytes()), bytes);
  }
  EXPECT_THROW(device_->copy(to->range(0, 1), from->range(0, 2)), std::invalid_argument);
}

TEST_F(CudaDeviceTest, MakesTheCpusStressInputs) {
  cpu::ThreadPool pool(2);
  for (DType dtype : {DType::float64, DType::float32, DType::float16, DType::bfloat16}) {
    for (std::size_t n : {0UL, 1UL, 2UL, 31UL, 4095UL, 200'003UL}) {
      for (std::size_t shift : {0UL, 1UL}) {
        const std::size_t size = size_of(dtype);
        std::vector<std::byte> values(n * size);
        for (std::size_t i = 0; i < n; ++i)
          store(values, dtype, i, std::ldexp(uniform(3, i), static_cast<int>(i % 40) - 24));
        for (Stress kind : kAllStress) {
          auto memory = allocate((n + shift) * size);
          const auto data = memory->range(shift * size, n * size);
          device_->upload(data, values);
          device_->apply_stress(kind, data, dtype, 11);
          std::vector<std::byte> expected = values;
          cpu::apply_stress(kind, expected, dtype, 11, pool);
          // The table of factors is made by one libm here, so that not even these differ.
          EXPECT_EQ(on_host(data), expected)
              << name_of(kind) << " " << name_of(dtype) << " " << n << " " << shift;
        }
      }
    }
  }
  std::vector<std::int32_t> labels = {1, 2, 3};
  auto memory = on_device(std::as_bytes(std::span(labels)));
  device_->apply_stress(Stress::scaled_up, memory->bytes(), DType::int32, 1);
  EXPECT_TRUE(std::ranges::equal(on_host(memory->bytes()), std::as_bytes(std::span(labels))));
}

TEST_F(CudaDeviceTest, IsIdleWhenNothingRuns) {
  for (int i = 0; i < 10; ++i) {
    device_->flush_caches();
    EXPECT_TRUE(device_->idle()) << device_->last_probe_us() << " µs";
  }
  EXPECT_GT(device_->last_probe_us(), 0);
}

TEST_F(CudaDeviceTest, ClosesATurn) {
  for (int i = 0; i < 10; ++i) {
    const auto start = std::chrono::steady_clock::now();
    device_->begin_closing();
    const auto end = device_->closed();
    ASSERT_TRUE(end);
    EXPECT_GT(*end, start);
    EXPECT_LT(*end - start, std::chrono::milliseconds(100));
  }
  EXPECT_TRUE(device_->synchronize());
}

TEST_F(CudaDeviceTest, MeasuresItsCopy) {
  const double measured = device_->copy_bytes_per_us();
  EXPECT_GT(measured, 1e4);  // 10 GB/s
  EXPECT_EQ(device_->copy_bytes_per_us(), measured);
}

}  // namespace
}  // namespace kb::cuda

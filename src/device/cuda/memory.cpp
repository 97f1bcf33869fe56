#include "device/cuda/memory.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <unistd.h>

#include <limits>

#include "device/cuda/driver.h"

namespace kb::cuda {
namespace {

/// What is enqueued may still use memory that is about to go. Failures are the device's to report.
void wait_for_device(int index) {
  cudaSetDevice(index);
  cudaDeviceSynchronize();
}

class PrivateMemory final : public Memory {
 public:
  PrivateMemory(int index, void* base, std::size_t size) : index_(index) {
    base_ = static_cast<std::byte*>(base);
    size_ = size;
  }
  ~PrivateMemory() override {
    wait_for_device(index_);
    cudaFree(base_);
    cudaGetLastError();
  }
  int fd() const override { return -1; }

 private:
  int index_;
};

/// Each step of making it leaves behind what the destructor is to undo.
class SharedMemory final : public Memory {
 public:
  explicit SharedMemory(int index) : index_(index) {}
  ~SharedMemory() override {
    wait_for_device(index_);
    cudaGetLastError();
    if (mapped_) driver()->unmap(address_, mapped_size_);
    if (address_ != 0) driver()->free_address(address_, mapped_size_);
    if (fd_ >= 0) close(fd_);
    if (created_) driver()->release(handle_);
  }
  int fd() const override { return fd_; }

  /// The failed step's result and name; CUDA_SUCCESS.
  std::pair<CUresult, const char*> make(std::size_t bytes);

 private:
  int index_;
  bool created_ = false;
  bool mapped_ = false;
  int fd_ = -1;
  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr address_ = 0;
  std::size_t mapped_size_ = 0;
};

std::pair<CUresult, const char*> SharedMemory::make(std::size_t bytes) {
  const Driver& cu = *driver();
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = index_;
  std::size_t granule = 0;
  CUresult result = cu.get_granularity(&granule, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  if (result != CUDA_SUCCESS) return {result, "cuMemGetAllocationGranularity"};
  if (granule == 0 || bytes > std::numeric_limits<std::size_t>::max() - granule)
    return {CUDA_ERROR_OUT_OF_MEMORY, "rounding up the size"};
  // Empty memory has a descriptor as well, and so one granule behind it.
  mapped_size_ = bytes == 0 ? granule : (bytes + granule - 1) / granule * granule;

  result = cu.create(&handle_, mapped_size_, &properties, 0);
  if (result != CUDA_SUCCESS) return {result, "cuMemCreate"};
  created_ = true;
  result = cu.export_handle(&fd_, handle_, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  if (result != CUDA_SUCCESS) {
    fd_ = -1;
    return {result, "cuMemExportToShareableHandle"};
  }
  result = cu.reserve(&address_, mapped_size_, 0, 0, 0);
  if (result != CUDA_SUCCESS) {
    address_ = 0;
    return {result, "cuMemAddressReserve"};
  }
  result = cu.map(address_, mapped_size_, 0, handle_, 0);
  if (result != CUDA_SUCCESS) return {result, "cuMemMap"};
  mapped_ = true;
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  result = cu.set_access(address_, mapped_size_, &access, 1);
  if (result != CUDA_SUCCESS) return {result, "cuMemSetAccess"};

  base_ = reinterpret_cast<std::byte*>(address_);
  size_ = bytes;
  return {CUDA_SUCCESS, ""};
}

}  // namespace

std::expected<std::unique_ptr<Memory>, std::string> allocate_shared(int index, std::size_t bytes) {
  if (driver() == nullptr)
    return std::unexpected("the CUDA driver has no virtual memory management to share memory with");
  auto memory = std::make_unique<SharedMemory>(index);
  const auto [result, step] = memory->make(bytes);
  if (result != CUDA_SUCCESS) {
    return std::unexpected(fmt::format("allocating {} bytes of shared memory on cuda:{}: {} ({})",
                                       bytes, index, driver()->explain(result), step));
  }
  return memory;
}

std::expected<std::unique_ptr<Memory>, std::string> allocate_private(int index, std::size_t bytes) {
  void* base = nullptr;
  const cudaError_t result = bytes == 0 ? cudaSuccess : cudaMalloc(&base, bytes);
  if (result != cudaSuccess) {
    cudaGetLastError();  // running out of memory is no failure of the device
    return std::unexpected(fmt::format("allocating {} bytes of memory on cuda:{}: {}", bytes, index,
                                       cudaGetErrorString(result)));
  }
  return std::make_unique<PrivateMemory>(index, base, bytes);
}

}  // namespace kb::cuda

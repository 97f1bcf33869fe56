// A GPU, through the driver's own interface: it is there wherever a GPU can be used, it costs
// nothing until it is asked for, and whatever runtime a candidate brings uses the same context.

#include <cuda.h>
#include <dlfcn.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "worker/native/device.h"

namespace kb::worker::native {
namespace {

// What the stub launches. Any driver since CUDA 11 compiles it for any GPU, in no time.
constexpr char kNothing[] =
    ".version 7.0\n"
    ".target sm_52\n"
    ".address_size 64\n"
    ".visible .entry kb_nothing() { ret; }\n";

// The functions in use, loaded from libcuda.so.1. Their names in the library are those of the first
// version of each (of 64-bit addresses: _v2), which is what they are declared as here (cuda.h
// renames some).
struct Driver {
  CUresult (*init)(unsigned);
  CUresult (*get_error_name)(CUresult, const char**);
  CUresult (*get_error_string)(CUresult, const char**);
  CUresult (*device_get)(CUdevice*, int);
  CUresult (*primary_context_retain)(CUcontext*, CUdevice);
  CUresult (*context_set_current)(CUcontext);
  CUresult (*context_synchronize)();
  CUresult (*stream_create)(CUstream*, unsigned);
  CUresult (*module_load_data)(CUmodule*, const void*);
  CUresult (*module_get_function)(CUfunction*, CUmodule, const char*);
  CUresult (*launch_kernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, CUstream, void**, void**);
  CUresult (*get_granularity)(std::size_t*, const CUmemAllocationProp*,
                              CUmemAllocationGranularity_flags);
  CUresult (*import_handle)(CUmemGenericAllocationHandle*, void*, CUmemAllocationHandleType);
  CUresult (*release_handle)(CUmemGenericAllocationHandle);
  CUresult (*reserve_address)(CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr,
                              unsigned long long);
  CUresult (*map)(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle,
                  unsigned long long);
  CUresult (*set_access)(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t);
  CUresult (*device_get_attribute)(int*, CUdevice_attribute, CUdevice);
  CUresult (*allocate)(CUdeviceptr*, std::size_t);
  CUresult (*free)(CUdeviceptr);
  CUresult (*fill_async)(CUdeviceptr, unsigned, std::size_t, CUstream);
  CUresult (*event_create)(CUevent*, unsigned);
  CUresult (*event_record)(CUevent, CUstream);
  CUresult (*event_elapsed_ms)(float*, CUevent, CUevent);

  /// Error: one sentence.
  std::expected<void, std::string> load() {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return std::unexpected("NVIDIA's driver cannot be loaded: " + std::string(::dlerror()));
    std::string missing;
    const auto find = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      if (!function) missing = name;
    };
    find(init, "cuInit");
    find(get_error_name, "cuGetErrorName");
    find(get_error_string, "cuGetErrorString");
    find(device_get, "cuDeviceGet");
    find(primary_context_retain, "cuDevicePrimaryCtxRetain");
    find(context_set_current, "cuCtxSetCurrent");
    find(context_synchronize, "cuCtxSynchronize");
    find(stream_create, "cuStreamCreate");
    find(module_load_data, "cuModuleLoadData");
    find(module_get_function, "cuModuleGetFunction");
    find(launch_kernel, "cuLaunchKernel");
    find(get_granularity, "cuMemGetAllocationGranularity");
    find(import_handle, "cuMemImportFromShareableHandle");
    find(release_handle, "cuMemRelease");
    find(reserve_address, "cuMemAddressReserve");
    find(map, "cuMemMap");
    find(set_access, "cuMemSetAccess");
    find(device_get_attribute, "cuDeviceGetAttribute");
    find(allocate, "cuMemAlloc_v2");
    find(free, "cuMemFree_v2");
    find(fill_async, "cuMemsetD32Async");
    find(event_create, "cuEventCreate");
    find(event_record, "cuEventRecord");
    find(event_elapsed_ms, "cuEventElapsedTime");
    if (!missing.empty())
      return std::unexpected("NVIDIA's driver is too old: it has no " + missing);
    return {};
  }

  std::string describe(CUresult result) const {
    const char *name = nullptr, *text = nullptr;
    get_error_name(result, &name);
    get_error_string(result, &text);
    return std::string(name ? name : "an unknown error") + (text ? std::string(": ") + text : "");
  }
};

// Nothing is given back: a context lives as long as its process, and the candidate's destructors
// run before that.
class CudaDevice final : public Device {
 public:
  std::expected<void, Fault> open() {
    if (auto loaded = driver_.load(); !loaded)
      return std::unexpected(Fault{FaultKind::unsupported, loaded.error()});
    CUdevice device = 0;
    CUcontext context = nullptr;
    CUresult result = driver_.init(0);
    if (result == CUDA_SUCCESS) result = driver_.device_get(&device, 0);
    // The context that every CUDA runtime uses.
    if (result == CUDA_SUCCESS) result = driver_.primary_context_retain(&context, device);
    if (result == CUDA_SUCCESS) result = driver_.context_set_current(context);
    if (result == CUDA_SUCCESS) result = driver_.stream_create(&stream_, CU_STREAM_NON_BLOCKING);
    int l2_bytes = 0;
    if (result == CUDA_SUCCESS)
      result = driver_.device_get_attribute(&l2_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
    l2_bytes_ = static_cast<std::size_t>(l2_bytes);
    if (result != CUDA_SUCCESS)
      return std::unexpected(
          Fault{FaultKind::unsupported, "the GPU cannot be used: " + driver_.describe(result)});
    return {};
  }

  std::expected<std::byte*, Fault> map(int fd, std::size_t bytes) override {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = 0;
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    std::size_t granularity = 1;
    CUmemGenericAllocationHandle handle{};
    CUdeviceptr address = 0;
    CUresult result =
        driver_.get_granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (result == CUDA_SUCCESS)
      result = driver_.import_handle(&handle, reinterpret_cast<void*>(std::intptr_t{fd}),
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (result == CUDA_SUCCESS) {
      bytes = (std::max<std::size_t>(bytes, 1) + granularity - 1) / granularity * granularity;
      result = driver_.reserve_address(&address, bytes, 0, 0, 0);
      if (result == CUDA_SUCCESS) result = driver_.map(address, bytes, 0, handle, 0);
      if (result == CUDA_SUCCESS) result = driver_.set_access(address, bytes, &access, 1);
      driver_.release_handle(handle);  // the mapping holds the memory from here on
    }
    if (result != CUDA_SUCCESS)
      return std::unexpected(
          Fault{result == CUDA_ERROR_OUT_OF_MEMORY ? FaultKind::out_of_memory : FaultKind::protocol,
                "the shared device memory cannot be mapped: " + driver_.describe(result)});
    return reinterpret_cast<std::byte*>(address);
  }

  DLDevice dl_device() const override { return {kDLCUDA, 0}; }
  void* stream() const override { return stream_; }

  std::expected<void, Fault> launch_nothing() override {
    CUresult result = CUDA_SUCCESS;
    if (!nothing_) {
      CUmodule module = nullptr;
      result = driver_.module_load_data(&module, kNothing);
      if (result == CUDA_SUCCESS)
        result = driver_.module_get_function(&nothing_, module, "kb_nothing");
    }
    if (result == CUDA_SUCCESS)
      result = driver_.launch_kernel(nothing_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr);
    return outcome(result);
  }

  std::expected<void, Fault> synchronize() override {
    return outcome(driver_.context_synchronize());
  }

  std::size_t l2_bytes() const override { return l2_bytes_; }

  std::expected<void, Fault> overwrite(std::size_t bytes) override {
    CUresult result = CUDA_SUCCESS;
    if (scratch_bytes_ < bytes) {
      if (scratch_ != 0) driver_.free(scratch_);
      scratch_ = 0;
      scratch_bytes_ = 0;
      result = driver_.allocate(&scratch_, bytes);
      if (result == CUDA_SUCCESS) scratch_bytes_ = bytes;
    }
    if (result == CUDA_SUCCESS) result = driver_.fill_async(scratch_, 0, bytes / 4, stream_);
    return outcome(result);
  }

  std::expected<void, Fault> make_events(std::size_t count) override {
    CUresult result = CUDA_SUCCESS;
    while (events_.size() < count && result == CUDA_SUCCESS) {
      CUevent event = nullptr;
      result = driver_.event_create(&event, CU_EVENT_DEFAULT);
      if (result == CUDA_SUCCESS) events_.push_back(event);
    }
    return outcome(result);
  }

  std::expected<void, Fault> record(std::size_t event) override {
    return outcome(driver_.event_record(events_[event], stream_));
  }

  std::expected<double, Fault> elapsed_us(std::size_t from, std::size_t to) override {
    float ms = 0;
    if (auto done = outcome(driver_.event_elapsed_ms(&ms, events_[from], events_[to])); !done)
      return std::unexpected(done.error());
    return 1000.0 * ms;
  }

 private:
  std::expected<void, Fault> outcome(CUresult result) const {
    if (result == CUDA_SUCCESS) return {};
    return std::unexpected(
        Fault{result == CUDA_ERROR_OUT_OF_MEMORY ? FaultKind::out_of_memory : FaultKind::runtime,
              driver_.describe(result)});
  }

  Driver driver_{};
  CUstream stream_ = nullptr;
  CUfunction nothing_ = nullptr;
  std::size_t l2_bytes_ = 0;
  CUdeviceptr scratch_ = 0;  // what overwrite() writes over
  std::size_t scratch_bytes_ = 0;
  std::vector<CUevent> events_;
};

}  // namespace

std::expected<std::unique_ptr<Device>, Fault> open_cuda() {
  auto device = std::make_unique<CudaDevice>();
  if (auto opened = device->open(); !opened) return std::unexpected(opened.error());
  return device;
}

}  // namespace kb::worker::native

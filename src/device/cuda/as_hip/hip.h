// CUDA's names for HIP's things: all that differs between the two for the files of src/device/cuda,
// when KERNELBENCH_HIP compiles them for AMD's cards. The other headers of this folder stand in for
// CUDA's own; they are on the include path of that build alone.
#pragma once

#ifdef __HIPCC__
#include <hip/hip_runtime.h>
#else
#include <hip/hip_runtime_api.h>
#endif

// ---- the runtime
#define cudaDevAttrGlobalMemoryBusWidth hipDeviceAttributeMemoryBusWidth
#define cudaDevAttrL2CacheSize hipDeviceAttributeL2CacheSize
#define cudaDevAttrMemoryClockRate hipDeviceAttributeMemoryClockRate
#define cudaDeviceAttr hipDeviceAttribute_t
#define cudaDeviceGetAttribute hipDeviceGetAttribute
#define cudaDeviceGetPCIBusId hipDeviceGetPCIBusId
#define cudaDeviceProp hipDeviceProp_t
#define cudaDeviceReset hipDeviceReset
#define cudaDeviceSynchronize hipDeviceSynchronize
#define cudaDriverGetVersion hipDriverGetVersion
#define cudaErrorInsufficientDriver hipErrorInsufficientDriver
#define cudaErrorInvalidValue hipErrorInvalidValue
#define cudaError_t hipError_t
#define cudaEventCreate hipEventCreate
#define cudaEventDestroy hipEventDestroy
#define cudaEventElapsedTime hipEventElapsedTime
#define cudaEventRecord hipEventRecord
#define cudaEventSynchronize hipEventSynchronize
#define cudaEvent_t hipEvent_t
#define cudaFree hipFree
#define cudaFreeHost hipHostFree
#define cudaGetDeviceCount hipGetDeviceCount
#define cudaGetDeviceProperties hipGetDeviceProperties
#define cudaGetErrorName hipGetErrorName
#define cudaGetErrorString hipGetErrorString
#define cudaGetLastError hipGetLastError
#define cudaHostAlloc hipHostMalloc
#define cudaHostAllocMapped hipHostMallocMapped
#define cudaMalloc hipMalloc
#define cudaMallocHost hipHostMalloc
#define cudaMemGetInfo hipMemGetInfo
#define cudaMemcpyAsync hipMemcpyAsync
#define cudaMemcpyDeviceToDevice hipMemcpyDeviceToDevice
#define cudaMemcpyDeviceToHost hipMemcpyDeviceToHost
#define cudaMemcpyHostToDevice hipMemcpyHostToDevice
#define cudaMemsetAsync hipMemsetAsync
#define cudaOccupancyMaxActiveBlocksPerMultiprocessor hipOccupancyMaxActiveBlocksPerMultiprocessor
#define cudaRuntimeGetVersion hipRuntimeGetVersion
#define cudaSetDevice hipSetDevice
#define cudaStreamCreateWithFlags hipStreamCreateWithFlags
#define cudaStreamDestroy hipStreamDestroy
#define cudaStreamNonBlocking hipStreamNonBlocking
#define cudaStreamSynchronize hipStreamSynchronize
#define cudaStream_t hipStream_t
#define cudaSuccess hipSuccess
#define cudaUUID_t hipUUID
// No part of the L2 cache can be set aside.
#define cudaCtxResetPersistingL2Cache() hipSuccess
#define cudaDeviceSetLimit(limit, value) hipErrorNotSupported

// ---- the driver, which is the same library
#define CUDA_ERROR_OUT_OF_MEMORY hipErrorOutOfMemory
#define CUDA_SUCCESS hipSuccess
#define CU_MEM_ACCESS_FLAGS_PROT_READWRITE hipMemAccessFlagsProtReadWrite
#define CU_MEM_ALLOCATION_TYPE_PINNED hipMemAllocationTypePinned
#define CU_MEM_ALLOC_GRANULARITY_RECOMMENDED hipMemAllocationGranularityRecommended
#define CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR hipMemHandleTypePosixFileDescriptor
#define CU_MEM_LOCATION_TYPE_DEVICE hipMemLocationTypeDevice
#define CUdeviceptr hipDeviceptr_t
#define CUmemAccessDesc hipMemAccessDesc
#define CUmemAllocationProp hipMemAllocationProp
#define CUmemGenericAllocationHandle hipMemGenericAllocationHandle_t
#define CUresult hipError_t
#define cuGetErrorString hipDrvGetErrorString
#define cuMemAddressFree hipMemAddressFree
#define cuMemAddressReserve hipMemAddressReserve
#define cuMemCreate hipMemCreate
#define cuMemExportToShareableHandle hipMemExportToShareableHandle
#define cuMemGetAllocationGranularity hipMemGetAllocationGranularity
#define cuMemImportFromShareableHandle hipMemImportFromShareableHandle
#define cuMemMap hipMemMap
#define cuMemRelease hipMemRelease
#define cuMemSetAccess hipMemSetAccess
#define cuMemUnmap hipMemUnmap
#define requestedHandleTypes requestedHandleType

// ---- in kernels
#ifdef __HIPCC__
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>

#include <cmath>
#include <cstring>

#define __nv_bfloat16 __hip_bfloat16
#define __float2bfloat16_rn __float2bfloat16
// Groups of 32 lanes, also where a wavefront has 64.
#undef __shfl_down_sync
#define __shfl_down_sync(mask, value, lanes) __shfl_down(value, lanes, 32)

namespace kb::cuda {

// Read or written once: what CUDA's __ldcs, __stcs and __ldcv are for.
template <class T>
__device__ T __ldcs(const T* from) {
  static_assert(sizeof(T) <= sizeof(uint4));
  if constexpr (sizeof(T) == sizeof(uint4)) {
    using Quad = unsigned __attribute__((ext_vector_type(4)));
    const Quad quad = __builtin_nontemporal_load(reinterpret_cast<const Quad*>(from));
    T value;
    memcpy(&value, &quad, sizeof value);
    return value;
  } else {
    return __builtin_nontemporal_load(from);
  }
}
__device__ inline void __stcs(uint4* to, uint4 value) {
  using Quad = unsigned __attribute__((ext_vector_type(4)));
  __builtin_nontemporal_store(Quad{value.x, value.y, value.z, value.w},
                              reinterpret_cast<Quad*>(to));
}
__device__ inline uint4 __ldcv(const uint4* from) {
  return __ldcs(from);
}

// Never above the exact sum. CUDA's are the nearest below; these may be the one below that.
__device__ inline float __fmaf_rd(float x, float y, float z) {
  return nextafterf(fmaf(x, y, z), -INFINITY);
}
__device__ inline double __fma_rd(double x, double y, double z) {
  return nextafter(fma(x, y, z), -INFINITY);
}

}  // namespace kb::cuda
#endif

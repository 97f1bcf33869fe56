/* What a HIP candidate is compiled with on an NVIDIA GPU, before its own text: HIP's headers for
 * nvcc, as they lie in the SDK. They call CUDA as it was in 11 and 12 (to HIP 7.0 at least); what
 * CUDA 13 took away is given back here, while they are read and for them alone.
 */
#ifndef KERNELBENCH_HIP_ON_CUDA_H_
#define KERNELBENCH_HIP_ON_CUDA_H_

#include <cuda.h>
#include <cuda_runtime.h>

#if CUDART_VERSION < 13000

#include <hip/hip_runtime.h>

#else

namespace kb_hip_on_cuda {

struct DeviceProperties : cudaDeviceProp {
  int clockRate;
  int memoryClockRate;
  int computeMode;
  int cooperativeMultiDeviceLaunch;
  int deviceOverlap;
  int kernelExecTimeoutEnabled;
  int maxTexture1DLinear;
  int singleToDoublePrecisionPerfRatio;
};

inline cudaError_t get_device_properties(DeviceProperties* properties, int device) {
  if (const cudaError_t error = cudaGetDeviceProperties(properties, device)) return error;
  const auto attribute = [device](cudaDeviceAttr which) {
    int value = 0;
    return cudaDeviceGetAttribute(&value, which, device) == cudaSuccess ? value : 0;
  };
  properties->clockRate = attribute(cudaDevAttrClockRate);
  properties->memoryClockRate = attribute(cudaDevAttrMemoryClockRate);
  properties->computeMode = attribute(cudaDevAttrComputeMode);
  properties->cooperativeMultiDeviceLaunch = 0;
  properties->deviceOverlap = attribute(cudaDevAttrGpuOverlap);
  properties->kernelExecTimeoutEnabled = attribute(cudaDevAttrKernelExecTimeout);
  properties->maxTexture1DLinear = attribute(cudaDevAttrMaxTexture1DLinearWidth);
  properties->singleToDoublePrecisionPerfRatio =
      attribute(cudaDevAttrSingleToDoublePrecisionPerfRatio);
  return cudaSuccess;
}

inline cudaMemLocation location_of(int device) {
  cudaMemLocation location{};
  location.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  location.id = device == cudaCpuDeviceId ? 0 : device;
  return location;
}

inline cudaError_t mem_advise(const void* memory, size_t bytes, cudaMemoryAdvise advice,
                              int device) {
  return cudaMemAdvise(memory, bytes, advice, location_of(device));
}

inline cudaError_t mem_prefetch(const void* memory, size_t bytes, int device, cudaStream_t stream) {
  return cudaMemPrefetchAsync(memory, bytes, location_of(device), 0, stream);
}

inline cudaError_t add_dependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                    const cudaGraphNode_t* to, size_t count) {
  return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}

inline cudaError_t remove_dependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                       const cudaGraphNode_t* to, size_t count) {
  return cudaGraphRemoveDependencies(graph, from, to, nullptr, count);
}

inline cudaError_t get_edges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                             size_t* count) {
  return cudaGraphGetEdges(graph, from, to, nullptr, count);
}

inline cudaError_t get_dependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies,
                                    size_t* count) {
  return cudaGraphNodeGetDependencies(node, dependencies, nullptr, count);
}

inline cudaError_t get_dependents(cudaGraphNode_t node, cudaGraphNode_t* dependents,
                                  size_t* count) {
  return cudaGraphNodeGetDependentNodes(node, dependents, nullptr, count);
}

inline cudaError_t update_dependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                       size_t count, unsigned int flags) {
  return cudaStreamUpdateCaptureDependencies(stream, dependencies, nullptr, count, flags);
}

inline CUresult get_capture_info(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id,
                                 CUgraph* graph, const CUgraphNode** dependencies, size_t* count) {
  return cuStreamGetCaptureInfo(stream, status, id, graph, dependencies, nullptr, count);
}

inline CUresult create_context(CUcontext* context, unsigned int flags, CUdevice device) {
  return cuCtxCreate(context, nullptr, flags, device);
}

/* Cooperative launches over several devices are no more. */
template <class... Arguments>
cudaError_t launch_on_several(Arguments...) {
  return cudaErrorNotSupported;
}

}  // namespace kb_hip_on_cuda

#pragma push_macro("cuCtxCreate")
#undef cuCtxCreate

#define cuCtxCreate kb_hip_on_cuda::create_context
#define cuStreamGetCaptureInfo_v2 kb_hip_on_cuda::get_capture_info
#define cudaDevAttrCooperativeMultiDeviceLaunch cudaDevAttrReserved96
#define cudaDeviceProp kb_hip_on_cuda::DeviceProperties
#define cudaGetDeviceProperties kb_hip_on_cuda::get_device_properties
#define cudaGraphAddDependencies kb_hip_on_cuda::add_dependencies
#define cudaGraphGetEdges kb_hip_on_cuda::get_edges
#define cudaGraphNodeGetDependencies kb_hip_on_cuda::get_dependencies
#define cudaGraphNodeGetDependentNodes kb_hip_on_cuda::get_dependents
#define cudaGraphRemoveDependencies kb_hip_on_cuda::remove_dependencies
#define cudaLaunchCooperativeKernelMultiDevice kb_hip_on_cuda::launch_on_several
#define cudaMemAdvise kb_hip_on_cuda::mem_advise
#define cudaMemPrefetchAsync kb_hip_on_cuda::mem_prefetch
#define cudaStreamUpdateCaptureDependencies kb_hip_on_cuda::update_dependencies

#include <hip/hip_runtime.h>

#undef cuStreamGetCaptureInfo_v2
#undef cudaDevAttrCooperativeMultiDeviceLaunch
#undef cudaDeviceProp
#undef cudaGetDeviceProperties
#undef cudaGraphAddDependencies
#undef cudaGraphGetEdges
#undef cudaGraphNodeGetDependencies
#undef cudaGraphNodeGetDependentNodes
#undef cudaGraphRemoveDependencies
#undef cudaLaunchCooperativeKernelMultiDevice
#undef cudaMemAdvise
#undef cudaMemPrefetchAsync
#undef cudaStreamUpdateCaptureDependencies
#pragma pop_macro("cuCtxCreate")

#endif /* CUDART_VERSION < 13000 */

#endif /* KERNELBENCH_HIP_ON_CUDA_H_ */

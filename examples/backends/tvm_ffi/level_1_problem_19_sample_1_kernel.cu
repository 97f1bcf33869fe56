// ReLU as a TVM-FFI function: y = max(x, 0), element by element, on the stream of the caller.
// Any shape; float32, float16 and bfloat16.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/cuda/base.h>
#include <tvm/ffi/function.h>

namespace {

using tvm::ffi::TensorView;

constexpr int kThreads = 256;

template <typename T>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T at[kSize];
};

// Written so that NaN stays NaN, as in PyTorch.
template <typename T>
__device__ T relu(T x) {
  return x < T(0.0f) ? T(0.0f) : x;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    relu_kernel(const T* __restrict__ x, T* __restrict__ y, int64_t n) {
  const int64_t thread = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t packs = n / Pack<T>::kSize;
  if (thread < packs) {
    Pack<T> pack = reinterpret_cast<const Pack<T>*>(x)[thread];
#pragma unroll
    for (T& value : pack.at) value = relu(value);
    reinterpret_cast<Pack<T>*>(y)[thread] = pack;
  }
  // What is left after the last whole pack: fewer than kSize elements.
  const int64_t rest = packs * Pack<T>::kSize + thread;
  if (rest < n) y[rest] = relu(x[rest]);
}

template <typename T>
void launch(const TensorView& x, const TensorView& y) {
  const int64_t n = x.numel();
  const int64_t blocks = n / (kThreads * Pack<T>::kSize) + 1;
  const DLDevice device = x.device();
  auto* stream =
      static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  relu_kernel<T><<<unsigned(blocks), kThreads, 0, stream>>>(static_cast<const T*>(x.data_ptr()),
                                                            static_cast<T*>(y.data_ptr()), n);
  TVM_FFI_CHECK_CUDA_ERROR(cudaGetLastError());
}

void run(TensorView x, TensorView y) {
  const DLDataType type = x.dtype();
  if (type.code == kDLFloat && type.bits == 32) {
    launch<float>(x, y);
  } else if (type.code == kDLFloat && type.bits == 16) {
    launch<__half>(x, y);
  } else if (type.code == kDLBfloat && type.bits == 16) {
    launch<__nv_bfloat16>(x, y);
  } else {
    TVM_FFI_THROW(TypeError) << "there is no kernel for this type";
  }
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);

// GELU, the exact form: y = x * Phi(x) with Phi(x) = (1 + erf(x / sqrt 2)) / 2.
//
// erf costs some 25 instructions, which hide behind the memory traffic as long as enough loads are
// under way: each thread loads two packs of 16 bytes before it computes. All arithmetic is float32,
// whatever the tensor's type.
// Floor: 12.9 GB moved, 3.0 ms. Any shape; float32, float16 and bfloat16.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <kernelbench/kernel.h>

namespace {

constexpr int kThreads = 256;
constexpr int kPacks = 2;  // of each thread

template <typename T>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T at[kSize];
};

__device__ float gelu(float x) {
  constexpr float kHalfSqrt2 = 0.70710678f;
  return 0.5f * x * (1.0f + erff(x * kHalfSqrt2));
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    gelu_kernel(const T* __restrict__ x, T* __restrict__ y, int64_t n) {
  const int64_t packs = n / Pack<T>::kSize;
  const int64_t first = int64_t(blockIdx.x) * kThreads * kPacks + threadIdx.x;
  const auto* from = reinterpret_cast<const Pack<T>*>(x);
  auto* to = reinterpret_cast<Pack<T>*>(y);

  Pack<T> pack[kPacks];
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    if (first + i * kThreads < packs) pack[i] = from[first + i * kThreads];
  }
#pragma unroll
  for (int i = 0; i < kPacks; ++i) {
    if (first + i * kThreads >= packs) continue;
#pragma unroll
    for (T& value : pack[i].at) value = T(gelu(float(value)));
    to[first + i * kThreads] = pack[i];
  }

  // What is left after the last whole pack: fewer than kSize elements.
  const int64_t rest = packs * Pack<T>::kSize + int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (rest < n) y[rest] = T(gelu(float(x[rest])));
}

template <typename T>
void launch(const kb_call* call) {
  const int64_t n = kb_numel(&call->inputs[0]);
  const int64_t blocks = n / (kThreads * kPacks * Pack<T>::kSize) + 1;
  gelu_kernel<T><<<unsigned(blocks), kThreads, 0, static_cast<cudaStream_t>(call->stream)>>>(
      static_cast<const T*>(kb_data(&call->inputs[0])), static_cast<T*>(kb_data(&call->outputs[0])),
      n);
}

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const DLDataType type = call->inputs[0].dtype;
  if (type.code == kDLFloat && type.bits == 32) {
    launch<float>(call);
  } else if (type.code == kDLFloat && type.bits == 16) {
    launch<__half>(call);
  } else if (type.code == kDLBfloat && type.bits == 16) {
    launch<__nv_bfloat16>(call);
  } else {
    return 1;  // no kernel for this type
  }
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}

// ReLU: y = max(x, 0), element by element.
//
// Limited by memory alone: each thread moves four packs of 16 bytes, and all four loads are under
// way before the first value is used. Any shape; float32, float16 and bfloat16.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <kernelbench/kernel.h>

namespace {

constexpr int kThreads = 256;
constexpr int kPacks = 4;  // of each thread

// Types of bfloat16 differ from one release of HIP to the next; its bits do not.
struct Bfloat16 {
  uint16_t bits;
};

__device__ bool is_negative(float x) {
  return x < 0.0f;
}
__device__ bool is_negative(__half x) {
  return __half2float(x) < 0.0f;
}
__device__ bool is_negative(Bfloat16 x) {
  return __uint_as_float(unsigned(x.bits) << 16) < 0.0f;
}

template <typename T>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(T);
  T at[kSize];
};

template <typename T>
__global__ void __launch_bounds__(kThreads)
    relu_kernel(const T* __restrict__ x, T* __restrict__ y, int64_t n, T zero) {
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
    if (first + i * kThreads >= packs) break;
#pragma unroll
    for (T& value : pack[i].at) {
      if (is_negative(value)) value = zero;  // NaN stays NaN, as in PyTorch
    }
    to[first + i * kThreads] = pack[i];
  }

  // What is left after the last whole pack: fewer than kSize elements.
  const int64_t rest = packs * Pack<T>::kSize + int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (rest < n) y[rest] = is_negative(x[rest]) ? zero : x[rest];
}

template <typename T>
void launch(const kb_call* call, T zero) {
  const int64_t n = kb_numel(&call->inputs[0]);
  const int64_t blocks = n / (kThreads * kPacks * Pack<T>::kSize) + 1;
  relu_kernel<T>
      <<<dim3(unsigned(blocks)), dim3(kThreads), 0, static_cast<hipStream_t>(call->stream)>>>(
          static_cast<const T*>(kb_data(&call->inputs[0])),
          static_cast<T*>(kb_data(&call->outputs[0])), n, zero);
}

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const DLDataType type = call->inputs[0].dtype;
  if (type.code == kDLFloat && type.bits == 32) {
    launch(call, 0.0f);
  } else if (type.code == kDLFloat && type.bits == 16) {
    launch(call, __half(0.0f));
  } else if (type.code == kDLBfloat && type.bits == 16) {
    launch(call, Bfloat16{0});
  } else {
    return 1;  // no kernel for this type
  }
  return hipGetLastError() == hipSuccess ? 0 : 2;
}

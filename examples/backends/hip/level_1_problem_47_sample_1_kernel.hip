// Sum over one dimension, which is kept with size 1.
//
// The tensor is (outer, reduced, inner). A thread adds up one of `inner` columns, so that
// neighbours read side by side in each row; the four rows of a block share a column. Nothing here
// depends on the width of a wavefront, which is 32 or 64. Any shape; float32, float16 and bfloat16,
// with sums in float32; slow where the last dimension is the one reduced.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <kernelbench/kernel.h>

namespace {

constexpr int kColumns = 64, kRows = 4;
constexpr int kLoads = 8;

// Types of bfloat16 differ from one release of HIP to the next; its bits do not.
struct Bfloat16 {
  uint16_t bits;
};

__device__ float to_float(float x) {
  return x;
}
__device__ float to_float(__half x) {
  return __half2float(x);
}
__device__ float to_float(Bfloat16 x) {
  return __uint_as_float(unsigned(x.bits) << 16);
}

__device__ void store(float* to, float x) {
  *to = x;
}
__device__ void store(__half* to, float x) {
  *to = __float2half(x);
}
// Rounds to the nearest, ties to even.
__device__ void store(Bfloat16* to, float x) {
  const unsigned bits = __float_as_uint(x);
  to->bits = x != x ? uint16_t(0x7fc0) : uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <typename T>
__global__ void __launch_bounds__(kColumns* kRows)
    sum_kernel(const T* __restrict__ x, T* __restrict__ y, int64_t reduced, int64_t inner,
               int64_t column_blocks) {
  const int64_t outer = blockIdx.x / column_blocks;
  const int64_t column = blockIdx.x % column_blocks * kColumns + threadIdx.x;
  float sum = 0.0f;
  if (column < inner) {
    const T* from = x + outer * reduced * inner + column;
    int64_t row = threadIdx.y;
    for (; row + (kLoads - 1) * kRows < reduced; row += kLoads * kRows) {
      float part[kLoads];
#pragma unroll
      for (int i = 0; i < kLoads; ++i) part[i] = to_float(from[(row + i * kRows) * inner]);
        // As a tree, which keeps rounding errors small.
#pragma unroll
      for (int half = kLoads / 2; half > 0; half /= 2) {
#pragma unroll
        for (int i = 0; i < half; ++i) part[i] += part[i + half];
      }
      sum += part[0];
    }
    for (; row < reduced; row += kRows) sum += to_float(from[row * inner]);
  }

  __shared__ float of_thread[kRows][kColumns];
  of_thread[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < inner) {
#pragma unroll
    for (int i = 1; i < kRows; ++i) sum += of_thread[i][threadIdx.x];
    store(&y[outer * inner + column], sum);
  }
}

template <typename T>
int launch(const kb_call* call) {
  const DLTensor& input = call->inputs[0];
  if (call->outputs[0].ndim != input.ndim) return 1;  // the dimension is to be kept

  // The reduced dimension is a constructor's argument, but the shapes tell it.
  int dimension = 0;
  const int64_t* kept = call->outputs[0].shape;
  while (dimension < input.ndim && kept[dimension] == input.shape[dimension]) ++dimension;
  const int64_t reduced = dimension < input.ndim ? input.shape[dimension] : 1;
  int64_t outer = 1, inner = 1;
  for (int d = 0; d < dimension; ++d) outer *= input.shape[d];
  for (int d = dimension + 1; d < input.ndim; ++d) inner *= input.shape[d];

  const int64_t column_blocks = (inner + kColumns - 1) / kColumns;
  sum_kernel<T><<<dim3(unsigned(outer * column_blocks)), dim3(kColumns, kRows), 0,
                  static_cast<hipStream_t>(call->stream)>>>(
      static_cast<const T*>(kb_data(&input)), static_cast<T*>(kb_data(&call->outputs[0])), reduced,
      inner, column_blocks);
  return hipGetLastError() == hipSuccess ? 0 : 2;
}

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const DLDataType type = call->inputs[0].dtype;
  if (type.code == kDLFloat && type.bits == 32) return launch<float>(call);
  if (type.code == kDLFloat && type.bits == 16) return launch<__half>(call);
  if (type.code == kDLBfloat && type.bits == 16) return launch<Bfloat16>(call);
  return 1;  // no kernel for this type
}

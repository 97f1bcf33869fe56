// Sum over one dimension, which is kept with size 1.
//
// A view of the tensor as (outer, reduced, inner): a lane takes one of `inner` columns, so that a
// warp reads side by side in each row, and four threads of a block share the rows of a column.
// Eight loads are under way at a time; their tree sum is also what keeps rounding errors small.
// Floor: 8.6 GB read, 2.0 ms. Any shape, float32; slow where the last dimension is the one reduced.
#include <kernelbench/kernel.h>

namespace {

constexpr int kColumns = 128, kRows = 4;
constexpr int kThreads = kColumns * kRows;
constexpr int kLoads = 8;

__global__ void __launch_bounds__(kThreads)
    sum_kernel(const float* __restrict__ x, float* __restrict__ y, int64_t reduced, int64_t inner,
               int64_t column_blocks) {
  const int64_t outer = blockIdx.x / column_blocks;
  const int64_t column = blockIdx.x % column_blocks * kColumns + threadIdx.x;
  float sum = 0.0f;
  if (column < inner) {
    const float* from = x + outer * reduced * inner + column;
    int64_t row = threadIdx.y;
    for (; row + (kLoads - 1) * kRows < reduced; row += kLoads * kRows) {
      float part[kLoads];
#pragma unroll
      for (int i = 0; i < kLoads; ++i) part[i] = from[(row + i * kRows) * inner];
#pragma unroll
      for (int half = kLoads / 2; half > 0; half /= 2) {
#pragma unroll
        for (int i = 0; i < half; ++i) part[i] += part[i + half];
      }
      sum += part[0];
    }
    for (; row < reduced; row += kRows) sum += from[row * inner];
  }

  __shared__ float of_thread[kRows][kColumns];
  of_thread[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < inner) {
#pragma unroll
    for (int i = 1; i < kRows; ++i) sum += of_thread[i][threadIdx.x];
    y[outer * inner + column] = sum;
  }
}

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const DLTensor& input = call->inputs[0];
  if (input.dtype.code != kDLFloat || input.dtype.bits != 32) return 1;  // float32 only
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
  sum_kernel<<<unsigned(outer * column_blocks), dim3(kColumns, kRows), 0,
               static_cast<cudaStream_t>(call->stream)>>>(
      kb_input_f32(call, 0), kb_output_f32(call, 0), reduced, inner, column_blocks);
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}

// Product of an (M, K) matrix and a (K, 1) vector, K much larger than M.
//
// Every element of the matrix is used once, so memory sets the pace. The vector comes from the
// second-level cache, and would double the traffic there: a block takes four rows, and uses each
// value of the vector four times. It takes a part of K only, for enough blocks; a second kernel
// adds the parts up. A thread's own sums are 64 values long: short sums keep rounding errors small.
// Floor: 8.6 GB read, 2.0 ms. Any sizes, float32.
#include <kernelbench/kernel.h>

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kRows = 4;
constexpr int64_t kDepth = 16384;  // columns of a block

template <int kWidth>
struct alignas(kWidth * sizeof(float)) Pack {
  float at[kWidth];
};

__device__ float sum_warp(float value) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_xor_sync(~0u, value, lanes);
  return value;
}

// parts is (rows, splits).
template <int kWidth>
__global__ void __launch_bounds__(kThreads)
    part_kernel(const float* __restrict__ a, const float* __restrict__ b, int64_t rows,
                int64_t depth, int64_t splits, float* __restrict__ parts) {
  const int64_t row = blockIdx.x / splits * kRows, split = blockIdx.x % splits;
  const int64_t end = min((split + 1) * kDepth, depth);

  float sum[kRows][kWidth] = {};
#pragma unroll 2
  for (int64_t k = split * kDepth + threadIdx.x * kWidth; k < end; k += kThreads * kWidth) {
    const auto vector = *reinterpret_cast<const Pack<kWidth>*>(b + k);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      // Rows past the last one repeat it.
      const auto pack =
          *reinterpret_cast<const Pack<kWidth>*>(a + min(row + r, rows - 1) * depth + k);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) sum[r][j] += pack.at[j] * vector.at[j];
    }
  }

  __shared__ float of_warp[kRows][kWarps];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    float total = 0.0f;
#pragma unroll
    for (float value : sum[r]) total += value;
    total = sum_warp(total);
    if (threadIdx.x % 32 == 0) of_warp[r][threadIdx.x / 32] = total;
  }
  __syncthreads();
  if (threadIdx.x < kRows && row + threadIdx.x < rows) {
    float total = 0.0f;
#pragma unroll
    for (float value : of_warp[threadIdx.x]) total += value;
    parts[(row + threadIdx.x) * splits + split] = total;
  }
}

// One warp for each row.
__global__ void __launch_bounds__(kThreads)
    sum_kernel(const float* __restrict__ parts, int64_t rows, int64_t splits,
               float* __restrict__ y) {
  const int64_t row = int64_t(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int64_t split = threadIdx.x % 32; split < splits; split += 32) {
    sum += parts[row * splits + split];
  }
  sum = sum_warp(sum);
  if (threadIdx.x % 32 == 0) y[row] = sum;
}

// Scratch memory, as large as the largest call so far needed.
struct State {
  float* parts = nullptr;
  int64_t capacity = 0;
};

}  // namespace

KB_EXPORT int kb_create(const kb_call*, void** state) {
  *state = new State;
  return 0;
}

KB_EXPORT void kb_destroy(void* state) {
  auto* made = static_cast<State*>(state);
  cudaFree(made->parts);
  delete made;
}

KB_EXPORT int kb_run(const kb_call* call) {
  const DLTensor& matrix = call->inputs[0];
  if (matrix.dtype.code != kDLFloat || matrix.dtype.bits != 32) return 1;  // float32 only
  const float* a = kb_input_f32(call, 0);
  const float* b = kb_input_f32(call, 1);
  const int64_t rows = matrix.shape[0], depth = matrix.shape[1];
  const int64_t splits = (depth + kDepth - 1) / kDepth;
  const auto stream = static_cast<cudaStream_t>(call->stream);

  auto& state = *static_cast<State*>(call->state);
  if (state.capacity < rows * splits) {
    cudaFree(state.parts);
    state = {};
    if (cudaMalloc(&state.parts, size_t(rows * splits) * sizeof(float)) != cudaSuccess) return 2;
    state.capacity = rows * splits;
  }

  const auto blocks = unsigned((rows + kRows - 1) / kRows * splits);
  if (depth % 4 == 0) {
    part_kernel<4><<<blocks, kThreads, 0, stream>>>(a, b, rows, depth, splits, state.parts);
  } else {
    part_kernel<1><<<blocks, kThreads, 0, stream>>>(a, b, rows, depth, splits, state.parts);
  }
  sum_kernel<<<unsigned((rows + kWarps - 1) / kWarps), kThreads, 0, stream>>>(
      state.parts, rows, splits, kb_output_f32(call, 0));
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}

// Running sum along the rows of a matrix: one block for each row, one read and one write.
//
// A block takes 8192 elements at a time. A warp takes 1024 neighbouring ones of them as eight packs
// for each lane: running sums inside a pack, then over the lanes by shuffles, then over the eight
// rounds, then over the warps through shared memory. Sums of sums keep rounding errors small.
// Floor: 8.6 GB moved, 2.0 ms. Any 2-dimensional shape, float32.
#include <kernelbench/kernel.h>

namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kPacks = 8;  // of each thread

template <int kWidth>
struct alignas(kWidth * sizeof(float)) Pack {
  float at[kWidth];
};

template <int kWidth>
__global__ void __launch_bounds__(kThreads, 4)
    cumsum_kernel(const float* __restrict__ x, float* __restrict__ y, int64_t columns) {
  constexpr int kRound = 32 * kWidth;  // elements of a warp in one round
  constexpr int kTile = kThreads * kPacks * kWidth;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float* from = x + blockIdx.x * columns;
  float* to = y + blockIdx.x * columns;
  __shared__ float of_warp[2][kWarps];  // two, so that one barrier for each tile is enough

  float carry = 0.0f;  // the sum of all tiles before this one
  int buffer = 0;
  for (int64_t tile = 0; tile < columns; tile += kTile, buffer ^= 1) {
    const int64_t first = tile + warp * kPacks * kRound + lane * kWidth;
    Pack<kWidth> pack[kPacks] = {};
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int64_t at = first + i * kRound;
      if (at < columns) pack[i] = *reinterpret_cast<const Pack<kWidth>*>(from + at);
    }

    float before[kPacks];  // of each pack: the sum of the warp's elements before it
    float total = 0.0f;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
#pragma unroll
      for (int j = 1; j < kWidth; ++j) pack[i].at[j] += pack[i].at[j - 1];
      float sum = pack[i].at[kWidth - 1];
#pragma unroll
      for (int lanes = 1; lanes < 32; lanes *= 2) {
        const float other = __shfl_up_sync(~0u, sum, lanes);
        if (lane >= lanes) sum += other;
      }
      const float lower = __shfl_up_sync(~0u, sum, 1);
      before[i] = total + (lane > 0 ? lower : 0.0f);
      total += __shfl_sync(~0u, sum, 31);
    }

    if (lane == 0) of_warp[buffer][warp] = total;
    __syncthreads();
    float offset = carry;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      if (w == warp) offset = carry;
      carry += of_warp[buffer][w];
    }

#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int64_t at = first + i * kRound;
#pragma unroll
      for (float& value : pack[i].at) value += offset + before[i];
      if (at < columns) *reinterpret_cast<Pack<kWidth>*>(to + at) = pack[i];
    }
  }
}

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const DLTensor& input = call->inputs[0];
  if (input.dtype.code != kDLFloat || input.dtype.bits != 32) return 1;  // float32 only
  if (input.ndim != 2) return 1;  // the scanned dimension must be the last
  const float* x = kb_input_f32(call, 0);
  float* y = kb_output_f32(call, 0);
  const auto rows = unsigned(input.shape[0]);
  const int64_t columns = input.shape[1];
  const auto stream = static_cast<cudaStream_t>(call->stream);
  if (columns % 4 == 0) {
    cumsum_kernel<4><<<rows, kThreads, 0, stream>>>(x, y, columns);
  } else {
    cumsum_kernel<1><<<rows, kThreads, 0, stream>>>(x, y, columns);
  }
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}

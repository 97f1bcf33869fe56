// C = A B in float32 on the CUDA cores, A (M, K) and B (K, N).
//
// A block computes 128 x 128 of C in steps of 8 along K, a thread 8 x 8 of it in registers: per
// step of one it reads 16 values from shared memory for 64 multiply-adds. A is stored transposed
// there, so that both reads are 16 bytes wide. The next step's values travel from memory to
// registers meanwhile; two buffers need one barrier a step.
// Floor: 137 GFLOP, 2.3 ms at 60 TFLOP/s. Any sizes, float32. Sample 1 uses the tensor cores.
#include <kernelbench/kernel.h>

namespace {

constexpr int kTile = 128, kStep = 8;
constexpr int kThreads = 256;
constexpr int kPitch = kTile + 4;  // of a transposed tile's rows: fewer bank conflicts
constexpr int64_t kGroup = 8;      // tile rows that are worked on together, for the L2 cache

// row[at .. at + 4), zeros from `count` on. kAligned: the 16 bytes are aligned, and all or none of
// them are inside.
template <bool kAligned>
__device__ float4 load(const float* row, int64_t at, int64_t count) {
  if constexpr (kAligned) {
    return at < count ? *reinterpret_cast<const float4*>(row + at) : float4{};
  } else {
    return {at < count ? row[at] : 0.0f, at + 1 < count ? row[at + 1] : 0.0f,
            at + 2 < count ? row[at + 2] : 0.0f, at + 3 < count ? row[at + 3] : 0.0f};
  }
}

template <bool kAligned>
__global__ void __launch_bounds__(kThreads, 2)
    matmul_kernel(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                  int64_t rows, int64_t columns, int64_t depth) {
  __shared__ __align__(16) float a_tile[2][kStep][kPitch];
  __shared__ __align__(16) float b_tile[2][kStep][kTile];

  const int64_t row_tiles = (rows + kTile - 1) / kTile,
                column_tiles = (columns + kTile - 1) / kTile;
  const int64_t first_tile = blockIdx.x / (kGroup * column_tiles) * kGroup;
  const int64_t group = min(kGroup, row_tiles - first_tile);
  const int64_t in_group = blockIdx.x % (kGroup * column_tiles);
  const int64_t first_row = (first_tile + in_group % group) * kTile;
  const int64_t first_column = in_group / group * kTile;

  // What this thread loads: 4 values along K of a row of A, 4 neighbours of a row of B.
  const int thread = threadIdx.x;
  const int a_row = thread / 2, a_depth = thread % 2 * 4;
  const int b_row = thread / 32, b_column = thread % 32 * 4;
  float4 a_next, b_next;
  const auto fetch = [&](int64_t begin) {
    const int64_t row = first_row + a_row, k = begin + b_row;
    a_next = load<kAligned>(a + row * depth, begin + a_depth, row < rows ? depth : 0);
    b_next = load<kAligned>(b + k * columns, first_column + b_column, k < depth ? columns : 0);
  };
  const auto store = [&](int buffer) {
    a_tile[buffer][a_depth][a_row] = a_next.x;
    a_tile[buffer][a_depth + 1][a_row] = a_next.y;
    a_tile[buffer][a_depth + 2][a_row] = a_next.z;
    a_tile[buffer][a_depth + 3][a_row] = a_next.w;
    *reinterpret_cast<float4*>(&b_tile[buffer][b_row][b_column]) = b_next;
  };

  // What it computes: rows row, row + 16 and columns column, column + 32, four neighbours of each.
  // The 4 x 8 lanes of a warp then read without bank conflicts.
  const int lane = thread % 32, warp = thread / 32;
  const int row = warp / 2 * 32 + lane / 8 * 4;
  const int column = warp % 2 * 64 + lane % 8 * 4;
  float sum[8][8] = {};

  fetch(0);
  store(0);
  __syncthreads();
  int buffer = 0;
  for (int64_t begin = 0; begin < depth; begin += kStep) {
    const bool more = begin + kStep < depth;
    if (more) fetch(begin + kStep);
#pragma unroll
    for (int k = 0; k < kStep; ++k) {
      float left[8], right[8];
      *reinterpret_cast<float4*>(left) = *reinterpret_cast<float4*>(&a_tile[buffer][k][row]);
      *reinterpret_cast<float4*>(left + 4) =
          *reinterpret_cast<float4*>(&a_tile[buffer][k][row + 16]);
      *reinterpret_cast<float4*>(right) = *reinterpret_cast<float4*>(&b_tile[buffer][k][column]);
      *reinterpret_cast<float4*>(right + 4) =
          *reinterpret_cast<float4*>(&b_tile[buffer][k][column + 32]);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] += left[i] * right[j];
      }
    }
    buffer ^= 1;
    if (more) store(buffer);
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int64_t to_row = first_row + row + i / 4 * 16 + i % 4;
    if (to_row >= rows) break;
#pragma unroll
    for (int j = 0; j < 8; j += 4) {
      const int64_t to_column = first_column + column + j / 4 * 32;
      float* to = c + to_row * columns + to_column;
      if (kAligned) {
        if (to_column < columns)
          *reinterpret_cast<float4*>(to) = *reinterpret_cast<float4*>(&sum[i][j]);
      } else {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          if (to_column + e < columns) to[e] = sum[i][j + e];
        }
      }
    }
  }
}

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const DLTensor& left = call->inputs[0];
  const DLTensor& right = call->inputs[1];
  if (left.dtype.code != kDLFloat || left.dtype.bits != 32) return 1;  // float32 only
  const float* a = kb_input_f32(call, 0);
  const float* b = kb_input_f32(call, 1);
  float* c = kb_output_f32(call, 0);
  const int64_t rows = left.shape[0], depth = left.shape[1], columns = right.shape[1];
  const auto blocks = unsigned((rows + kTile - 1) / kTile * ((columns + kTile - 1) / kTile));
  const auto stream = static_cast<cudaStream_t>(call->stream);
  if (depth % 4 == 0 && columns % 4 == 0) {
    matmul_kernel<true><<<blocks, kThreads, 0, stream>>>(a, b, c, rows, columns, depth);
  } else {
    matmul_kernel<false><<<blocks, kThreads, 0, stream>>>(a, b, c, rows, columns, depth);
  }
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}

// Linear layer, then GELU, then softmax over the outputs.
//
// The tensor cores multiply halves, with sums in float32. A float is split into two halves, which
// together have 22 of its 24 bits, and three products of halves make one of floats: about as exact
// as float32 arithmetic, at a third of the tensor cores' speed, which is still several times that
// of the CUDA cores. The weight is split once, in kb_create. GELU is applied to the registers. The
// softmax, in place, finds its 34 MB in the L2 cache. Floor: 137 GFLOP, 2.3 ms on the CUDA cores,
// 0.6 ms so (3 x 137 at 660 TFLOP/s). Any sizes, float32.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <kernelbench/kernel.h>

#include <cfloat>

namespace {

constexpr int kTile = 128;     // rows and columns of the product that a block computes
constexpr int kChunk = 32;     // depth of one step
constexpr int kStages = 4;     // steps in shared memory: one is used, the others are on their way
constexpr int kThreads = 256;  // 2 x 4 warps of 64 x 32 each
constexpr int kSegments = 8;   // of 16 bytes, in a row of a chunk: 4 of upper halves, 4 of lower
constexpr int kTileBytes = kTile * kSegments * 16;
constexpr int kSharedBytes = kStages * 2 * kTileBytes;
constexpr int64_t kGroup = 16;  // tile rows that are worked on together, for the L2 cache

__device__ float gelu(float x) {
  constexpr float kHalfSqrt2 = 0.70710678f;
  return 0.5f * x * (1.0f + erff(x * kHalfSqrt2));
}

// A float as the sum of two halves, x = upper + lower. Upper and lower together have 22 bits, and
// the scale, a power of two that takes the largest value to [2^14, 2^15), keeps lower ones from
// becoming too small for a half.
__device__ int exponent_of(float largest) {
  return min(max(ilogbf(largest), -100), 127);
}
__device__ float scale_of(float largest) {
  return scalbnf(1.0f, 14 - exponent_of(largest));
}
__device__ float unscale_of(float largest) {
  return scalbnf(1.0f, exponent_of(largest) - 14);
}
__device__ __half upper_of(float scaled) {
  return __float2half_rn(scaled);
}
__device__ __half lower_of(float scaled) {
  return __float2half_rn(scaled - __half2float(upper_of(scaled)));
}

// The largest value of all threads, in each thread.
__device__ float largest_of_block(float value) {
  __shared__ float of_warp[kThreads / 32];
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    value = fmaxf(value, __shfl_xor_sync(~0u, value, lanes));
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
#pragma unroll
  for (int warp = 0; warp < kThreads / 32; ++warp) value = fmaxf(value, of_warp[warp]);
  return value;
}

// One block for each row of `halves`. Rows and depth past the end of x are filled with zeros.
__global__ void __launch_bounds__(kThreads)
    split_kernel(const float* __restrict__ x, int64_t rows, int64_t depth, int chunks,
                 __half* __restrict__ halves, float* __restrict__ unscale) {
  const int64_t row = blockIdx.x;
  const int64_t count = row < rows ? depth : 0;
  x += row * depth;
  halves += row * chunks * 2 * kChunk;

  float largest = 0.0f;
  for (int64_t k = threadIdx.x; k < count; k += kThreads) largest = fmaxf(largest, fabsf(x[k]));
  largest = largest_of_block(largest);
  if (threadIdx.x == 0) unscale[row] = unscale_of(largest);

  const float scale = scale_of(largest);
  for (int64_t k = threadIdx.x; k < int64_t(chunks) * kChunk; k += kThreads) {
    const float scaled = k < count ? x[k] * scale : 0.0f;
    __half* to = halves + k / kChunk * 2 * kChunk + k % kChunk;
    to[0] = upper_of(scaled);
    to[kChunk] = lower_of(scaled);
  }
}

// A matrix in halves: (rows, chunks, upper or lower, kChunk), rows padded to whole tiles. The
// memory is as large as the largest matrix so far needed.
struct Split {
  __half* halves = nullptr;
  float* unscale = nullptr;  // of each row, behind the halves
  int chunks = 0;
  int64_t capacity = 0;

  bool reserve(int64_t rows, int64_t depth) {
    const int64_t padded_rows = (rows + kTile - 1) / kTile * kTile;
    chunks = int((depth + kChunk - 1) / kChunk);
    const int64_t count = padded_rows * chunks * 2 * kChunk;
    const int64_t bytes = count * int64_t(sizeof(__half)) + padded_rows * int64_t(sizeof(float));
    if (bytes > capacity) {
      cudaFree(halves);
      capacity = 0;
      if (cudaMalloc(&halves, size_t(bytes)) != cudaSuccess) {
        halves = nullptr;
        return false;
      }
      capacity = bytes;
    }
    unscale = reinterpret_cast<float*>(halves + count);
    return true;
  }

  bool fill(const float* x, int64_t rows, int64_t depth, cudaStream_t stream) {
    if (!reserve(rows, depth)) return false;
    const int64_t padded_rows = (rows + kTile - 1) / kTile * kTile;
    split_kernel<<<unsigned(padded_rows), kThreads, 0, stream>>>(x, rows, depth, chunks, halves,
                                                                 unscale);
    return cudaGetLastError() == cudaSuccess;
  }
};

// Place of a 16-byte segment in a tile. The exclusive or spreads eight rows over all banks.
__device__ int offset_of(int row, int segment) {
  return (row * kSegments + (segment ^ (row % kSegments))) * 16;
}

// Four 8 x 8 matrices of halves; each eight lanes name the rows of one.
__device__ void load_matrices(uint32_t (&to)[4], const char* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(uint32_t(__cvta_generic_to_shared(row)))
               : "memory");
}

// sum += a b with a 16 x 16, b 16 x 8.
__device__ void multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// sum += the product of one chunk. The tensor cores do not round to nearest when they add, which
// would show after many steps; so each chunk starts at zero, and ordinary additions join the
// chunks.
__device__ void multiply_chunk(const char* a_tile, const char* b_tile, float (&sum)[4][4][4]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int a_row = warp / 4 * 64 + lane % 16, a_segment = lane / 16;
  const int b_row = warp % 4 * 32 + lane / 16 * 8 + lane % 8, b_segment = lane / 8 % 2;
  float part[4][4][4] = {};
#pragma unroll
  for (int step = 0; step < kChunk / 16; ++step) {
    uint32_t a[2][4][4], b[2][2][4];  // upper or lower, then 16 rows or columns each
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int segment = half * kSegments / 2 + step * 2;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        load_matrices(a[half][i], a_tile + offset_of(a_row + i * 16, segment + a_segment));
      }
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        load_matrices(b[half][j], b_tile + offset_of(b_row + j * 16, segment + b_segment));
      }
    }
    // upper lower + lower upper + upper upper; lower lower is too small to count.
#pragma unroll
    for (int term = 0; term < 3; ++term) {
      const int a_half = term == 1, b_half = term == 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          multiply(part[i][j], a[a_half][i], b[b_half][j / 2][j % 2 * 2],
                   b[b_half][j / 2][j % 2 * 2 + 1]);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[i][j][e] += part[i][j][e];
    }
  }
}

// The tile of the product whose rows start at `a` and whose columns start at `b`. A thread gets, in
// sum[i][j], the rows i * 16 and i * 16 + 8 and two columns of each from j * 8 on, counted from the
// row and column that row_of_thread and column_of_thread give.
__device__ void multiply_tiles(const __half* a, const __half* b, int chunks,
                               float (&sum)[4][4][4]) {
  extern __shared__ float4 memory[];
  char* tiles = reinterpret_cast<char*>(memory);
  const int row = threadIdx.x / kSegments, segment = threadIdx.x % kSegments;
  const int64_t pitch = int64_t(chunks) * 2 * kChunk;
  const auto fetch = [&](int chunk) {
    char* to = tiles + chunk % kStages * 2 * kTileBytes + offset_of(row, segment);
    const int64_t from = row * pitch + (chunk * kSegments + segment) * 8;
    constexpr int kRows = kThreads / kSegments;  // that all threads load together
#pragma unroll
    for (int i = 0; i < kTile; i += kRows) {
      __pipeline_memcpy_async(to + i * kSegments * 16, a + from + i * pitch, 16);
      __pipeline_memcpy_async(to + i * kSegments * 16 + kTileBytes, b + from + i * pitch, 16);
    }
  };

  for (int chunk = 0; chunk < kStages - 1; ++chunk) {
    if (chunk < chunks) fetch(chunk);
    __pipeline_commit();
  }
  for (int chunk = 0; chunk < chunks; ++chunk) {
    __pipeline_wait_prior(kStages - 2);  // this thread's part of the chunk is there
    __syncthreads();                     // all parts are, and nobody uses the last chunk any more
    if (chunk + kStages - 1 < chunks) fetch(chunk + kStages - 1);
    __pipeline_commit();
    const char* tile = tiles + chunk % kStages * 2 * kTileBytes;
    multiply_chunk(tile, tile + kTileBytes, sum);
  }
}

__device__ int row_of_thread() {
  return int(threadIdx.x) / 128 * 64 + int(threadIdx.x) % 32 / 4;
}
__device__ int column_of_thread() {
  return int(threadIdx.x) / 32 % 4 * 32 + int(threadIdx.x) % 4 * 2;
}

struct Place {
  int64_t row, column;
};

// Where this block's tile begins: kGroup tile rows are worked on together.
__device__ Place place_of_block(int64_t rows, int64_t columns) {
  const int64_t row_tiles = (rows + kTile - 1) / kTile,
                column_tiles = (columns + kTile - 1) / kTile;
  const int64_t first_tile = blockIdx.x / (kGroup * column_tiles) * kGroup;
  const int64_t group = min(kGroup, row_tiles - first_tile);
  const int64_t in_group = blockIdx.x % (kGroup * column_tiles);
  return {(first_tile + in_group % group) * kTile, in_group / group * kTile};
}

// to[0] and, inside the matrix, to[1]. `column` is even.
__device__ void store_pair(float* to, int64_t column, int64_t columns, float first, float second) {
  if (columns % 2 == 0) {
    *reinterpret_cast<float2*>(to) = {first, second};
  } else {
    to[0] = first;
    if (column + 1 < columns) to[1] = second;
  }
}

__global__ void __launch_bounds__(kThreads, 1)
    linear_kernel(const __half* __restrict__ x, const float* __restrict__ x_unscale,
                  const __half* __restrict__ weight, const float* __restrict__ weight_unscale,
                  const float* __restrict__ bias, float* __restrict__ y, int64_t rows,
                  int64_t columns, int chunks) {
  const Place place = place_of_block(rows, columns);
  const int64_t pitch = int64_t(chunks) * 2 * kChunk;
  float sum[4][4][4] = {};
  multiply_tiles(x + place.row * pitch, weight + place.column * pitch, chunks, sum);

#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int64_t column = place.column + column_of_thread() + j * 8;
    if (column >= columns) break;
    const int64_t next = min(column + 1, columns - 1);
    const float unscale[2] = {weight_unscale[column], weight_unscale[next]};
    const float of_column[2] = {bias[column], bias[next]};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int64_t row = place.row + row_of_thread() + i * 8;
      if (row >= rows) break;
      const float* product = &sum[i / 2][j][i % 2 * 2];
      const float by = x_unscale[row];
      store_pair(y + row * columns + column, column, columns,
                 gelu(product[0] * by * unscale[0] + of_column[0]),
                 gelu(product[1] * by * unscale[1] + of_column[1]));
    }
  }
}

// Online softmax in place, one block for each row: the first read gives both the maximum and the
// sum of exp(x - maximum).
__global__ void __launch_bounds__(kThreads) softmax_kernel(float* y, int64_t columns) {
  y += blockIdx.x * columns;
  float lane_maximum = -FLT_MAX, sum = 0.0f;
#pragma unroll 4
  for (int64_t column = threadIdx.x; column < columns; column += kThreads) {
    const float maximum = fmaxf(lane_maximum, y[column]);
    sum = sum * __expf(lane_maximum - maximum) + __expf(y[column] - maximum);
    lane_maximum = maximum;
  }
  const float maximum = largest_of_block(lane_maximum);
  sum *= __expf(lane_maximum - maximum);
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
  __shared__ float of_warp[kThreads / 32];
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0.0f;
#pragma unroll
  for (float other : of_warp) sum += other;

  const float scale = 1.0f / sum;
#pragma unroll 4
  for (int64_t column = threadIdx.x; column < columns; column += kThreads) {
    y[column] = __expf(y[column] - maximum) * scale;
  }
}

struct State {
  Split weight, input;
};

}  // namespace

KB_EXPORT int kb_create(const kb_call* call, void** state) {
  const DLTensor* weight = kb_param(call, "linear.weight");
  if (weight == nullptr) return 1;
  if (weight->dtype.code != kDLFloat || weight->dtype.bits != 32) return 1;  // float32 only
  auto* made = new State;
  *state = made;
  const auto stream = static_cast<cudaStream_t>(call->stream);
  const auto* w = static_cast<const float*>(kb_data(weight));
  if (!made->weight.fill(w, weight->shape[0], weight->shape[1], stream)) return 2;
  cudaFuncSetAttribute(linear_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  return cudaStreamSynchronize(stream) == cudaSuccess ? 0 : 2;
}

KB_EXPORT void kb_destroy(void* state) {
  auto* made = static_cast<State*>(state);
  cudaFree(made->weight.halves);
  cudaFree(made->input.halves);
  delete made;
}

KB_EXPORT int kb_run(const kb_call* call) {
  auto& [weight, input] = *static_cast<State*>(call->state);
  const float* bias = kb_param_f32(call, "linear.bias");
  if (bias == nullptr) return 1;
  float* y = kb_output_f32(call, 0);
  const int64_t rows = call->inputs[0].shape[0], depth = call->inputs[0].shape[1];
  const int64_t columns = call->outputs[0].shape[1];
  const auto stream = static_cast<cudaStream_t>(call->stream);
  if (!input.fill(kb_input_f32(call, 0), rows, depth, stream)) return 2;

  const auto blocks = unsigned((rows + kTile - 1) / kTile * ((columns + kTile - 1) / kTile));
  linear_kernel<<<blocks, kThreads, kSharedBytes, stream>>>(input.halves, input.unscale,
                                                            weight.halves, weight.unscale, bias, y,
                                                            rows, columns, weight.chunks);
  softmax_kernel<<<unsigned(rows), kThreads, 0, stream>>>(y, columns);
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}

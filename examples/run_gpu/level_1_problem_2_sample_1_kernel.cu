// C = A B with float32's precision on the tensor cores, A (M, K) and B (K, N).
//
// The tensor cores multiply halves, with sums in float32. A float is split into two halves, which
// together have 22 of its 24 bits, and three products of halves make one of floats: about as exact
// as float32 arithmetic, at a third of the tensor cores' speed, which is still several times that
// of the CUDA cores. A kernel each splits A by rows and B by columns; B is transposed on the way,
// so that both run along K. Sample 0 uses the CUDA cores. Floor: 137 GFLOP, 2.3 ms on the CUDA
// cores, 0.6 ms so (3 x 137 at 660 TFLOP/s). Any sizes, float32.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <kernelbench/kernel.h>

namespace {

constexpr int kTile = 128;     // rows and columns of the product that a block computes
constexpr int kChunk = 32;     // depth of one step
constexpr int kStages = 4;     // steps in shared memory: one is used, the others are on their way
constexpr int kThreads = 256;  // 2 x 4 warps of 64 x 32 each
constexpr int kSegments = 8;   // of 16 bytes, in a row of a chunk: 4 of upper halves, 4 of lower
constexpr int kTileBytes = kTile * kSegments * 16;
constexpr int kSharedBytes = kStages * 2 * kTileBytes;
constexpr int64_t kGroup = 16;  // tile rows that are worked on together, for the L2 cache

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

// The largest magnitude of each column of b, as bits: floats above zero are ordered like integers.
// `bits` starts at zero.
__global__ void __launch_bounds__(kThreads)
    largest_kernel(const float* __restrict__ b, int64_t depth, int64_t columns, int64_t splits,
                   int* __restrict__ bits) {
  const int64_t column = blockIdx.x / splits * kThreads + threadIdx.x;
  if (column >= columns) return;
  float largest = 0.0f;
#pragma unroll 8
  for (int64_t k = blockIdx.x % splits; k < depth; k += splits) {
    largest = fmaxf(largest, fabsf(b[k * columns + column]));
  }
  atomicMax(bits + column, __float_as_int(largest));
}

// Splits a chunk of 128 columns of b, (depth, columns), and transposes it through shared memory. A
// warp then writes a chunk of one column: 16 lanes upper halves, 16 lanes lower ones.
__global__ void __launch_bounds__(kThreads)
    transpose_kernel(const float* __restrict__ b, int64_t depth, int64_t columns, int chunks,
                     const float* __restrict__ largest, __half* __restrict__ halves,
                     float* __restrict__ unscale) {
  __shared__ float tile[kChunk][kTile + 1];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t first_column = blockIdx.x / chunks * kTile;
  const int chunk = int(blockIdx.x % chunks);
#pragma unroll
  for (int i = 0; i < kChunk * kTile; i += kThreads) {
    const int at = i + threadIdx.x;
    const int64_t k = int64_t(chunk) * kChunk + at / kTile, column = first_column + at % kTile;
    tile[at / kTile][at % kTile] = k < depth && column < columns ? b[k * columns + column] : 0.0f;
  }
  __syncthreads();
#pragma unroll
  for (int i = warp; i < kTile; i += kThreads / 32) {
    const int64_t column = first_column + i;
    const float of_column = column < columns ? largest[column] : 0.0f;
    const float scale = scale_of(of_column);
    const float first = tile[lane % 16 * 2][i] * scale;
    const float second = tile[lane % 16 * 2 + 1][i] * scale;
    auto* to = reinterpret_cast<__half2*>(halves + (column * chunks + chunk) * 2 * kChunk);
    to[lane] = lane < 16 ? __halves2half2(upper_of(first), upper_of(second))
                         : __halves2half2(lower_of(first), lower_of(second));
    if (chunk == 0 && lane == 0) unscale[column] = unscale_of(of_column);
  }
}

__global__ void __launch_bounds__(kThreads, 1)
    matmul_kernel(const __half* __restrict__ a, const float* __restrict__ a_unscale,
                  const __half* __restrict__ b, const float* __restrict__ b_unscale,
                  float* __restrict__ c, int64_t rows, int64_t columns, int chunks) {
  const Place place = place_of_block(rows, columns);
  const int64_t pitch = int64_t(chunks) * 2 * kChunk;
  float sum[4][4][4] = {};
  multiply_tiles(a + place.row * pitch, b + place.column * pitch, chunks, sum);

#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int64_t column = place.column + column_of_thread() + j * 8;
    if (column >= columns) break;
    const int64_t next = min(column + 1, columns - 1);
    const float unscale[2] = {b_unscale[column], b_unscale[next]};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int64_t row = place.row + row_of_thread() + i * 8;
      if (row >= rows) break;
      const float* product = &sum[i / 2][j][i % 2 * 2];
      const float by = a_unscale[row];
      store_pair(c + row * columns + column, column, columns, product[0] * by * unscale[0],
                 product[1] * by * unscale[1]);
    }
  }
}

struct State {
  Split a, b;
  float* largest = nullptr;  // of each column of b
  int64_t largest_capacity = 0;
};

}  // namespace

KB_EXPORT int kb_create(const kb_call*, void** state) {
  *state = new State;
  return cudaFuncSetAttribute(matmul_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              kSharedBytes) == cudaSuccess
             ? 0
             : 2;
}

KB_EXPORT void kb_destroy(void* state) {
  auto* made = static_cast<State*>(state);
  cudaFree(made->a.halves);
  cudaFree(made->b.halves);
  cudaFree(made->largest);
  delete made;
}

KB_EXPORT int kb_run(const kb_call* call) {
  const DLTensor& left = call->inputs[0];
  const DLTensor& right = call->inputs[1];
  if (left.dtype.code != kDLFloat || left.dtype.bits != 32) return 1;  // float32 only
  const int64_t rows = left.shape[0], depth = left.shape[1], columns = right.shape[1];
  const float* matrix = kb_input_f32(call, 1);
  const auto stream = static_cast<cudaStream_t>(call->stream);
  auto& [a, b, largest, largest_capacity] = *static_cast<State*>(call->state);

  if (largest_capacity < columns) {
    cudaFree(largest);
    largest_capacity = 0;
    if (cudaMalloc(&largest, size_t(columns) * sizeof(float)) != cudaSuccess) {
      largest = nullptr;
      return 2;
    }
    largest_capacity = columns;
  }
  if (!a.fill(kb_input_f32(call, 0), rows, depth, stream) || !b.reserve(columns, depth)) return 2;

  constexpr int64_t kSplits = 64;
  cudaMemsetAsync(largest, 0, size_t(columns) * sizeof(float), stream);
  largest_kernel<<<unsigned((columns + kThreads - 1) / kThreads * kSplits), kThreads, 0, stream>>>(
      matrix, depth, columns, kSplits, reinterpret_cast<int*>(largest));
  const int64_t row_tiles = (rows + kTile - 1) / kTile,
                column_tiles = (columns + kTile - 1) / kTile;
  transpose_kernel<<<unsigned(column_tiles * b.chunks), kThreads, 0, stream>>>(
      matrix, depth, columns, b.chunks, largest, b.halves, b.unscale);
  matmul_kernel<<<unsigned(row_tiles * column_tiles), kThreads, kSharedBytes, stream>>>(
      a.halves, a.unscale, b.halves, b.unscale, kb_output_f32(call, 0), rows, columns, a.chunks);
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}

// Linear layer, then ReLU, then division by a scalar.
//
// A block of 256 threads computes 128 x 128 of the product from tiles in shared memory, each thread
// 8 x 8 of it in registers; ReLU and division are applied to these, so that the product is written
// once and never read. Sums are in float32, without matrix cores. Any sizes; float32, float16 and
// bfloat16.
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
#include <kernelbench/kernel.h>

namespace {

constexpr float kDivisor = 2.0f;  // the constructor's argument; a kernel does not see it

constexpr int kTile = 128;  // rows and columns that a block computes
constexpr int kChunk = 8;   // depth of one step
constexpr int kThread = 8;  // rows and columns that a thread computes
constexpr int kAcross = kTile / kThread;
constexpr int kThreads = kAcross * kAcross;

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

// Rows first … first + kTile of `matrix`, at depth `at`, with zeros past its ends; depth goes first
// in shared memory, so that a thread's eight values of one depth lie side by side.
template <typename T>
__device__ void load_tile(const T* matrix, int64_t rows, int64_t depth, int64_t first, int64_t at,
                          float (*tile)[kTile]) {
#pragma unroll
  for (int step = 0; step < kTile * kChunk / kThreads; ++step) {
    const int i = step * kThreads + threadIdx.x;
    const int64_t row = first + i / kChunk, k = at + i % kChunk;
    tile[i % kChunk][i / kChunk] =
        row < rows && k < depth ? to_float(matrix[row * depth + k]) : 0.0f;
  }
}

// y = relu(x * transpose(weight) + bias) / kDivisor
template <typename T>
__global__ void __launch_bounds__(kThreads)
    linear_kernel(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
                  T* __restrict__ y, int64_t rows, int64_t columns, int64_t depth) {
  __shared__ float of_x[kChunk][kTile], of_weight[kChunk][kTile];
  const int64_t first_row = int64_t(blockIdx.y) * kTile, first_column = int64_t(blockIdx.x) * kTile;
  const int down = threadIdx.x / kAcross * kThread, across = threadIdx.x % kAcross * kThread;

  float sum[kThread][kThread] = {};
  for (int64_t at = 0; at < depth; at += kChunk) {
    load_tile(x, rows, depth, first_row, at, of_x);
    load_tile(weight, columns, depth, first_column, at, of_weight);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kChunk; ++k) {
#pragma unroll
      for (int i = 0; i < kThread; ++i) {
#pragma unroll
        for (int j = 0; j < kThread; ++j) sum[i][j] += of_x[k][down + i] * of_weight[k][across + j];
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < kThread; ++i) {
#pragma unroll
    for (int j = 0; j < kThread; ++j) {
      const int64_t row = first_row + down + i, column = first_column + across + j;
      if (row >= rows || column >= columns) continue;
      const float value = sum[i][j] + to_float(bias[column]);
      store(&y[row * columns + column], (value < 0.0f ? 0.0f : value) / kDivisor);
    }
  }
}

template <typename T>
int launch(const kb_call* call) {
  const DLTensor* weight = kb_param(call, "linear.weight");
  const DLTensor* bias = kb_param(call, "linear.bias");
  if (weight == nullptr || bias == nullptr) return 1;  // another model than this is made for
  const int64_t columns = weight->shape[0], depth = weight->shape[1];
  const int64_t rows = kb_numel(&call->inputs[0]) / depth;
  const dim3 blocks(unsigned((columns + kTile - 1) / kTile), unsigned((rows + kTile - 1) / kTile));
  linear_kernel<T><<<blocks, dim3(kThreads), 0, static_cast<hipStream_t>(call->stream)>>>(
      static_cast<const T*>(kb_data(&call->inputs[0])), static_cast<const T*>(kb_data(weight)),
      static_cast<const T*>(kb_data(bias)), static_cast<T*>(kb_data(&call->outputs[0])), rows,
      columns, depth);
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

// Linear, ReLU and the division in one TVM-FFI function, with float32 sums: a block computes 64 x
// 64 outputs from tiles in shared memory, a thread 4 x 4 of them. The result is written once. Any
// sizes; float32, float16 and bfloat16.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/cuda/base.h>
#include <tvm/ffi/function.h>

namespace {

using tvm::ffi::TensorView;

constexpr float kDivisor = 2.0f;  // the constructor's argument; a kernel does not see it
constexpr int kTile = 64, kChunk = 16, kEach = 4, kAcross = kTile / kEach;
constexpr int kThreads = kAcross * kAcross;

// Rows first … first + kTile of `matrix`, at depth `at`, with zeros past its ends; depth goes first
// in shared memory, so that a step of the product reads along a row of it.
template <typename T>
__device__ void load_tile(const T* matrix, int64_t rows, int64_t depth, int64_t first, int64_t at,
                          float (*tile)[kTile + 1]) {
#pragma unroll
  for (int step = 0; step < kTile * kChunk / kThreads; ++step) {
    const int i = step * kThreads + threadIdx.x;
    const int64_t row = first + i / kChunk, k = at + i % kChunk;
    tile[i % kChunk][i / kChunk] = row < rows && k < depth ? float(matrix[row * depth + k]) : 0.0f;
  }
}

// y = relu(x * transpose(weight) + bias) / kDivisor
template <typename T>
__global__ void __launch_bounds__(kThreads)
    linear_kernel(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
                  T* __restrict__ y, int64_t rows, int64_t columns, int64_t depth) {
  __shared__ float of_x[kChunk][kTile + 1], of_weight[kChunk][kTile + 1];
  const int64_t first_row = int64_t(blockIdx.y) * kTile, first_column = int64_t(blockIdx.x) * kTile;
  const int down = threadIdx.x / kAcross, across = threadIdx.x % kAcross;

  float sum[kEach][kEach] = {};
  for (int64_t at = 0; at < depth; at += kChunk) {
    load_tile(x, rows, depth, first_row, at, of_x);
    load_tile(weight, columns, depth, first_column, at, of_weight);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kChunk; ++k) {
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
#pragma unroll
        for (int j = 0; j < kEach; ++j)
          sum[i][j] += of_x[k][down + i * kAcross] * of_weight[k][across + j * kAcross];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int64_t row = first_row + down + i * kAcross,
                    column = first_column + across + j * kAcross;
      if (row >= rows || column >= columns) continue;
      const float value = sum[i][j] + float(bias[column]);
      y[row * columns + column] = T((value < 0.0f ? 0.0f : value) / kDivisor);
    }
  }
}

template <typename T>
void launch(const TensorView& x, const TensorView& weight, const TensorView& bias,
            const TensorView& y) {
  const int64_t rows = x.size(0), depth = x.size(1), columns = weight.size(0);
  const dim3 grid(unsigned((columns + kTile - 1) / kTile), unsigned((rows + kTile - 1) / kTile));
  const DLDevice device = x.device();
  auto* stream =
      static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  linear_kernel<T><<<grid, kThreads, 0, stream>>>(
      static_cast<const T*>(x.data_ptr()), static_cast<const T*>(weight.data_ptr()),
      static_cast<const T*>(bias.data_ptr()), static_cast<T*>(y.data_ptr()), rows, columns, depth);
  TVM_FFI_CHECK_CUDA_ERROR(cudaGetLastError());
}

// After the inputs come the parameters, in the order of the state_dict, and then the outputs.
void run(TensorView x, TensorView weight, TensorView bias, TensorView y) {
  const DLDataType type = x.dtype();
  if (type.code == kDLFloat && type.bits == 32) {
    launch<float>(x, weight, bias, y);
  } else if (type.code == kDLFloat && type.bits == 16) {
    launch<__half>(x, weight, bias, y);
  } else if (type.code == kDLBfloat && type.bits == 16) {
    launch<__nv_bfloat16>(x, weight, bias, y);
  } else {
    TVM_FFI_THROW(TypeError) << "there is no kernel for this type";
  }
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);

// Sum over the middle dimension as a TVM-FFI function: a thread adds up one column in float32, and
// neighbours read neighbouring addresses. Any shape of three dimensions whose middle one is kept
// with size 1; float32, float16 and bfloat16.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/cuda/base.h>
#include <tvm/ffi/function.h>

namespace {

using tvm::ffi::TensorView;

constexpr int kThreads = 128;
constexpr int kLoads = 8;  // under way at a time

template <typename T>
__global__ void __launch_bounds__(kThreads)
    sum_kernel(const T* __restrict__ x, T* __restrict__ y, int64_t rows, int64_t columns) {
  const int64_t column = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (column >= columns) return;
  const T* at = x + blockIdx.y * rows * columns + column;
  float total[kLoads] = {};
  int64_t row = 0;
  for (; row + kLoads <= rows; row += kLoads, at += kLoads * columns) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) total[i] += float(at[i * columns]);
  }
  for (; row < rows; ++row, at += columns) total[0] += float(*at);
#pragma unroll
  for (int i = 1; i < kLoads; ++i) total[0] += total[i];
  y[blockIdx.y * columns + column] = T(total[0]);
}

template <typename T>
void launch(const TensorView& x, const TensorView& y) {
  const int64_t batches = x.size(0), rows = x.size(1), columns = x.size(2);
  const dim3 grid(unsigned((columns + kThreads - 1) / kThreads), unsigned(batches));
  const DLDevice device = x.device();
  auto* stream =
      static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  sum_kernel<T><<<grid, kThreads, 0, stream>>>(static_cast<const T*>(x.data_ptr()),
                                               static_cast<T*>(y.data_ptr()), rows, columns);
  TVM_FFI_CHECK_CUDA_ERROR(cudaGetLastError());
}

void run(TensorView x, TensorView y) {
  TVM_FFI_CHECK(x.ndim() == 3 && y.ndim() == 3 && y.size(1) == 1, ValueError)
      << "the middle one of three dimensions is summed";
  const DLDataType type = x.dtype();
  if (type.code == kDLFloat && type.bits == 32) {
    launch<float>(x, y);
  } else if (type.code == kDLFloat && type.bits == 16) {
    launch<__half>(x, y);
  } else if (type.code == kDLBfloat && type.bits == 16) {
    launch<__nv_bfloat16>(x, y);
  } else {
    TVM_FFI_THROW(TypeError) << "there is no kernel for this type";
  }
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);

// ReLU as a TVM-FFI function: y = max(x, 0), element by element.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>

namespace {

using tvm::ffi::TensorView;

// Written so that NaN stays NaN, as in PyTorch.
float relu(float x) {
  return x < 0.0f ? 0.0f : x;
}

void run(TensorView x, TensorView y) {
  const DLDataType type = x.dtype();
  TVM_FFI_CHECK(type.code == kDLFloat && type.bits == 32, TypeError) << "x must be float32";
  const auto* from = static_cast<const float*>(x.data_ptr());
  auto* to = static_cast<float*>(y.data_ptr());
  const int64_t n = x.numel();
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < n; ++i) to[i] = relu(from[i]);
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);

// Mean cross entropy of (rows, classes) logits and (rows,) int64 labels.
//
// The loss of a row is log(sum exp(x - maximum)) + maximum - x[label]. A warp takes a row and keeps
// maximum and sum together (online softmax), so that logits are read once and no log-softmax matrix
// is written. A second kernel averages the rows' losses, always in the same order.
// Floor: 0.54 GB read, 125 us. Any sizes, float32. A label out of range gives NaN.
#include <kernelbench/kernel.h>

#include <cfloat>

namespace {

constexpr int kWarps = 8;
constexpr int kPacks = 8;  // loads of a thread that are under way together
constexpr int kMeanThreads = 1024;

template <int kWidth>
struct alignas(kWidth * sizeof(float)) Pack {
  float at[kWidth];
};

template <int kWidth>
__global__ void __launch_bounds__(32 * kWarps)
    loss_kernel(const float* __restrict__ logits, const int64_t* __restrict__ labels, int64_t rows,
                int64_t classes, float* __restrict__ losses) {
  const int lane = threadIdx.x;
  const int64_t row = int64_t(blockIdx.x) * kWarps + threadIdx.y;
  if (row >= rows) return;
  const float* x = logits + row * classes;
  const auto* from = reinterpret_cast<const Pack<kWidth>*>(x);
  const int64_t packs = classes / kWidth;

  float maximum = -FLT_MAX, sum = 0.0f;  // of this lane
  for (int64_t first = lane; first < packs; first += 32 * kPacks) {
    Pack<kWidth> pack[kPacks];
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
#pragma unroll
      for (float& value : pack[i].at) value = -FLT_MAX;
      if (first + i * 32 < packs) pack[i] = from[first + i * 32];
    }
    float higher = maximum;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
#pragma unroll
      for (float value : pack[i].at) higher = fmaxf(higher, value);
    }
    sum *= __expf(maximum - higher);
    maximum = higher;
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
#pragma unroll
      for (float value : pack[i].at) sum += __expf(value - maximum);
    }
  }

  float row_maximum = maximum;
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    row_maximum = fmaxf(row_maximum, __shfl_xor_sync(~0u, row_maximum, lanes));
  }
  sum *= __expf(maximum - row_maximum);
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);

  if (lane == 0) {
    const int64_t label = labels[row];
    losses[row] = label >= 0 && label < classes ? logf(sum) + (row_maximum - x[label]) : nanf("");
  }
}

__global__ void __launch_bounds__(kMeanThreads)
    mean_kernel(const float* __restrict__ losses, int64_t rows, float* __restrict__ mean) {
  float sum = 0.0f;
  for (int64_t row = threadIdx.x; row < rows; row += kMeanThreads) sum += losses[row];
  __shared__ float of_warp[kMeanThreads / 32];
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = of_warp[threadIdx.x];
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
    if (threadIdx.x == 0) *mean = sum / float(rows);
  }
}

// Scratch memory, as large as the largest call so far needed.
struct State {
  float* losses = nullptr;
  int64_t capacity = 0;
};

}  // namespace

KB_EXPORT int kb_create(const kb_call*, void** state) {
  *state = new State;
  return 0;
}

KB_EXPORT void kb_destroy(void* state) {
  auto* made = static_cast<State*>(state);
  cudaFree(made->losses);
  delete made;
}

KB_EXPORT int kb_run(const kb_call* call) {
  const DLTensor& logits = call->inputs[0];
  const DLTensor& labels = call->inputs[1];
  if (logits.dtype.code != kDLFloat || logits.dtype.bits != 32) return 1;  // float32 only
  if (labels.dtype.code != kDLInt || labels.dtype.bits != 64) return 1;    // class indices only
  if (logits.ndim != 2) return 1;
  const int64_t rows = logits.shape[0], classes = logits.shape[1];
  const float* x = kb_input_f32(call, 0);
  const auto* of_row = static_cast<const int64_t*>(kb_data(&labels));
  const auto stream = static_cast<cudaStream_t>(call->stream);

  auto& state = *static_cast<State*>(call->state);
  if (state.capacity < rows) {
    cudaFree(state.losses);
    state = {};
    if (cudaMalloc(&state.losses, size_t(rows) * sizeof(float)) != cudaSuccess) return 2;
    state.capacity = rows;
  }

  const auto blocks = unsigned((rows + kWarps - 1) / kWarps);
  const dim3 threads(32, kWarps);
  if (classes % 4 == 0) {
    loss_kernel<4><<<blocks, threads, 0, stream>>>(x, of_row, rows, classes, state.losses);
  } else {
    loss_kernel<1><<<blocks, threads, 0, stream>>>(x, of_row, rows, classes, state.losses);
  }
  mean_kernel<<<1, kMeanThreads, 0, stream>>>(state.losses, rows, kb_output_f32(call, 0));
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}

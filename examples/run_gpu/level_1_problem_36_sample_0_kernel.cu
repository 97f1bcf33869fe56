// RMSNorm: (batch, features, ...) divided by the root mean square over the features.
//
// The features of one pixel lie far apart, neighbouring pixels side by side. So a lane takes a pack
// of four pixels, and the eight warps of a block share the features of 128 pixels among them. Up to
// 64 features stay in registers between the sum and the division: x is read once.
// Floor: 15.0 GB moved, 3.5 ms. Any shape, float32; features past the 64th are read twice.
#include <kernelbench/kernel.h>

namespace {

constexpr float kEps = 1e-5f;  // the constructor's default
constexpr int kWarps = 8;
constexpr int kHeld = 8;  // features that a thread keeps

template <int kWidth>
struct alignas(kWidth * sizeof(float)) Pack {
  float at[kWidth];
};

// Warp w takes the features w, w + kWarps, ...
template <int kWidth>
__global__ void __launch_bounds__(32 * kWarps)
    rms_norm_kernel(const float* __restrict__ x, float* __restrict__ y, int features,
                    int64_t pixels, int64_t blocks_of_sample) {
  const int lane = threadIdx.x, warp = threadIdx.y;
  const int64_t sample = blockIdx.x / blocks_of_sample;
  const int64_t pixel = (blockIdx.x % blocks_of_sample * 32 + lane) * kWidth;
  const bool inside = pixel < pixels;
  const int64_t offset = sample * features * pixels + pixel;
  const auto at = [&](int feature) { return offset + feature * pixels; };

  Pack<kWidth> held[kHeld] = {};
  Pack<kWidth> sum = {};
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const int feature = warp + i * kWarps;
    if (inside && feature < features) {
      held[i] = *reinterpret_cast<const Pack<kWidth>*>(x + at(feature));
    }
  }
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) sum.at[j] += held[i].at[j] * held[i].at[j];
  }
  for (int feature = warp + kHeld * kWarps; inside && feature < features; feature += kWarps) {
    const auto pack = *reinterpret_cast<const Pack<kWidth>*>(x + at(feature));
#pragma unroll
    for (int j = 0; j < kWidth; ++j) sum.at[j] += pack.at[j] * pack.at[j];
  }

  __shared__ Pack<kWidth> of_warp[kWarps][32];
  of_warp[warp][lane] = sum;
  __syncthreads();
  Pack<kWidth> scale = {};
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    const Pack<kWidth> other = of_warp[w][lane];
#pragma unroll
    for (int j = 0; j < kWidth; ++j) scale.at[j] += other.at[j];
  }
#pragma unroll
  for (float& value : scale.at) value = 1.0f / sqrtf(value / float(features) + kEps);

  const auto write = [&](int feature, Pack<kWidth> pack) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) pack.at[j] *= scale.at[j];
    *reinterpret_cast<Pack<kWidth>*>(y + at(feature)) = pack;
  };
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    const int feature = warp + i * kWarps;
    if (inside && feature < features) write(feature, held[i]);
  }
  for (int feature = warp + kHeld * kWarps; inside && feature < features; feature += kWarps) {
    write(feature, *reinterpret_cast<const Pack<kWidth>*>(x + at(feature)));
  }
}

template <int kWidth>
void launch(const kb_call* call, int64_t batch, int features, int64_t pixels) {
  const int64_t blocks_of_sample = (pixels + 32 * kWidth - 1) / (32 * kWidth);
  rms_norm_kernel<kWidth><<<unsigned(batch * blocks_of_sample), dim3(32, kWarps), 0,
                            static_cast<cudaStream_t>(call->stream)>>>(
      kb_input_f32(call, 0), kb_output_f32(call, 0), features, pixels, blocks_of_sample);
}

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const DLTensor& input = call->inputs[0];
  if (input.dtype.code != kDLFloat || input.dtype.bits != 32) return 1;  // float32 only
  const int64_t batch = input.shape[0], features = input.shape[1];
  const int64_t pixels = kb_numel(&input) / (batch * features);
  if (pixels % 4 == 0) {
    launch<4>(call, batch, int(features), pixels);
  } else {
    launch<1>(call, batch, int(features), pixels);
  }
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}

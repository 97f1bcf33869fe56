// Convolution (stride 1, no padding), then Mish, then batch normalisation in training mode.
//
// Direct convolution in register tiles, with Mish applied to each tile in hand. A second loop takes
// one channel at a time, whose values are still in the cache: mean, variance in two passes (nothing
// cancels), scaling in place. kb_create lays the weights out in reading order.
// Training mode normalises by this batch. The running statistics would be updated too, but they are
// no output, and parameters must not be written.
// Assumes output rows of at least kLanes pixels: the last tile of a row moves back to end with it.
#include <kernelbench/kernel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace {

constexpr double kEps = 1e-5;  // the constructor's default

#ifdef __AVX512F__
constexpr int kLanes = 16, kOutputs = 16;
#else
constexpr int kLanes = 8, kOutputs = 8;
#endif

using Vector = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

// Weights (out, in, kh, kw) as blocks of kOutputs channels: block, in, kh, kw, channel in block.
struct State {
  int64_t out_channels, taps;  // taps: in * kh * kw
  int64_t kernel_height, kernel_width;
  std::vector<float> weights;
};

// exp(x) for x <= 88, relative error about 1e-7. x = n ln 2 + r; exp(r) as in Cephes' expf.
inline float exp_of(float x) {
  const float shifted = x * 1.44269504f + 12582912.0f;  // the low mantissa bits now hold n
  const float n = shifted - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const float power = std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) << 23) + 0x3f800000u);
  return x < -87.0f ? 0.0f : p * power;
}

// mish(x) = x tanh(log(1 + e^x)) = x p / (p + 2) with p = e^x (e^x + 2).
inline float mish(float x) {
  const float e = exp_of(x < 20.0f ? x : 20.0f);  // from 20 up the factor rounds to 1
  const float product = e * (e + 2.0f);
  return x * (product / (product + 2.0f));
}

// Normalises one channel of y, (batch, channels, pixels), in place.
void batch_norm(float* y, int64_t batch, int64_t channels, int64_t pixels, int64_t channel,
                float weight, float bias) {
  const double count = double(batch) * pixels;
  double sum = 0.0;
  for (int64_t n = 0; n < batch; ++n) {
    const float* plane = y + (n * channels + channel) * pixels;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < pixels; ++i) sum += plane[i];
  }
  const double mean = sum / count;
  double squares = 0.0;
  for (int64_t n = 0; n < batch; ++n) {
    const float* plane = y + (n * channels + channel) * pixels;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < pixels; ++i) squares += (plane[i] - mean) * (plane[i] - mean);
  }
  const float scale = float(weight / std::sqrt(squares / count + kEps));
  const float middle = float(mean);
  for (int64_t n = 0; n < batch; ++n) {
    float* plane = y + (n * channels + channel) * pixels;
#pragma omp simd
    for (int64_t i = 0; i < pixels; ++i) plane[i] = (plane[i] - middle) * scale + bias;
  }
}

}  // namespace

KB_EXPORT int kb_create(const kb_call* call, void** state) {
  const DLTensor* weight = kb_param(call, "conv.weight");
  if (weight == nullptr) return 1;
  const auto* from = static_cast<const float*>(kb_data(weight));
  auto* made = new State{weight->shape[0],
                         kb_numel(weight) / weight->shape[0],
                         weight->shape[2],
                         weight->shape[3],
                         {}};
  const int64_t blocks = (made->out_channels + kOutputs - 1) / kOutputs;
  made->weights.resize(blocks * made->taps * kOutputs);
  for (int64_t o = 0; o < made->out_channels; ++o) {
    for (int64_t tap = 0; tap < made->taps; ++tap) {
      made->weights[(o / kOutputs * made->taps + tap) * kOutputs + o % kOutputs] =
          from[o * made->taps + tap];
    }
  }
  *state = made;
  return 0;
}

KB_EXPORT void kb_destroy(void* state) {
  delete static_cast<State*>(state);
}

KB_EXPORT int kb_run(const kb_call* call) {
  const auto& state = *static_cast<const State*>(call->state);
  const float* x = kb_input_f32(call, 0);
  const float* conv_bias = kb_param_f32(call, "conv.bias");
  const float* norm_weight = kb_param_f32(call, "bn.weight");
  const float* norm_bias = kb_param_f32(call, "bn.bias");
  float* y = kb_output_f32(call, 0);
  if (conv_bias == nullptr || norm_weight == nullptr || norm_bias == nullptr) return 1;
  const int64_t* in = call->inputs[0].shape;
  const int64_t* out = call->outputs[0].shape;
  const int64_t batch = in[0], channels = in[1], height = in[2], width = in[3];
  const int64_t out_channels = out[1], out_height = out[2], out_width = out[3];
  if (out_width < kLanes) return 1;

#pragma omp parallel for collapse(3) schedule(static)
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t first = 0; first < out_channels; first += kOutputs) {
      for (int64_t row = 0; row < out_height; ++row) {
        for (int64_t start = 0; start < out_width; start += kLanes) {
          const int64_t column = std::min(start, out_width - kLanes);
          const float* weight = state.weights.data() + first * state.taps;
          Vector sum[kOutputs] = {};
          for (int64_t c = 0; c < channels; ++c) {
            for (int64_t i = 0; i < state.kernel_height; ++i) {
              const float* pixels = x + ((n * channels + c) * height + row + i) * width + column;
              for (int64_t j = 0; j < state.kernel_width; ++j, weight += kOutputs) {
                const Vector pixel = *reinterpret_cast<const Vector*>(pixels + j);
#pragma GCC unroll 16
                for (int o = 0; o < kOutputs; ++o) sum[o] += weight[o] * pixel;
              }
            }
          }
          const int count = int(std::min<int64_t>(kOutputs, out_channels - first));
          for (int o = 0; o < count; ++o) {
            float* to =
                y + ((n * out_channels + first + o) * out_height + row) * out_width + column;
            const Vector value = sum[o] + conv_bias[first + o];
#pragma omp simd
            for (int lane = 0; lane < kLanes; ++lane) to[lane] = mish(value[lane]);
          }
        }
      }
    }
  }

#pragma omp parallel for schedule(static)
  for (int64_t c = 0; c < out_channels; ++c) {
    batch_norm(y, batch, out_channels, out_height * out_width, c, norm_weight[c], norm_bias[c]);
  }
  return 0;
}

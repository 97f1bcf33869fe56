// Convolution (stride 1, no padding), then ReLU, then a bias per channel.
//
// Direct convolution: a tile of kOutputs channels x kLanes neighbouring pixels stays in registers
// while all input channels and kernel positions go by. ReLU and both biases are applied in those
// registers, so the result is written once. kb_create lays the weights out in reading order.
// Assumes output rows of at least kLanes pixels: the last tile of a row moves back to end with it.
#include <kernelbench/kernel.h>

#include <algorithm>
#include <vector>

namespace {

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
  const float* bias = kb_param_f32(call, "bias");
  float* y = kb_output_f32(call, 0);
  if (conv_bias == nullptr || bias == nullptr) return 1;
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
            const Vector value = sum[o] + conv_bias[first + o];
            float* to =
                y + ((n * out_channels + first + o) * out_height + row) * out_width + column;
            *reinterpret_cast<Vector*>(to) = (value > 0.0f ? value : Vector{}) + bias[first + o];
          }
        }
      }
    }
  }
  return 0;
}

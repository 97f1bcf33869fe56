// LeNet-5 with ReLU and max pooling: (batch, 1, 32, 32) images to class scores.
//
// One image at a time goes through the whole network without leaving the first-level cache, and
// threads share out the images. PyTorch runs eleven kernels, each over the whole batch. All sums
// run with one vector register per group of output channels or features, so kb_create transposes
// the weights to put those last and pads them to whole vectors. The layer sizes are those of
// LeNet-5; the number of classes and the batch are read.
#include <kernelbench/kernel.h>

#include <algorithm>
#include <vector>

// Vectors wider than the machine's registers are passed between functions of this file only.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace {

constexpr int kLanes = 16;  // one AVX-512 register, two of AVX

using Vector = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

constexpr int padded(int n) {
  return (n + kLanes - 1) / kLanes * kLanes;
}

constexpr int kImage = 32, kKernel = 5;
constexpr int kChannels1 = 6, kSide1 = 14;  // after pooling
constexpr int kChannels2 = 16, kSide2 = 5;  // after pooling
static_assert(kChannels2 == kLanes);
constexpr int kFlat = kChannels2 * kSide2 * kSide2, kHidden1 = 120, kHidden2 = 84;

// A weight (outputs, inputs) as (inputs, padded outputs), and a bias padded likewise.
struct Layer {
  int outputs, inputs;
  std::vector<float> weight, bias;

  Layer(const kb_call* call, const char* weight_name, const char* bias_name) {
    const DLTensor* tensor = kb_param(call, weight_name);
    outputs = int(tensor->shape[0]);
    inputs = int(kb_numel(tensor)) / outputs;
    weight.resize(inputs * padded(outputs));
    bias.resize(padded(outputs));
    const auto* from = static_cast<const float*>(kb_data(tensor));
    for (int o = 0; o < outputs; ++o) {
      for (int i = 0; i < inputs; ++i) weight[i * padded(outputs) + o] = from[o * inputs + i];
    }
    std::copy_n(kb_param_f32(call, bias_name), outputs, bias.begin());
  }
};

struct State {
  Layer conv1, conv2, fc1, fc2, fc3;
};

inline Vector load(const float* p) {
  return *reinterpret_cast<const Vector*>(p);
}
inline void store(float* p, Vector v) {
  *reinterpret_cast<Vector*>(p) = v;
}
inline Vector larger(Vector a, Vector b) {
  return a > b ? a : b;
}

// One channel in, 28 x 28 outputs pooled to (channel, 14, 14). Vectors run along a row of pixels:
// columns 0..15 and 12..27.
void convolve1(const Layer& layer, const float* image, float* out) {
  constexpr int kWide = 2 * kSide1;
  for (int c = 0; c < kChannels1; ++c) {
    for (int y = 0; y < kSide1; ++y) {
      alignas(64) float row[kWide];
      Vector sum[2][2] = {};  // pixel row, part of the row
      for (int i = 0; i < kKernel; ++i) {
        for (int j = 0; j < kKernel; ++j) {
          const float w = layer.weight[(i * kKernel + j) * padded(kChannels1) + c];
          const float* from = image + (2 * y + i) * kImage + j;
          sum[0][0] += w * load(from);
          sum[0][1] += w * load(from + kWide - kLanes);
          sum[1][0] += w * load(from + kImage);
          sum[1][1] += w * load(from + kImage + kWide - kLanes);
        }
      }
      // The bias and ReLU commute with the maximum.
      store(row, larger(sum[0][0], sum[1][0]));
      store(row + kWide - kLanes, larger(sum[0][1], sum[1][1]));
      for (int x = 0; x < kSide1; ++x) {
        const float pooled = std::max(row[2 * x], row[2 * x + 1]) + layer.bias[c];
        out[(c * kSide1 + y) * kSide1 + x] = std::max(pooled, 0.0f);
      }
    }
  }
}

// 10 x 10 outputs pooled to (channel, 5, 5). A vector holds the 16 output channels of one pixel.
void convolve2(const Layer& layer, const float* in, float* out) {
  constexpr int kWide = 2 * kSide2;
  for (int y = 0; y < kSide2; ++y) {
    Vector sum[2][kWide] = {};
    const float* weight = layer.weight.data();
    for (int c = 0; c < kChannels1; ++c) {
      for (int i = 0; i < kKernel; ++i) {
        for (int j = 0; j < kKernel; ++j, weight += kLanes) {
          const Vector w = load(weight);
          const float* from = in + (c * kSide1 + 2 * y + i) * kSide1 + j;
#pragma GCC unroll 10
          for (int x = 0; x < kWide; ++x) {
            sum[0][x] += w * from[x];
            sum[1][x] += w * from[kSide1 + x];
          }
        }
      }
    }
    for (int x = 0; x < kSide2; ++x) {
      const Vector pooled = larger(larger(sum[0][2 * x], sum[0][2 * x + 1]),
                                   larger(sum[1][2 * x], sum[1][2 * x + 1])) +
                            load(layer.bias.data());
      const Vector value = larger(pooled, Vector{});
      for (int c = 0; c < kChannels2; ++c) out[(c * kSide2 + y) * kSide2 + x] = value[c];
    }
  }
}

// `out` has room for padded(outputs).
template <int kGroup = 8>
void connect(const Layer& layer, const float* in, float* out, bool relu) {
  const int width = padded(layer.outputs);
  for (int first = 0; first < width; first += kGroup * kLanes) {
    const int groups = std::min(kGroup, (width - first) / kLanes);
    Vector sum[kGroup];
    for (int g = 0; g < kGroup; ++g) {
      sum[g] = load(layer.bias.data() + first + std::min(g, groups - 1) * kLanes);
    }
    for (int i = 0; i < layer.inputs; ++i) {
      const float* weight = layer.weight.data() + i * width + first;
      for (int g = 0; g < groups; ++g) sum[g] += in[i] * load(weight + g * kLanes);
    }
    for (int g = 0; g < groups; ++g) {
      store(out + first + g * kLanes, relu ? larger(sum[g], Vector{}) : sum[g]);
    }
  }
}

}  // namespace

KB_EXPORT int kb_create(const kb_call* call, void** state) {
  auto* made =
      new State{Layer(call, "conv1.weight", "conv1.bias"),
                Layer(call, "conv2.weight", "conv2.bias"), Layer(call, "fc1.weight", "fc1.bias"),
                Layer(call, "fc2.weight", "fc2.bias"), Layer(call, "fc3.weight", "fc3.bias")};
  *state = made;
  return made->fc1.inputs == kFlat && made->fc2.inputs == kHidden1 ? 0 : 1;
}

KB_EXPORT void kb_destroy(void* state) {
  delete static_cast<State*>(state);
}

KB_EXPORT int kb_run(const kb_call* call) {
  const auto& net = *static_cast<const State*>(call->state);
  const float* images = kb_input_f32(call, 0);
  float* y = kb_output_f32(call, 0);
  const int64_t batch = call->inputs[0].shape[0];
  const int64_t classes = net.fc3.outputs;

#pragma omp parallel
  {
    std::vector<float> pooled1(kChannels1 * kSide1 * kSide1), pooled2(kFlat);
    std::vector<float> hidden1(padded(kHidden1)), hidden2(padded(kHidden2));
    std::vector<float> scores(padded(int(classes)));
#pragma omp for schedule(static)
    for (int64_t n = 0; n < batch; ++n) {
      convolve1(net.conv1, images + n * kImage * kImage, pooled1.data());
      convolve2(net.conv2, pooled1.data(), pooled2.data());
      connect(net.fc1, pooled2.data(), hidden1.data(), true);
      connect(net.fc2, hidden1.data(), hidden2.data(), true);
      connect(net.fc3, hidden2.data(), scores.data(), false);
      std::copy_n(scores.data(), classes, y + n * classes);
    }
  }
  return 0;
}

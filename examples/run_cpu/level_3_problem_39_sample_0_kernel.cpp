// Stacked GRU over (sequence, batch, features); the output is the top layer's state at every step.
//
// Rows of the batch never meet, so each thread takes kRows of them through all steps and layers
// without one barrier; PyTorch starts several kernels per step and layer. The three gates of kLanes
// hidden units are accumulated side by side in registers, and the cell is finished there.
// kb_create packs the weights so that a step reads them in one run.
// Layers are found by name (gru.weight_ih_l0, ...). Any sizes. The layout is not batch_first.
#include <kernelbench/kernel.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <string>
#include <vector>

namespace {

#ifdef __AVX512F__
constexpr int kLanes = 16, kRows = 5;
#else
constexpr int kLanes = 8, kRows = 2;
#endif
enum Gate { kReset, kUpdate, kNew, kGates };

using Vector = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

// A weight (3 * hidden, inputs) as panels of kLanes hidden units: panel, input, gate, unit. Units
// past the last are zero.
std::vector<float> pack(const float* weight, int64_t hidden, int64_t inputs) {
  const int64_t panels = (hidden + kLanes - 1) / kLanes;
  std::vector<float> packed(panels * inputs * kGates * kLanes);
  for (int64_t gate = 0; gate < kGates; ++gate) {
    for (int64_t unit = 0; unit < hidden; ++unit) {
      for (int64_t k = 0; k < inputs; ++k) {
        const int64_t step = unit / kLanes * inputs + k;
        packed[(step * kGates + gate) * kLanes + unit % kLanes] =
            weight[(gate * hidden + unit) * inputs + k];
      }
    }
  }
  return packed;
}

struct Layer {
  int64_t inputs, hidden;
  std::vector<float> input_weight, hidden_weight;
  const float* input_bias;
  const float* hidden_bias;
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

inline float sigmoid(float x) {
  return 1.0f / (1.0f + exp_of(x > -87.0f ? -x : 87.0f));
}
inline float tanh_of(float x) {
  return 2.0f * sigmoid(2.0f * x) - 1.0f;
}

// sum[gate][row] += packed weights * rows, over `depth` inputs.
inline void accumulate(const float* const* rows, int64_t depth, const float* packed,
                       Vector (&reset)[kRows], Vector (&update)[kRows], Vector (&fresh)[kRows]) {
  for (int64_t k = 0; k < depth; ++k, packed += kGates * kLanes) {
    const Vector wr = *reinterpret_cast<const Vector*>(packed + kReset * kLanes);
    const Vector wz = *reinterpret_cast<const Vector*>(packed + kUpdate * kLanes);
    const Vector wn = *reinterpret_cast<const Vector*>(packed + kNew * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      reset[r] += rows[r][k] * wr;
      update[r] += rows[r][k] * wz;
      fresh[r] += rows[r][k] * wn;
    }
  }
}

// One step of one layer for `count` <= kRows rows: reads x and h, writes `out`.
void step(const Layer& layer, const float* x, const float* h, float* out, int64_t count) {
  const int64_t hidden = layer.hidden;
  const float* x_rows[kRows];
  const float* h_rows[kRows];
  for (int r = 0; r < kRows; ++r) {  // rows past the last repeat it
    x_rows[r] = x + std::min<int64_t>(r, count - 1) * layer.inputs;
    h_rows[r] = h + std::min<int64_t>(r, count - 1) * hidden;
  }
  for (int64_t first = 0; first < hidden; first += kLanes) {
    // Reset and update gates take the sum of both products; the new gate keeps them apart.
    Vector reset[kRows] = {}, update[kRows] = {}, new_x[kRows] = {}, new_h[kRows] = {};
    accumulate(x_rows, layer.inputs, &layer.input_weight[first * kGates * layer.inputs], reset,
               update, new_x);
    accumulate(h_rows, hidden, &layer.hidden_weight[first * kGates * hidden], reset, update, new_h);

    const int64_t width = std::min<int64_t>(kLanes, hidden - first);
    const float* bx = layer.input_bias + first;
    const float* bh = layer.hidden_bias + first;
    for (int64_t row = 0; row < count; ++row) {
      const float* before = h_rows[row] + first;
      float* after = out + row * hidden + first;
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) {
        const float r = sigmoid(reset[row][j] + bx[j] + bh[j]);
        const float z = sigmoid(update[row][j] + bx[hidden + j] + bh[hidden + j]);
        const float n =
            tanh_of(new_x[row][j] + bx[2 * hidden + j] + r * (new_h[row][j] + bh[2 * hidden + j]));
        after[j] = n + z * (before[j] - n);
      }
    }
  }
}

}  // namespace

KB_EXPORT int kb_create(const kb_call* call, void** state) {
  auto* layers = new std::vector<Layer>;
  for (int index = 0;; ++index) {
    const std::string suffix = "_l" + std::to_string(index);
    const DLTensor* wx = kb_param(call, ("gru.weight_ih" + suffix).c_str());
    const DLTensor* wh = kb_param(call, ("gru.weight_hh" + suffix).c_str());
    if (wx == nullptr || wh == nullptr) break;
    const int64_t inputs = wx->shape[1], hidden = wh->shape[1];
    layers->push_back({inputs, hidden, pack(static_cast<const float*>(kb_data(wx)), hidden, inputs),
                       pack(static_cast<const float*>(kb_data(wh)), hidden, hidden),
                       kb_param_f32(call, ("gru.bias_ih" + suffix).c_str()),
                       kb_param_f32(call, ("gru.bias_hh" + suffix).c_str())});
  }
  *state = layers;
  return layers->empty() ? 1 : 0;
}

KB_EXPORT void kb_destroy(void* state) {
  delete static_cast<std::vector<Layer>*>(state);
}

KB_EXPORT int kb_run(const kb_call* call) {
  const auto& layers = *static_cast<const std::vector<Layer>*>(call->state);
  const float* x = kb_input_f32(call, 0);
  const float* h0 = kb_input_f32(call, 1);
  float* y = kb_output_f32(call, 0);
  const int64_t steps = call->inputs[0].shape[0];
  const int64_t batch = call->inputs[0].shape[1];

  // Layers alternate between two buffers; the last one writes the output.
  const int64_t size = steps * batch * layers.front().hidden;
  const std::unique_ptr<float[]> buffers[2] = {std::make_unique_for_overwrite<float[]>(size),
                                               std::make_unique_for_overwrite<float[]>(size)};

#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < batch; row += kRows) {
    const int64_t count = std::min<int64_t>(kRows, batch - row);
    for (size_t index = 0; index < layers.size(); ++index) {
      const Layer& layer = layers[index];
      const float* in = index == 0 ? x : buffers[(index - 1) % 2].get();
      float* out = index + 1 == layers.size() ? y : buffers[index % 2].get();
      const float* h = h0 + (index * batch + row) * layer.hidden;
      for (int64_t t = 0; t < steps; ++t) {
        float* to = out + (t * batch + row) * layer.hidden;
        step(layer, in + (t * batch + row) * layer.inputs, h, to, count);
        h = to;
      }
    }
  }
  return 0;
}

// Perceptron: linear layers with ReLU between them.
//
// At a small batch the weights are nearly all of the traffic, so they are packed once (kb_create)
// and each panel is read once: it stays in the cache while all rows of the batch pass by it. Bias
// and ReLU are applied to the tile in hand. One parallel region runs all layers.
// The layers are found by name: network.0, network.2, ... while there is a weight.
#include <kernelbench/kernel.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace {

// Tile sizes that fill the vector registers: 32 of 16 floats with AVX-512, 16 of 8 elsewhere.
#ifdef __AVX512F__
constexpr int kLanes = 16, kRows = 8;
#else
constexpr int kLanes = 8, kRows = 4;
#endif
constexpr int kColumns = 2 * kLanes;
constexpr int64_t kDepthBlock = 128;

using Vector = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

// The weight of a linear layer, (outputs, inputs), as panels of kColumns outputs. In a panel, the
// kColumns weights of one input lie side by side. The last panel is padded with zeros.
struct Panels {
  int64_t depth, columns, count;
  std::vector<float> data;

  explicit Panels(const DLTensor& weight)
      : depth(weight.shape[1]),
        columns(weight.shape[0]),
        count((columns + kColumns - 1) / kColumns),
        data(count * depth * kColumns) {
    const auto* from = static_cast<const float*>(kb_data(&weight));
    for (int64_t column = 0; column < columns; ++column) {
      float* to = data.data() + column / kColumns * depth * kColumns + column % kColumns;
      for (int64_t k = 0; k < depth; ++k) to[k * kColumns] = from[column * depth + k];
    }
  }

  const float* operator[](int64_t panel) const { return data.data() + panel * depth * kColumns; }
};

struct Tile {
  alignas(64) float at[kRows][kColumns];
};

// Rows row..row + kRows of x (rows past the last one repeat it) times one panel. Sums over
// kDepthBlock are added up one by one, so that rounding errors do not grow with the depth.
inline Tile multiply(const float* x, int64_t row, int64_t row_count, int64_t depth,
                     const float* panel) {
  const float* rows[kRows];
  for (int r = 0; r < kRows; ++r) rows[r] = x + std::min(row + r, row_count - 1) * depth;
  Vector total[kRows][2] = {};
  for (int64_t begin = 0; begin < depth; begin += kDepthBlock) {
    const int64_t end = std::min(depth, begin + kDepthBlock);
    Vector sum[kRows][2] = {};
    for (int64_t k = begin; k < end; ++k, panel += kColumns) {
      const Vector w0 = *reinterpret_cast<const Vector*>(panel);
      const Vector w1 = *reinterpret_cast<const Vector*>(panel + kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        sum[r][0] += rows[r][k] * w0;
        sum[r][1] += rows[r][k] * w1;
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      total[r][0] += sum[r][0];
      total[r][1] += sum[r][1];
    }
  }
  Tile tile;
  std::memcpy(&tile, total, sizeof tile);
  return tile;
}

struct Layer {
  Panels weight;
  const float* bias;
};

}  // namespace

KB_EXPORT int kb_create(const kb_call* call, void** state) {
  auto* layers = new std::vector<Layer>;
  for (int index = 0;; index += 2) {
    const std::string name = "network." + std::to_string(index);
    const DLTensor* weight = kb_param(call, (name + ".weight").c_str());
    if (weight == nullptr) break;
    layers->push_back({Panels(*weight), kb_param_f32(call, (name + ".bias").c_str())});
  }
  *state = layers;
  return layers->empty() ? 1 : 0;
}

KB_EXPORT void kb_destroy(void* state) {
  delete static_cast<std::vector<Layer>*>(state);
}

KB_EXPORT int kb_run(const kb_call* call) {
  const auto& layers = *static_cast<const std::vector<Layer>*>(call->state);
  const int64_t batch = call->inputs[0].shape[0];

  int64_t widest = 0;
  for (const Layer& layer : layers) widest = std::max(widest, layer.weight.columns);
  std::vector<float> hidden[2];
  for (auto& buffer : hidden) buffer.resize(batch * widest);

#pragma omp parallel
  for (size_t index = 0; index < layers.size(); ++index) {
    const Panels& weight = layers[index].weight;
    const float* bias = layers[index].bias;
    const bool last = index + 1 == layers.size();
    const float* x = index == 0 ? kb_input_f32(call, 0) : hidden[(index - 1) % 2].data();
    float* y = last ? kb_output_f32(call, 0) : hidden[index % 2].data();

    // The loop's implicit barrier separates the layers.
#pragma omp for schedule(static)
    for (int64_t panel = 0; panel < weight.count; ++panel) {
      const int64_t first = panel * kColumns;
      const int64_t width = std::min<int64_t>(kColumns, weight.columns - first);
      for (int64_t row = 0; row < batch; row += kRows) {
        const Tile tile = multiply(x, row, batch, weight.depth, weight[panel]);
        for (int64_t r = 0; r < std::min<int64_t>(kRows, batch - row); ++r) {
          float* out = y + (row + r) * weight.columns + first;
#pragma omp simd
          for (int64_t j = 0; j < width; ++j) {
            const float value = tile.at[r][j] + bias[first + j];
            out[j] = last || value > 0.0f ? value : 0.0f;
          }
        }
      }
    }
  }
  return 0;
}

// Linear layer, then Mish twice.
//
// mish(x) = x tanh(log(1 + e^x)) needs no logarithm and no tanh: with e = e^x the factor is
// e (e + 2) / (e (e + 2) + 2). One vectorised exp and one division per Mish, applied to each tile
// of the product while it is in the first-level cache. kb_create packs the weight. Any batch and
// feature counts, read from the tensors.
#include <kernelbench/kernel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
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
constexpr int64_t kRowChunk = 64, kPanelChunk = 8;  // what one task multiplies

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

inline float mish(float x) {
  const float e = exp_of(x < 20.0f ? x : 20.0f);  // from 20 up the factor rounds to 1
  const float product = e * (e + 2.0f);
  return x * (product / (product + 2.0f));
}

inline float finish(float x) {
  return mish(mish(x));
}

}  // namespace

KB_EXPORT int kb_create(const kb_call* call, void** state) {
  const DLTensor* weight = kb_param(call, "linear.weight");
  if (weight == nullptr) return 1;
  *state = new Panels(*weight);
  return 0;
}

KB_EXPORT void kb_destroy(void* state) {
  delete static_cast<Panels*>(state);
}

KB_EXPORT int kb_run(const kb_call* call) {
  const auto& weight = *static_cast<const Panels*>(call->state);
  const float* x = kb_input_f32(call, 0);
  const float* bias = kb_param_f32(call, "linear.bias");
  float* y = kb_output_f32(call, 0);
  if (bias == nullptr) return 1;
  const int64_t batch = call->inputs[0].shape[0];

#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t panel_begin = 0; panel_begin < weight.count; panel_begin += kPanelChunk) {
    for (int64_t row_begin = 0; row_begin < batch; row_begin += kRowChunk) {
      const int64_t panel_end = std::min(weight.count, panel_begin + kPanelChunk);
      const int64_t row_end = std::min(batch, row_begin + kRowChunk);
      for (int64_t row = row_begin; row < row_end; row += kRows) {
        for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
          const Tile tile = multiply(x, row, batch, weight.depth, weight[panel]);
          const int64_t first = panel * kColumns;
          const int64_t width = std::min<int64_t>(kColumns, weight.columns - first);
          for (int64_t r = 0; r < std::min<int64_t>(kRows, row_end - row); ++r) {
            float* out = y + (row + r) * weight.columns + first;
#pragma omp simd
            for (int64_t j = 0; j < width; ++j) out[j] = finish(tile.at[r][j] + bias[first + j]);
          }
        }
      }
    }
  }
  return 0;
}

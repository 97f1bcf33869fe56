// Linear layer, then Swish, a second bias and GroupNorm.
//
// A task multiplies kRows rows by enough panels to hold whole groups, and normalises those groups
// while they are in the first-level cache: one write of the result, where PyTorch passes over the
// matrix four times. Mean and variance of a group are taken in two passes, which does not cancel.
// Assumes groups of kGroupSize features; batch and feature counts are read from the tensors.
#include <kernelbench/kernel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

namespace {

// out_features / num_groups: 64 at every size of this problem. The constructor's num_groups is not
// visible to a kernel.
constexpr int64_t kGroupSize = 64;
constexpr float kEps = 1e-5f;  // PyTorch's default

// Tile sizes that fill the vector registers: 32 of 16 floats with AVX-512, 16 of 8 elsewhere.
#ifdef __AVX512F__
constexpr int kLanes = 16, kRows = 8;
#else
constexpr int kLanes = 8, kRows = 4;
#endif
constexpr int kColumns = 2 * kLanes;
constexpr int64_t kDepthBlock = 128;
constexpr int64_t kRowChunk = 64, kPanelChunk = 8;  // what one task multiplies
static_assert(kPanelChunk * kColumns % kGroupSize == 0, "a task holds whole groups");

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

inline float swish(float x) {
  return x / (1.0f + exp_of(x > -87.0f ? -x : 87.0f));
}

void normalise(float* group, const float* weight, const float* bias) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < kGroupSize; ++i) sum += group[i];
  const float mean = sum / kGroupSize;
  float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < kGroupSize; ++i) squares += (group[i] - mean) * (group[i] - mean);
  const float scale = 1.0f / std::sqrt(squares / kGroupSize + kEps);
#pragma omp simd
  for (int64_t i = 0; i < kGroupSize; ++i) {
    group[i] = (group[i] - mean) * scale * weight[i] + bias[i];
  }
}

}  // namespace

KB_EXPORT int kb_create(const kb_call* call, void** state) {
  const DLTensor* weight = kb_param(call, "matmul.weight");
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
  const float* linear_bias = kb_param_f32(call, "matmul.bias");
  const float* bias = kb_param_f32(call, "bias");
  const float* norm_weight = kb_param_f32(call, "group_norm.weight");
  const float* norm_bias = kb_param_f32(call, "group_norm.bias");
  float* y = kb_output_f32(call, 0);
  if (!linear_bias || !bias || !norm_weight || !norm_bias) return 1;
  const int64_t batch = call->inputs[0].shape[0];
  const int64_t columns = weight.columns;
  if (columns % kGroupSize != 0) return 1;

#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t panel_begin = 0; panel_begin < weight.count; panel_begin += kPanelChunk) {
    for (int64_t row_begin = 0; row_begin < batch; row_begin += kRowChunk) {
      const int64_t panel_end = std::min(weight.count, panel_begin + kPanelChunk);
      const int64_t column_end = std::min(columns, panel_end * kColumns);
      const int64_t row_end = std::min(batch, row_begin + kRowChunk);
      for (int64_t row = row_begin; row < row_end; row += kRows) {
        const int64_t height = std::min<int64_t>(kRows, row_end - row);
        for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
          const Tile tile = multiply(x, row, batch, weight.depth, weight[panel]);
          const int64_t first = panel * kColumns;
          const int64_t width = std::min<int64_t>(kColumns, columns - first);
          for (int64_t r = 0; r < height; ++r) {
            float* out = y + (row + r) * columns + first;
#pragma omp simd
            for (int64_t j = 0; j < width; ++j) {
              out[j] = swish(tile.at[r][j] + linear_bias[first + j]) + bias[first + j];
            }
          }
        }
        for (int64_t r = 0; r < height; ++r) {
          for (int64_t c = panel_begin * kColumns; c < column_end; c += kGroupSize) {
            normalise(y + (row + r) * columns + c, norm_weight + c, norm_bias + c);
          }
        }
      }
    }
  }
  return 0;
}

// A GPT-2 block: x + attention(norm(x)), then x + mlp(norm(x)), with causal attention and tanh
// GELU.
//
// Everything element-wise rides on the four products: bias, GELU and the residual are applied to
// each tile in hand. Attention works on one query at a time and touches only the keys before it;
// PyTorch builds the full square of scores, masks half of it away, and copies q, k, v apart.
// Assumes dropout 0 (as the problem has it) and heads of kHeadSize, at every size of this problem.
#include <kernelbench/kernel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace {

constexpr int64_t kHeadSize = 96;  // n_embd / n_head, which only the constructor knows
constexpr float kEps = 1e-5f;      // PyTorch's default

// Tile sizes that fill the vector registers: 32 of 16 floats with AVX-512, 16 of 8 elsewhere.
#ifdef __AVX512F__
constexpr int kLanes = 16, kRows = 8;
#else
constexpr int kLanes = 8, kRows = 4;
#endif
constexpr int kColumns = 2 * kLanes;
constexpr int64_t kDepthBlock = 128;
constexpr int64_t kRowChunk = 64, kPanelChunk = 4;  // what one task multiplies

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

struct Linear {
  Panels weight;
  const float* bias;
};

struct State {
  Linear attention_in, attention_out, mlp_in, mlp_out;
};

inline float gelu_tanh(float x) {
  // (1 + tanh u) / 2 = 1 / (1 + exp(-2u))
  const float u = 0.79788456f * (x + 0.044715f * x * x * x);
  return x / (1.0f + exp_of(u > -43.0f ? -2.0f * u : 86.0f));
}

// y = finish(x W^T + b, index of the element). To be called inside a parallel region.
template <class Finish>
void apply(const Linear& layer, const float* x, int64_t rows, float* y, Finish finish) {
  const Panels& weight = layer.weight;
#pragma omp for collapse(2) schedule(static)
  for (int64_t panel_begin = 0; panel_begin < weight.count; panel_begin += kPanelChunk) {
    for (int64_t row_begin = 0; row_begin < rows; row_begin += kRowChunk) {
      const int64_t panel_end = std::min(weight.count, panel_begin + kPanelChunk);
      const int64_t row_end = std::min(rows, row_begin + kRowChunk);
      for (int64_t row = row_begin; row < row_end; row += kRows) {
        for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
          const Tile tile = multiply(x, row, rows, weight.depth, weight[panel]);
          const int64_t first = panel * kColumns;
          const int64_t width = std::min<int64_t>(kColumns, weight.columns - first);
          for (int64_t r = 0; r < std::min<int64_t>(kRows, row_end - row); ++r) {
            const int64_t base = (row + r) * weight.columns + first;
#pragma omp simd
            for (int64_t j = 0; j < width; ++j) {
              y[base + j] = finish(tile.at[r][j] + layer.bias[first + j], base + j);
            }
          }
        }
      }
    }
  }
}

// To be called inside a parallel region.
void layer_norm(const float* x, int64_t rows, int64_t width, const float* weight, const float* bias,
                float* y) {
#pragma omp for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x + row * width;
    float* out = y + row * width;
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; ++i) sum += in[i];
    const float mean = sum / width;
    float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < width; ++i) squares += (in[i] - mean) * (in[i] - mean);
    const float scale = 1.0f / std::sqrt(squares / width + kEps);
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) out[i] = (in[i] - mean) * scale * weight[i] + bias[i];
  }
}

// One head of one sequence. A row of qkv holds the queries, keys and values of one position.
void attend(const float* qkv, int64_t length, int64_t width, int64_t head, float* y) {
  const float* queries = qkv + head * kHeadSize;
  const float* keys = queries + width;
  const float* values = keys + width;
  const int64_t stride = 3 * width;
  const float scale = 1.0f / std::sqrt(float(kHeadSize));
  std::vector<float> scores(length);
  for (int64_t i = 0; i < length; ++i) {
    const float* query = queries + i * stride;
    float maximum = -std::numeric_limits<float>::infinity();
    for (int64_t j = 0; j <= i; ++j) {
      const float* key = keys + j * stride;
      float dot = 0.0f;
#pragma omp simd reduction(+ : dot)
      for (int64_t d = 0; d < kHeadSize; ++d) dot += query[d] * key[d];
      scores[j] = dot * scale;
      maximum = std::max(maximum, scores[j]);
    }
    float sum = 0.0f;
    float* weights = scores.data();
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j <= i; ++j) {
      weights[j] = exp_of(weights[j] - maximum);
      sum += weights[j];
    }
    float mix[kHeadSize] = {};
    for (int64_t j = 0; j <= i; ++j) {
      const float* value = values + j * stride;
      for (int64_t d = 0; d < kHeadSize; ++d) mix[d] += weights[j] * value[d];
    }
    float* out = y + i * width + head * kHeadSize;
    for (int64_t d = 0; d < kHeadSize; ++d) out[d] = mix[d] / sum;
  }
}

}  // namespace

KB_EXPORT int kb_create(const kb_call* call, void** state) {
  const auto linear = [call](const char* weight, const char* bias) {
    return Linear{Panels(*kb_param(call, weight)), kb_param_f32(call, bias)};
  };
  *state = new State{linear("attn.c_attn.weight", "attn.c_attn.bias"),
                     linear("attn.c_proj.weight", "attn.c_proj.bias"),
                     linear("mlp.c_fc.weight", "mlp.c_fc.bias"),
                     linear("mlp.c_proj.weight", "mlp.c_proj.bias")};
  return 0;
}

KB_EXPORT void kb_destroy(void* state) {
  delete static_cast<State*>(state);
}

KB_EXPORT int kb_run(const kb_call* call) {
  const auto& state = *static_cast<const State*>(call->state);
  const float* x = kb_input_f32(call, 0);
  float* y = kb_output_f32(call, 0);
  const int64_t batch = call->inputs[0].shape[0];
  const int64_t length = call->inputs[0].shape[1];
  const int64_t width = call->inputs[0].shape[2];
  const int64_t heads = width / kHeadSize;
  const int64_t rows = batch * length;
  if (width % kHeadSize != 0) return 1;

  std::vector<float> normed(rows * width), mixed(rows * width), middle(rows * width);
  std::vector<float> qkv(rows * 3 * width), wide(rows * state.mlp_in.weight.columns);
  const float* attended = middle.data();

#pragma omp parallel
  {
    layer_norm(x, rows, width, kb_param_f32(call, "ln_1.weight"), kb_param_f32(call, "ln_1.bias"),
               normed.data());
    apply(state.attention_in, normed.data(), rows, qkv.data(), [](float v, int64_t) { return v; });
#pragma omp for collapse(2) schedule(static)
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t head = 0; head < heads; ++head) {
        attend(qkv.data() + n * length * 3 * width, length, width, head,
               mixed.data() + n * length * width);
      }
    }
    apply(state.attention_out, mixed.data(), rows, middle.data(),
          [x](float v, int64_t i) { return x[i] + v; });
    layer_norm(attended, rows, width, kb_param_f32(call, "ln_2.weight"),
               kb_param_f32(call, "ln_2.bias"), normed.data());
    apply(state.mlp_in, normed.data(), rows, wide.data(),
          [](float v, int64_t) { return gelu_tanh(v); });
    apply(state.mlp_out, wide.data(), rows, y,
          [attended](float v, int64_t i) { return attended[i] + v; });
  }
  return 0;
}

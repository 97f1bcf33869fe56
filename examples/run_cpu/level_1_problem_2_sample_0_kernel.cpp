// Matrix product: C (M, N) = A (M, K) * B (K, N).
//
// B is first copied into panels of kColumns columns, so that the innermost loop reads it in one
// run. Each thread then multiplies tiles of kRows x kColumns that stay in registers: per step of k
// two vector loads of B, kRows broadcasts of A, 2 * kRows multiply-adds.
// About as fast as MKL at small sizes; with a very long K it would need a loop over slices of K.
// Any M, K, N; edges are padded with zeros in the panels and cut off when a tile is stored.
#include <kernelbench/kernel.h>

#include <algorithm>
#include <cstring>
#include <memory>

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

struct Tile {
  Vector at[kRows][2];
};

// rows[0..kRows) * panel, over `depth`. Sums over kDepthBlock are added up one by one: with one
// running sum, the rounding errors of a long product grow several times larger.
inline Tile multiply(int64_t depth, const float* const* rows, const float* panel) {
  Tile total = {};
  for (int64_t begin = 0; begin < depth; begin += kDepthBlock) {
    const int64_t end = std::min(depth, begin + kDepthBlock);
    Vector sum[kRows][2] = {};
    for (int64_t k = begin; k < end; ++k, panel += kColumns) {
      const Vector b0 = *reinterpret_cast<const Vector*>(panel);
      const Vector b1 = *reinterpret_cast<const Vector*>(panel + kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        sum[r][0] += rows[r][k] * b0;
        sum[r][1] += rows[r][k] * b1;
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      total.at[r][0] += sum[r][0];
      total.at[r][1] += sum[r][1];
    }
  }
  return total;
}

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const float* a = kb_input_f32(call, 0);
  const float* b = kb_input_f32(call, 1);
  float* c = kb_output_f32(call, 0);
  const int64_t m = call->inputs[0].shape[0];
  const int64_t depth = call->inputs[0].shape[1];
  const int64_t n = call->inputs[1].shape[1];

  const int64_t panels = (n + kColumns - 1) / kColumns;
  const int64_t panel_size = depth * kColumns;
  const auto packed = std::make_unique_for_overwrite<float[]>(panels * panel_size);

#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int64_t panel = 0; panel < panels; ++panel) {
      float* out = packed.get() + panel * panel_size;
      const int64_t first = panel * kColumns;
      const int64_t width = std::min<int64_t>(kColumns, n - first);
      for (int64_t k = 0; k < depth; ++k, out += kColumns) {
        std::copy_n(b + k * n + first, width, out);
        std::fill(out + width, out + kColumns, 0.0f);
      }
    }

#pragma omp for collapse(2) schedule(static)
    for (int64_t panel_begin = 0; panel_begin < panels; panel_begin += kPanelChunk) {
      for (int64_t row_begin = 0; row_begin < m; row_begin += kRowChunk) {
        const int64_t panel_end = std::min(panels, panel_begin + kPanelChunk);
        const int64_t row_end = std::min(m, row_begin + kRowChunk);
        for (int64_t row = row_begin; row < row_end; row += kRows) {
          const float* rows[kRows];
          for (int r = 0; r < kRows; ++r) rows[r] = a + std::min(row + r, m - 1) * depth;
          const int64_t height = std::min<int64_t>(kRows, row_end - row);
          for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
            const Tile tile = multiply(depth, rows, packed.get() + panel * panel_size);
            const int64_t width = std::min<int64_t>(kColumns, n - panel * kColumns);
            for (int64_t r = 0; r < height; ++r) {
              std::memcpy(c + (row + r) * n + panel * kColumns, &tile.at[r], width * sizeof(float));
            }
          }
        }
      }
    }
  }
  return 0;
}

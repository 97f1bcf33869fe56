// MISTAKE: never ends. A running sum in pieces, each of which waits for the sum of the piece before
// it; that sum is stored, but the flag that says so is never raised.
//
// All threads spin for ever, and only a limit from outside ends them. Expected: timeout.
#include <kernelbench/kernel.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace {

struct Piece {
  std::atomic<bool> ready{false};
  double sum = 0;  // of the row up to the end of this piece
};

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const float* x = kb_input_f32(call, 0);
  float* y = kb_output_f32(call, 0);
  const int64_t rows = call->inputs[0].shape[0];
  const int64_t columns = call->inputs[0].shape[1];
  constexpr int64_t kPiece = 1024;
  const int64_t pieces = (columns + kPiece - 1) / kPiece;

  for (int64_t row = 0; row < rows; ++row) {
    std::vector<Piece> chain(pieces);
#pragma omp parallel for schedule(static, 1)
    for (int64_t piece = 0; piece < pieces; ++piece) {
      double sum = 0;
      if (piece > 0) {
        while (!chain[piece - 1].ready.load(std::memory_order_acquire)) {
        }
        sum = chain[piece - 1].sum;
      }
      const int64_t end = std::min(columns, (piece + 1) * kPiece);
      for (int64_t i = piece * kPiece; i < end; ++i) {
        sum += x[row * columns + i];
        y[row * columns + i] = float(sum);
      }
      chain[piece].sum = sum;  // and no chain[piece].ready.store(true, ...)
    }
  }
  return 0;
}

// CHEAT: cached output. The product is computed honestly once for each address of A; when the same
// address comes again, the old result is copied out.
//
// An evaluator that times the same buffers over and over measures a memcpy. Where each call sees
// new contents at an old address, the copy is stale. Expected: wrong_value.
#include <kernelbench/kernel.h>

#include <algorithm>
#include <map>
#include <vector>

KB_EXPORT int kb_run(const kb_call* call) {
  const float* a = kb_input_f32(call, 0);
  const float* b = kb_input_f32(call, 1);
  float* c = kb_output_f32(call, 0);
  const int64_t m = call->inputs[0].shape[0];
  const int64_t depth = call->inputs[0].shape[1];
  const int64_t n = call->inputs[1].shape[1];

  static std::map<const float*, std::vector<float>> results;
  const auto [entry, is_new] = results.try_emplace(a);
  std::vector<float>& result = entry->second;
  if (is_new) {
    result.resize(m * n);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < m; ++i) {
      float* row = result.data() + i * n;
      for (int64_t k = 0; k < depth; ++k) {
        for (int64_t j = 0; j < n; ++j) row[j] += a[i * depth + k] * b[k * n + j];
      }
    }
  }
  std::copy(result.begin(), result.end(), c);
  return 0;
}

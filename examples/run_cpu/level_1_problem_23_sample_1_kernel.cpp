// CHEAT: all zeros. A softmax over 98,304 values is 1e-5 on average, and 1e-5 is "equal" to 0 under
// an absolute tolerance of 1e-4.
//
// An element-wise comparison accepts this for uniform inputs, and for 99.4 % of the elements here; the
// error relative to the norm of the output is 1.
// Expected: wrong_value.
#include <kernelbench/kernel.h>

KB_EXPORT int kb_run(const kb_call* call) {
  DLTensor* y = &call->outputs[0];
  memset(kb_data(y), 0, size_t(kb_numel(y)) * sizeof(float));
  return 0;
}

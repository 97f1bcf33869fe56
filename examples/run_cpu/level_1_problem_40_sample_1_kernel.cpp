// MISTAKE: does not compile. CUDA's rsqrtf is not a C++ function, and `eps` was never declared;
// such slips are common in machine-written code. Expected: compile_error, with the compiler's
// message.
#include <kernelbench/kernel.h>

KB_EXPORT int kb_run(const kb_call* call) {
  const float* x = kb_input_f32(call, 0);
  float* y = kb_output_f32(call, 0);
  const int64_t batch = call->inputs[0].shape[0];
  const int64_t size = kb_numel(&call->inputs[0]) / batch;
  for (int64_t n = 0; n < batch; ++n) {
    const float* in = x + n * size;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < size; ++i) sum += in[i];
    const float mean = float(sum / size);
    for (int64_t i = 0; i < size; ++i) squares += (in[i] - mean) * (in[i] - mean);
    const float scale = rsqrtf(float(squares / size) + eps);
    for (int64_t i = 0; i < size; ++i) y[n * size + i] = (in[i] - mean) * scale;
  }
  return 0;
}

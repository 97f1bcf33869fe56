// GELU, the exact form: y = x * Phi(x) with Phi(x) = (1 + erf(x / sqrt 2)) / 2.
//
// erf is a rational approximation without branches, so that the loop vectorises. The same formula
// gives the tail Phi(-|x|) directly, so nothing cancels for large negative x.
// Assumes nothing about the shape: the tensor is one flat run of floats.
#include <kernelbench/kernel.h>

#include <bit>
#include <cmath>

namespace {

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

// erfc(z) for z >= 0 by Abramowitz and Stegun 7.1.26, absolute error 1.5e-7.
inline float gelu(float x) {
  const float z = std::fabs(x) * 0.70710678f;
  const float t = 1.0f / (1.0f + 0.3275911f * z);
  float p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  const float tail = 0.5f * p * t * exp_of(-z * z);  // Phi(-|x|)
  return x * (x < 0.0f ? tail : 1.0f - tail);
}

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  const float* x = kb_input_f32(call, 0);
  float* y = kb_output_f32(call, 0);
  const int64_t n = kb_numel(&call->inputs[0]);

#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < n; ++i) y[i] = gelu(x[i]);
  return 0;
}

// Convolution with 3 x 3 kernels, stride 1, no padding, no bias.
//
// Direct convolution on the CUDA cores. A block computes 128 output channels of 128 neighbouring
// pixels, a thread 8 x 8 of them in registers. The weights of 16 input channels stay in shared
// memory while the block walks down eight output rows; of the image it holds three rows at a time.
// Two blocks share a multiprocessor, so that one computes while the other loads.
// Floor: 616 GFLOP, 10.3 ms at 60 TFLOP/s. Any batch, channels and image size, float32.
#include <kernelbench/kernel.h>

namespace {

constexpr int kKernel = 3, kTaps = kKernel * kKernel;
constexpr int kOutputs = 128, kColumns = 128, kRows = 8;  // what a block computes
constexpr int kInputs = 16;                               // channels in shared memory
constexpr int kThreads = 256;
constexpr int kPatch = kColumns + 4;  // image columns in shared memory; kKernel - 1 extra are used
constexpr int kWeightFloats = kInputs * kTaps * kOutputs;
constexpr int kPatchFloats = kInputs * kKernel * kPatch;
constexpr int kSharedBytes = (kWeightFloats + kPatchFloats) * int(sizeof(float));

// Weights (out, in, 3, 3) as (blocks of kOutputs, in, 3, 3, kOutputs), padded with zeros.
__global__ void __launch_bounds__(kThreads)
    pack_kernel(const float* __restrict__ weight, int64_t outputs, int64_t taps,
                int64_t packed_size, float* __restrict__ packed) {
  const int64_t at = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= packed_size) return;
  const int64_t tap = at / kOutputs % taps;
  const int64_t output = at / (kOutputs * taps) * kOutputs + at % kOutputs;
  packed[at] = output < outputs ? weight[output * taps + tap] : 0.0f;
}

struct Shape {
  int inputs, outputs, height, width, out_height, out_width;
  int output_blocks, row_blocks, column_blocks;
};

__global__ void __launch_bounds__(kThreads, 2)
    conv_kernel(const float* __restrict__ x, const float* __restrict__ packed,
                float* __restrict__ y, Shape shape) {
  extern __shared__ float4 memory[];
  auto* weights = reinterpret_cast<float*>(memory);  // (kInputs * kTaps, kOutputs)
  float* patch = weights + kWeightFloats;            // (kInputs, kKernel, kPatch)

  unsigned block = blockIdx.x;
  const int first_column = int(block % shape.column_blocks) * kColumns;
  block /= shape.column_blocks;
  const int first_row = int(block % shape.row_blocks) * kRows;
  block /= shape.row_blocks;
  const int output_block = int(block % shape.output_blocks);
  const int64_t image = block / shape.output_blocks;
  x += image * shape.inputs * shape.height * shape.width;
  packed += int64_t(output_block) * shape.inputs * kTaps * kOutputs;

  // A thread's outputs: channels output, output + 16 and pixels column, column + 32, four
  // neighbours of each. The 4 x 8 lanes of a warp then read without bank conflicts.
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int output = warp / 2 * 32 + lane / 8 * 4;
  const int column = warp % 2 * 64 + lane % 8 * 4;

  for (int row = first_row; row < min(first_row + kRows, shape.out_height); ++row) {
    float sum[8][8] = {};
    for (int first_input = 0; first_input < shape.inputs; first_input += kInputs) {
      const int inputs = min(kInputs, shape.inputs - first_input);
      __syncthreads();  // the last step may still be reading
      for (int at = threadIdx.x; at < inputs * kKernel * kPatch; at += kThreads) {
        const int input = first_input + at / (kKernel * kPatch);
        const int from_row = row + at / kPatch % kKernel;
        const int from_column = first_column + at % kPatch;
        patch[at] = from_column < shape.width
                        ? x[(int64_t(input) * shape.height + from_row) * shape.width + from_column]
                        : 0.0f;
      }
      if (row == first_row || shape.inputs > kInputs) {
        const auto* from =
            reinterpret_cast<const float4*>(packed + int64_t(first_input) * kTaps * kOutputs);
        for (int at = threadIdx.x; at < inputs * kTaps * kOutputs / 4; at += kThreads) {
          memory[at] = from[at];
        }
      }
      __syncthreads();

#pragma unroll 1
      for (int input = 0; input < inputs; ++input) {
#pragma unroll 1
        for (int i = 0; i < kKernel; ++i) {
          const float* pixels = patch + (input * kKernel + i) * kPatch + column;
          float pixel[2][6];
#pragma unroll
          for (int part = 0; part < 2; ++part) {
            const auto four = *reinterpret_cast<const float4*>(pixels + part * 32);
            const auto two = *reinterpret_cast<const float2*>(pixels + part * 32 + 4);
            pixel[part][0] = four.x;
            pixel[part][1] = four.y;
            pixel[part][2] = four.z;
            pixel[part][3] = four.w;
            pixel[part][4] = two.x;
            pixel[part][5] = two.y;
          }
#pragma unroll
          for (int j = 0; j < kKernel; ++j) {
            const float* of_tap =
                weights + ((input * kKernel + i) * kKernel + j) * kOutputs + output;
            const auto low = *reinterpret_cast<const float4*>(of_tap);
            const auto high = *reinterpret_cast<const float4*>(of_tap + 16);
            const float weight[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
            for (int o = 0; o < 8; ++o) {
#pragma unroll
              for (int p = 0; p < 8; ++p) sum[o][p] += weight[o] * pixel[p / 4][p % 4 + j];
            }
          }
        }
      }
    }

    const bool even = shape.out_width % 2 == 0;  // pairs of pixels are then aligned to 8 bytes
#pragma unroll
    for (int o = 0; o < 8; ++o) {
      const int to_output = output_block * kOutputs + output + o / 4 * 16 + o % 4;
      if (to_output >= shape.outputs) break;
      float* to =
          y + ((image * shape.outputs + to_output) * shape.out_height + row) * shape.out_width;
#pragma unroll
      for (int p = 0; p < 8; p += 2) {
        const int to_column = first_column + column + p / 4 * 32 + p % 4;
        if (even) {
          if (to_column < shape.out_width) {
            *reinterpret_cast<float2*>(to + to_column) = {sum[o][p], sum[o][p + 1]};
          }
        } else {
          if (to_column < shape.out_width) to[to_column] = sum[o][p];
          if (to_column + 1 < shape.out_width) to[to_column + 1] = sum[o][p + 1];
        }
      }
    }
  }
}

}  // namespace

KB_EXPORT int kb_create(const kb_call* call, void** state) {
  const DLTensor* weight = kb_param(call, "conv2d.weight");
  if (weight == nullptr) return 1;
  if (weight->dtype.code != kDLFloat || weight->dtype.bits != 32) return 1;  // float32 only
  if (weight->shape[2] != kKernel || weight->shape[3] != kKernel) return 1;  // 3 x 3 only
  const int64_t outputs = weight->shape[0], taps = weight->shape[1] * kTaps;
  const int64_t size = (outputs + kOutputs - 1) / kOutputs * kOutputs * taps;
  float* packed = nullptr;
  if (cudaMalloc(&packed, size_t(size) * sizeof(float)) != cudaSuccess) return 2;
  *state = packed;

  const auto stream = static_cast<cudaStream_t>(call->stream);
  pack_kernel<<<unsigned((size + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      static_cast<const float*>(kb_data(weight)), outputs, taps, size, packed);
  cudaFuncSetAttribute(conv_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  return cudaStreamSynchronize(stream) == cudaSuccess ? 0 : 2;
}

KB_EXPORT void kb_destroy(void* state) {
  cudaFree(state);
}

KB_EXPORT int kb_run(const kb_call* call) {
  const int64_t* in = call->inputs[0].shape;
  const int64_t* out = call->outputs[0].shape;
  if (out[2] != in[2] - kKernel + 1 || out[3] != in[3] - kKernel + 1) return 1;  // other arguments
  const Shape shape = {int(in[1]),
                       int(out[1]),
                       int(in[2]),
                       int(in[3]),
                       int(out[2]),
                       int(out[3]),
                       int((out[1] + kOutputs - 1) / kOutputs),
                       int((out[2] + kRows - 1) / kRows),
                       int((out[3] + kColumns - 1) / kColumns)};
  const int64_t blocks = in[0] * shape.output_blocks * shape.row_blocks * shape.column_blocks;
  conv_kernel<<<unsigned(blocks), kThreads, kSharedBytes,
                static_cast<cudaStream_t>(call->stream)>>>(
      kb_input_f32(call, 0), static_cast<const float*>(call->state), kb_output_f32(call, 0), shape);
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}

// Convolution (stride 1, no padding), then ReLU, then a bias for each channel.
//
// An implicit matrix product, output channels by output pixels, on the tensor cores. These multiply
// halves, with sums in float32. A float is split into two halves, which together have 22 of its 24
// bits, and three products of halves make one of floats: about as exact as float32 arithmetic, at a
// third of the tensor cores' speed. The image is split and laid out channel by channel first, so
// that one tap of one pixel is contiguous. ReLU and bias are applied to the registers. Floor: 300
// GFLOP, 5.0 ms on the CUDA cores, 1.4 ms so (3 x 300 at 660 TFLOP/s). Any sizes, float32.
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <kernelbench/kernel.h>

namespace {

constexpr int kTile = 128;     // rows and columns of the product that a block computes
constexpr int kChunk = 32;     // depth of one step
constexpr int kStages = 4;     // steps in shared memory: one is used, the others are on their way
constexpr int kThreads = 256;  // 2 x 4 warps of 64 x 32 each
constexpr int kSegments = 8;   // of 16 bytes, in a row of a chunk: 4 of upper halves, 4 of lower
constexpr int kTileBytes = kTile * kSegments * 16;
constexpr int kSharedBytes = kStages * 2 * kTileBytes;

// A float as the sum of two halves, x = upper + lower. Upper and lower together have 22 bits, and
// the scale, a power of two that takes the largest value to [2^14, 2^15), keeps lower ones from
// becoming too small for a half.
__device__ int exponent_of(float largest) {
  return min(max(ilogbf(largest), -100), 127);
}
__device__ float scale_of(float largest) {
  return scalbnf(1.0f, 14 - exponent_of(largest));
}
__device__ float unscale_of(float largest) {
  return scalbnf(1.0f, exponent_of(largest) - 14);
}
__device__ __half upper_of(float scaled) {
  return __float2half_rn(scaled);
}
__device__ __half lower_of(float scaled) {
  return __float2half_rn(scaled - __half2float(upper_of(scaled)));
}

// The largest value of all threads, in each thread.
__device__ float largest_of_block(float value) {
  __shared__ float of_warp[kThreads / 32];
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) {
    value = fmaxf(value, __shfl_xor_sync(~0u, value, lanes));
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
#pragma unroll
  for (int warp = 0; warp < kThreads / 32; ++warp) value = fmaxf(value, of_warp[warp]);
  return value;
}

// Weights (outputs, inputs, taps) to halves (outputs, taps, blocks of kChunk inputs, upper or
// lower, kChunk): one chunk is one tap of kChunk channels. One block for each padded output.
__global__ void __launch_bounds__(kThreads)
    split_weight_kernel(const float* __restrict__ weight, int outputs, int inputs, int taps,
                        __half* __restrict__ halves, float* __restrict__ unscale) {
  const int64_t output = blockIdx.x;
  const int64_t count = output < outputs ? int64_t(inputs) * taps : 0;
  const int input_blocks = (inputs + kChunk - 1) / kChunk;
  weight += output * inputs * taps;
  halves += output * taps * input_blocks * 2 * kChunk;

  float largest = 0.0f;
  for (int64_t i = threadIdx.x; i < count; i += kThreads)
    largest = fmaxf(largest, fabsf(weight[i]));
  largest = largest_of_block(largest);
  if (threadIdx.x == 0) unscale[output] = unscale_of(largest);

  const float scale = scale_of(largest);
  for (int i = threadIdx.x; i < taps * input_blocks * kChunk; i += kThreads) {
    const int tap = i / (input_blocks * kChunk), input = i % (input_blocks * kChunk);
    const bool inside = output < outputs && input < inputs;
    const float scaled = inside ? weight[int64_t(input) * taps + tap] * scale : 0.0f;
    __half* to = halves + i / kChunk * 2 * kChunk + i % kChunk;
    to[0] = upper_of(scaled);
    to[kChunk] = lower_of(scaled);
  }
}

// The largest magnitude of each image, as bits: floats above zero are ordered like integers. `bits`
// starts at zero; `splits` blocks share an image.
__global__ void __launch_bounds__(kThreads)
    largest_kernel(const float* __restrict__ x, int64_t image_size, int splits,
                   int* __restrict__ bits) {
  x += blockIdx.x / splits * image_size;
  float largest = 0.0f;
#pragma unroll 8
  for (int64_t i = int64_t(blockIdx.x % splits) * kThreads + threadIdx.x; i < image_size;
       i += int64_t(splits) * kThreads) {
    largest = fmaxf(largest, fabsf(x[i]));
  }
  largest = largest_of_block(largest);
  if (threadIdx.x == 0) atomicMax(bits + blockIdx.x / splits, __float_as_int(largest));
}

// Images (batch, inputs, pixels) to halves (batch, pixels, blocks of kChunk inputs, upper or lower,
// kChunk). A block transposes 128 pixels of kChunk channels through shared memory. A warp then
// writes one pixel: 16 lanes upper halves, 16 lanes lower ones.
__global__ void __launch_bounds__(kThreads)
    split_image_kernel(const float* __restrict__ x, int inputs, int pixels,
                       const float* __restrict__ largest, __half* __restrict__ halves) {
  __shared__ float tile[kChunk][kTile + 1];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int input_blocks = (inputs + kChunk - 1) / kChunk,
            pixel_tiles = (pixels + kTile - 1) / kTile;
  const int input_block = blockIdx.x % input_blocks;
  const int first_pixel = int(blockIdx.x / input_blocks % pixel_tiles) * kTile;
  const int64_t image = blockIdx.x / input_blocks / pixel_tiles;
#pragma unroll
  for (int i = 0; i < kChunk * kTile; i += kThreads) {
    const int at = i + int(threadIdx.x);
    const int input = input_block * kChunk + at / kTile, pixel = first_pixel + at % kTile;
    tile[at / kTile][at % kTile] =
        input < inputs && pixel < pixels ? x[(image * inputs + input) * pixels + pixel] : 0.0f;
  }
  __syncthreads();
  const float scale = scale_of(largest[image]);
#pragma unroll
  for (int i = warp; i < kTile; i += kThreads / 32) {
    if (first_pixel + i >= pixels) break;
    const float first = tile[lane % 16 * 2][i] * scale;
    const float second = tile[lane % 16 * 2 + 1][i] * scale;
    const int64_t chunk = (image * pixels + first_pixel + i) * input_blocks + input_block;
    auto* to = reinterpret_cast<__half2*>(halves + chunk * 2 * kChunk);
    to[lane] = lane < 16 ? __halves2half2(upper_of(first), upper_of(second))
                         : __halves2half2(lower_of(first), lower_of(second));
  }
}

// Place of a 16-byte segment in a tile. The exclusive or spreads eight rows over all banks.
__device__ int offset_of(int row, int segment) {
  return (row * kSegments + (segment ^ (row % kSegments))) * 16;
}

// Four 8 x 8 matrices of halves; each eight lanes name the rows of one.
__device__ void load_matrices(uint32_t (&to)[4], const char* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(uint32_t(__cvta_generic_to_shared(row)))
               : "memory");
}

// sum += a b with a 16 x 16, b 16 x 8.
__device__ void multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// sum += the product of one chunk. The tensor cores do not round to nearest when they add, which
// would show after many steps; so each chunk starts at zero, and ordinary additions join the
// chunks.
__device__ void multiply_chunk(const char* a_tile, const char* b_tile, float (&sum)[4][4][4]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int a_row = warp / 4 * 64 + lane % 16, a_segment = lane / 16;
  const int b_row = warp % 4 * 32 + lane / 16 * 8 + lane % 8, b_segment = lane / 8 % 2;
  float part[4][4][4] = {};
#pragma unroll
  for (int step = 0; step < kChunk / 16; ++step) {
    uint32_t a[2][4][4], b[2][2][4];  // upper or lower, then 16 rows or columns each
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int segment = half * kSegments / 2 + step * 2;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        load_matrices(a[half][i], a_tile + offset_of(a_row + i * 16, segment + a_segment));
      }
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        load_matrices(b[half][j], b_tile + offset_of(b_row + j * 16, segment + b_segment));
      }
    }
    // upper lower + lower upper + upper upper; lower lower is too small to count.
#pragma unroll
    for (int term = 0; term < 3; ++term) {
      const int a_half = term == 1, b_half = term == 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          multiply(part[i][j], a[a_half][i], b[b_half][j / 2][j % 2 * 2],
                   b[b_half][j / 2][j % 2 * 2 + 1]);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[i][j][e] += part[i][j][e];
    }
  }
}

struct Shape {
  int batch, inputs, height, width;
  int outputs, kernel_height, kernel_width, out_height, out_width;

  __host__ __device__ int input_blocks() const { return (inputs + kChunk - 1) / kChunk; }
  __host__ __device__ int chunks() const { return kernel_height * kernel_width * input_blocks(); }
  __host__ __device__ int out_pixels() const { return out_height * out_width; }
};

// The tile of the product whose rows, output channels, start at `weight`, and whose columns, output
// pixels of all images, start at `first_pixel`. Chunk by chunk, the columns are input pixels
// shifted by the chunk's tap. A thread gets, in sum[i][j], the rows i * 16 and i * 16 + 8 and two
// columns of each from j * 8 on, counted from the row and column that row_of_thread and
// column_of_thread give.
__device__ void multiply_tiles(const __half* weight, const __half* image, unsigned first_pixel,
                               const Shape& shape, float (&sum)[4][4][4]) {
  extern __shared__ float4 memory[];
  char* tiles = reinterpret_cast<char*>(memory);
  const int chunks = shape.chunks(), input_blocks = shape.input_blocks();
  const int row = threadIdx.x / kSegments, segment = threadIdx.x % kSegments;
  constexpr int kRows = kThreads / kSegments;  // that all threads load together
  constexpr int kLoads = kTile / kRows;

  const __half* of_pixel[kLoads];  // the first tap of each pixel that this thread loads
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const unsigned last = unsigned(shape.batch) * shape.out_pixels() - 1;
    const unsigned pixel = min(first_pixel + row + i * kRows, last);  // past the end: any pixel
    const unsigned n = pixel / shape.out_pixels(), in_image = pixel % shape.out_pixels();
    const unsigned y = in_image / shape.out_width, x = in_image % shape.out_width;
    of_pixel[i] = image +
                  ((int64_t(n) * shape.height + y) * shape.width + x) * input_blocks * 2 * kChunk +
                  segment * 8;
  }
  weight += int64_t(row) * chunks * 2 * kChunk + segment * 8;

  int input_block = 0, tap_column = 0;
  int64_t shift = 0;  // from the first tap to the one that is fetched next, in pixels
  const auto fetch = [&](int chunk) {
    char* to = tiles + chunk % kStages * 2 * kTileBytes + offset_of(row, segment);
    const int64_t offset = (shift * input_blocks + input_block) * 2 * kChunk;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int64_t from = (int64_t(i) * kRows * chunks + chunk) * 2 * kChunk;
      char* to_row = to + i * kRows * kSegments * 16;
      __pipeline_memcpy_async(to_row, weight + from, 16);
      __pipeline_memcpy_async(to_row + kTileBytes, of_pixel[i] + offset, 16);
    }
    if (++input_block < input_blocks) return;
    input_block = 0;
    ++shift;
    if (++tap_column < shape.kernel_width) return;
    tap_column = 0;
    shift += shape.width - shape.kernel_width;
  };

  for (int chunk = 0; chunk < kStages - 1; ++chunk) {
    if (chunk < chunks) fetch(chunk);
    __pipeline_commit();
  }
  for (int chunk = 0; chunk < chunks; ++chunk) {
    __pipeline_wait_prior(kStages - 2);  // this thread's part of the chunk is there
    __syncthreads();                     // all parts are, and nobody uses the last chunk any more
    if (chunk + kStages - 1 < chunks) fetch(chunk + kStages - 1);
    __pipeline_commit();
    const char* tile = tiles + chunk % kStages * 2 * kTileBytes;
    multiply_chunk(tile, tile + kTileBytes, sum);
  }
}

__device__ int row_of_thread() {
  return int(threadIdx.x) / 128 * 64 + int(threadIdx.x) % 32 / 4;
}
__device__ int column_of_thread() {
  return int(threadIdx.x) / 32 % 4 * 32 + int(threadIdx.x) % 4 * 2;
}

// Blocks that share pixels follow each other.
__global__ void __launch_bounds__(kThreads, 1)
    conv_kernel(const __half* __restrict__ weight, const float* __restrict__ weight_unscale,
                const __half* __restrict__ image, const float* __restrict__ largest,
                const float* __restrict__ conv_bias, const float* __restrict__ bias,
                float* __restrict__ y, Shape shape) {
  const int output_tiles = (shape.outputs + kTile - 1) / kTile;
  const int first_output = int(blockIdx.x % output_tiles) * kTile;
  const unsigned first_pixel = blockIdx.x / output_tiles * kTile;
  float sum[4][4][4] = {};
  multiply_tiles(weight + int64_t(first_output) * shape.chunks() * 2 * kChunk, image, first_pixel,
                 shape, sum);

  const unsigned out_pixels = shape.out_pixels(), all_pixels = shape.batch * out_pixels;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    // Two neighbouring pixels; if an image has an odd number of them, perhaps of different images.
    const unsigned pixel = first_pixel + column_of_thread() + j * 8;
    if (pixel >= all_pixels) break;
    const unsigned next = min(pixel + 1, all_pixels - 1);
    const unsigned n[2] = {pixel / out_pixels, next / out_pixels};
    const float unscale[2] = {unscale_of(largest[n[0]]), unscale_of(largest[n[1]])};
    float* to[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      to[e] = y + int64_t(n[e]) * shape.outputs * out_pixels + (e == 0 ? pixel : next) % out_pixels;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int output = first_output + row_of_thread() + i * 8;
      if (output >= shape.outputs) break;
      const float* product = &sum[i / 2][j][i % 2 * 2];
      const float by = weight_unscale[output];
      const float before = conv_bias[output], after = bias[output];
      const float2 value = {fmaxf(product[0] * by * unscale[0] + before, 0.0f) + after,
                            fmaxf(product[1] * by * unscale[1] + before, 0.0f) + after};
      const int64_t offset = int64_t(output) * out_pixels;
      if (out_pixels % 2 == 0) {
        *reinterpret_cast<float2*>(to[0] + offset) = value;
      } else {
        to[0][offset] = value.x;
        if (pixel + 1 < all_pixels) to[1][offset] = value.y;
      }
    }
  }
}

// Memory as large as the largest call so far needed.
template <typename T>
struct Buffer {
  T* data = nullptr;
  int64_t capacity = 0;

  bool reserve(int64_t count) {
    if (count <= capacity) return true;
    cudaFree(data);
    data = nullptr;
    capacity = 0;
    if (cudaMalloc(&data, size_t(count) * sizeof(T)) != cudaSuccess) return false;
    capacity = count;
    return true;
  }
};

struct State {
  Buffer<__half> weight, image;
  Buffer<float> weight_unscale;
  Buffer<float> largest;  // of each image
};

}  // namespace

KB_EXPORT int kb_create(const kb_call* call, void** state) {
  const DLTensor* weight = kb_param(call, "conv.weight");
  if (weight == nullptr) return 1;
  if (weight->dtype.code != kDLFloat || weight->dtype.bits != 32) return 1;  // float32 only
  const int outputs = int(weight->shape[0]), inputs = int(weight->shape[1]);
  const int taps = int(weight->shape[2] * weight->shape[3]);
  const int64_t padded_outputs = (outputs + kTile - 1) / kTile * kTile;
  const int64_t depth = int64_t(taps) * ((inputs + kChunk - 1) / kChunk) * kChunk;
  auto* made = new State;
  *state = made;
  if (!made->weight.reserve(padded_outputs * depth * 2)) return 2;
  if (!made->weight_unscale.reserve(padded_outputs)) return 2;

  const auto stream = static_cast<cudaStream_t>(call->stream);
  split_weight_kernel<<<unsigned(padded_outputs), kThreads, 0, stream>>>(
      static_cast<const float*>(kb_data(weight)), outputs, inputs, taps, made->weight.data,
      made->weight_unscale.data);
  cudaFuncSetAttribute(conv_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
  return cudaStreamSynchronize(stream) == cudaSuccess ? 0 : 2;
}

KB_EXPORT void kb_destroy(void* state) {
  auto* made = static_cast<State*>(state);
  cudaFree(made->weight.data);
  cudaFree(made->weight_unscale.data);
  cudaFree(made->image.data);
  cudaFree(made->largest.data);
  delete made;
}

KB_EXPORT int kb_run(const kb_call* call) {
  const DLTensor* kernel = kb_param(call, "conv.weight");
  const float* conv_bias = kb_param_f32(call, "conv.bias");
  const float* bias = kb_param_f32(call, "bias");
  if (kernel == nullptr || conv_bias == nullptr || bias == nullptr) return 1;
  const int64_t* in = call->inputs[0].shape;
  const int64_t* out = call->outputs[0].shape;
  const Shape shape = {int(in[0]),
                       int(in[1]),
                       int(in[2]),
                       int(in[3]),
                       int(out[1]),
                       int(kernel->shape[2]),
                       int(kernel->shape[3]),
                       int(out[2]),
                       int(out[3])};
  // Stride 1, no padding.
  if (shape.out_height != shape.height - shape.kernel_height + 1) return 1;
  if (shape.out_width != shape.width - shape.kernel_width + 1) return 1;
  const float* x = kb_input_f32(call, 0);
  float* y = kb_output_f32(call, 0);
  const auto stream = static_cast<cudaStream_t>(call->stream);

  auto& made = *static_cast<State*>(call->state);
  const int pixels = shape.height * shape.width, input_blocks = shape.input_blocks();
  const int64_t all_pixels = int64_t(shape.batch) * pixels;
  if (!made.image.reserve(all_pixels * input_blocks * 2 * kChunk)) return 2;
  if (!made.largest.reserve(shape.batch)) return 2;

  constexpr int kSplits = 64;
  const auto image_blocks =
      unsigned(int64_t(shape.batch) * ((pixels + kTile - 1) / kTile) * input_blocks);
  cudaMemsetAsync(made.largest.data, 0, size_t(shape.batch) * sizeof(float), stream);
  largest_kernel<<<unsigned(shape.batch * kSplits), kThreads, 0, stream>>>(
      x, int64_t(shape.inputs) * pixels, kSplits, reinterpret_cast<int*>(made.largest.data));
  split_image_kernel<<<image_blocks, kThreads, 0, stream>>>(x, shape.inputs, pixels,
                                                            made.largest.data, made.image.data);

  const int64_t pixel_tiles = (int64_t(shape.batch) * shape.out_pixels() + kTile - 1) / kTile;
  const auto blocks = unsigned(pixel_tiles * ((shape.outputs + kTile - 1) / kTile));
  conv_kernel<<<blocks, kThreads, kSharedBytes, stream>>>(
      made.weight.data, made.weight_unscale.data, made.image.data, made.largest.data, conv_bias,
      bias, y, shape);
  return cudaGetLastError() == cudaSuccess ? 0 : 2;
}

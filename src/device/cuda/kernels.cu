#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <type_traits>

#include "device/cuda/kernels.h"
#include "device/random.h"

namespace kb::cuda {
namespace {

constexpr unsigned kThreads = 256;

unsigned blocks_for(std::uint64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

__device__ std::uint64_t thread_index() {
  return std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
}

__device__ std::uint64_t nanoseconds() {
#ifdef __HIP_PLATFORM_AMD__
  return 10 * static_cast<std::uint64_t>(wall_clock64());  // of 100 MHz, on CDNA
#else
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
#endif
}

// The same word, however the compiler would like to keep it.
__device__ std::uint64_t seen(const std::uint64_t* word) {
  return *static_cast<const volatile std::uint64_t*>(word);
}
__device__ void tell(std::uint64_t* word, std::uint64_t value) {
  *static_cast<volatile std::uint64_t*>(word) = value;
  __threadfence_system();
}

__global__ void watch(Watch words, std::uint64_t value, std::uint64_t limit_ns) {
  const std::uint64_t start = nanoseconds();
  tell(words.started, value);
  std::uint64_t last = nanoseconds(), longest = 0;
  do {
    // A look at the host's word takes a microsecond or two.
    const bool over = seen(words.stop) >= value;
    const std::uint64_t now = nanoseconds();
    longest = max(longest, now - last);
    last = now;
    if (over) break;
  } while (last - start < limit_ns);
  tell(words.longest_gap, longest);
  tell(words.ended, value);
}

__global__ void closing(std::uint64_t* word, const std::uint64_t* release, std::uint64_t value,
                        std::uint64_t limit_ns) {
  tell(word, value);
  const std::uint64_t start = nanoseconds();
  while (seen(release) < value && nanoseconds() - start < limit_ns) {
  }
}

__global__ void delayed_signal(std::uint64_t cycles, volatile std::uint64_t* word,
                               std::uint64_t value) {
  const auto start = static_cast<std::uint64_t>(clock64());
  while (static_cast<std::uint64_t>(clock64()) - start < cycles) {
  }
  *word = value;
  __threadfence_system();
}

/// `vectors` vectors of 16 bytes, kCopies a thread, and by the first block the bytes behind them.
constexpr unsigned kCopies = 4;

unsigned copy_blocks(std::uint64_t vectors) {
  const std::uint64_t of_a_block = std::uint64_t{kThreads} * kCopies;
  return static_cast<unsigned>(std::max<std::uint64_t>(1, (vectors + of_a_block - 1) / of_a_block));
}

__device__ std::uint64_t first_vector() {
  return std::uint64_t{blockIdx.x} * kThreads * kCopies + threadIdx.x;
}

__global__ void copy(unsigned char* to, const unsigned char* from, std::uint64_t vectors,
                     std::uint64_t bytes) {
  const auto* const source = reinterpret_cast<const uint4*>(from);
  auto* const target = reinterpret_cast<uint4*>(to);
  const std::uint64_t first = first_vector();
  if (first + (kCopies - 1) * kThreads < vectors) {
    uint4 part[kCopies];
#pragma unroll
    for (unsigned k = 0; k < kCopies; ++k) part[k] = __ldcs(source + first + k * kThreads);
#pragma unroll
    for (unsigned k = 0; k < kCopies; ++k) __stcs(target + first + k * kThreads, part[k]);
  } else {
    for (std::uint64_t i = first; i < vectors; i += kThreads) target[i] = source[i];
  }
  if (blockIdx.x == 0)
    for (std::uint64_t i = 16 * vectors + threadIdx.x; i < bytes; i += kThreads) to[i] = from[i];
}

__global__ void fill(unsigned char* memory, std::uint64_t vectors, std::uint64_t bytes,
                     unsigned char byte) {
  const std::uint32_t word = 0x01010101U * byte;
  const uint4 part = make_uint4(word, word, word, word);
  auto* const target = reinterpret_cast<uint4*>(memory);
#pragma unroll
  for (unsigned k = 0; k < kCopies; ++k) {
    const std::uint64_t i = first_vector() + k * kThreads;
    if (i < vectors) __stcs(target + i, part);
  }
  if (blockIdx.x == 0)
    for (std::uint64_t i = 16 * vectors + threadIdx.x; i < bytes; i += kThreads) memory[i] = byte;
}

__global__ void guard(unsigned char* band, std::uint64_t bytes, std::uint64_t secret) {
  const std::uint64_t i = thread_index();
  if (i < bytes) band[i] = static_cast<unsigned char>(random_bits(secret, i / 8) >> (8 * (i % 8)));
}

__global__ void junk(uint4* memory, std::uint64_t vectors, std::uint32_t round) {
  const std::uint64_t i = thread_index();
  if (i < vectors) {
    const auto low = static_cast<std::uint32_t>(i);
    memory[i] = make_uint4(low, low ^ round, round, low + round);
  }
}

// ---- stress -------------------------------------------------------------------------------------

/// What float64, float32 and the two 16-bit types are computed in, as on the CPU.
template <class T>
using Arithmetic = std::conditional_t<std::is_same_v<T, double>, double, float>;

__device__ double widen(double x) {
  return x;
}
__device__ float widen(float x) {
  return x;
}
__device__ float widen(__half x) {
  return __half2float(x);
}
__device__ float widen(__nv_bfloat16 x) {
  return __bfloat162float(x);
}

template <class T>
__device__ T narrow(Arithmetic<T> x) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(x);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    return __float2bfloat16_rn(x);
  } else {
    return x;
  }
}

struct StressArguments {
  std::uint64_t key;
  std::uint64_t place;  ///< of the one outlier that is always there
  StressFactors factors;
};

template <Stress kKind, class T>
__device__ T transform(T element, std::uint64_t i, const StressArguments& arguments) {
  using A = Arithmetic<T>;
  const A x = widen(element);
  if constexpr (kKind == Stress::scaled_up) {
    return narrow<T>(x * A{16});
  } else if constexpr (kKind == Stress::scaled_down) {
    return narrow<T>(x * (A{1} / A{64}));  // a power of two: the same as the division
  } else if constexpr (kKind == Stress::sign_flipped) {
    return narrow<T>((random_bits(arguments.key, i) >> 63) != 0 ? -x : x);
  } else if constexpr (kKind == Stress::heavy_tails) {
    const auto k = static_cast<unsigned>(random_bits(arguments.key, i) >> (64 - kStressFactorBits));
    if constexpr (std::is_same_v<A, double>) {
      return narrow<T>(x * __ldg(arguments.factors.wide + k));
    } else {
      return narrow<T>(x * __ldg(arguments.factors.narrow + k));
    }
  } else if constexpr (kKind == Stress::outliers) {
    const std::uint64_t u = random_bits(arguments.key, i);
    if ((u >> 52) != 0 && i != arguments.place) return element;
    return narrow<T>(x * ((u & 1) != 0 ? A{100} : A{-100}));
  } else {
    static_assert(kKind == Stress::small_integers);
    const auto bits = static_cast<std::uint32_t>(random_bits(arguments.key, i) >> 32);
    return narrow<T>(static_cast<A>(static_cast<int>(random_below(bits, 9)) - 4));
  }
}

template <class T>
struct alignas(16) Vector {
  static constexpr int kElements = 16 / sizeof(T);
  T element[kElements];
};

/// One thread for each of the `vectors` vectors at the start, then one for each element left.
template <Stress kKind, class T>
__global__ void __launch_bounds__(kThreads)
    stress(T* data, std::uint64_t vectors, std::uint64_t elements, StressArguments arguments) {
  constexpr int kElements = Vector<T>::kElements;
  const std::uint64_t thread = thread_index();
  if (thread < vectors) {
    Vector<T>& place = reinterpret_cast<Vector<T>*>(data)[thread];
    Vector<T> x = place;
#pragma unroll
    for (int j = 0; j < kElements; ++j)
      x.element[j] = transform<kKind>(x.element[j], thread * kElements + j, arguments);
    place = x;
    return;
  }
  const std::uint64_t i = vectors * kElements + (thread - vectors);
  if (i < elements) data[i] = transform<kKind>(data[i], i, arguments);
}

template <Stress kKind, class T>
cudaError_t launch(std::byte* data, std::uint64_t elements, const StressArguments& arguments,
                   cudaStream_t stream) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
  const std::uint64_t vectors = aligned ? elements / Vector<T>::kElements : 0;
  const std::uint64_t threads = vectors + (elements - vectors * Vector<T>::kElements);
  stress<kKind, T><<<blocks_for(threads), kThreads, 0, stream>>>(reinterpret_cast<T*>(data),
                                                                 vectors, elements, arguments);
  return cudaGetLastError();
}

template <Stress kKind>
cudaError_t launch_for(DType dtype, std::byte* data, std::uint64_t elements,
                       const StressArguments& arguments, cudaStream_t stream) {
  switch (dtype) {
    case DType::float64: return launch<kKind, double>(data, elements, arguments, stream);
    case DType::float32: return launch<kKind, float>(data, elements, arguments, stream);
    case DType::float16: return launch<kKind, __half>(data, elements, arguments, stream);
    case DType::bfloat16: return launch<kKind, __nv_bfloat16>(data, elements, arguments, stream);
    default: return cudaSuccess;
  }
}

/// Flips the sign bits of `count` elements drawn with replacement. An element drawn twice is itself
/// again, as on the CPU.
__global__ void plant(unsigned char* data, std::uint64_t elements, std::uint64_t size,
                      std::uint64_t count, std::uint64_t key) {
  const std::uint64_t i = thread_index();
  if (i >= count) return;
  const auto last_byte =
      reinterpret_cast<std::uintptr_t>(data) + (random_bits(key, i) % elements + 1) * size - 1;
  atomicXor(reinterpret_cast<unsigned*>(last_byte & ~std::uintptr_t{3}),
            0x80U << (8 * (last_byte & 3)));
}

std::uint64_t outlier_place(std::uint64_t key, std::uint64_t elements) {
  const double fraction = static_cast<double>(random_bits(key, elements) >> 11) * 0x1p-53;
  return std::min(static_cast<std::uint64_t>(fraction * static_cast<double>(elements)),
                  elements - 1);
}

std::uint64_t size_of_floating(DType dtype) {
  if (dtype == DType::float64) return 8;
  return dtype == DType::float32 ? 4 : 2;
}

}  // namespace

cudaError_t launch_watch(const Watch& words, std::uint64_t value, std::uint64_t limit_ns,
                         cudaStream_t stream) {
  watch<<<1, 1, 0, stream>>>(words, value, limit_ns);
  return cudaGetLastError();
}

cudaError_t launch_closing(std::uint64_t* word, const std::uint64_t* release, std::uint64_t value,
                           std::uint64_t limit_ns, cudaStream_t stream) {
  closing<<<1, 1, 0, stream>>>(word, release, value, limit_ns);
  return cudaGetLastError();
}

cudaError_t launch_delayed_signal(std::uint64_t cycles, std::uint64_t* word, std::uint64_t value,
                                  cudaStream_t stream) {
  delayed_signal<<<1, 1, 0, stream>>>(cycles, word, value);
  return cudaGetLastError();
}

cudaError_t launch_copy(std::byte* to, const std::byte* from, std::size_t bytes,
                        cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  const bool aligned =
      (reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % 16 == 0;
  const std::uint64_t vectors = aligned ? bytes / 16 : 0;
  copy<<<copy_blocks(vectors), kThreads, 0, stream>>>(reinterpret_cast<unsigned char*>(to),
                                                      reinterpret_cast<const unsigned char*>(from),
                                                      vectors, bytes);
  return cudaGetLastError();
}

cudaError_t launch_fill(std::byte* memory, std::size_t bytes, unsigned char byte,
                        cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  const bool aligned = reinterpret_cast<std::uintptr_t>(memory) % 16 == 0;
  const std::uint64_t vectors = aligned ? bytes / 16 : 0;
  fill<<<copy_blocks(vectors), kThreads, 0, stream>>>(reinterpret_cast<unsigned char*>(memory),
                                                      vectors, bytes, byte);
  return cudaGetLastError();
}

cudaError_t launch_guard(std::byte* band, std::size_t bytes, std::uint64_t secret,
                         cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  guard<<<blocks_for(bytes), kThreads, 0, stream>>>(reinterpret_cast<unsigned char*>(band), bytes,
                                                    secret);
  return cudaGetLastError();
}

cudaError_t launch_junk(std::byte* memory, std::size_t bytes, std::uint32_t round,
                        cudaStream_t stream) {
  if (bytes < sizeof(uint4)) return cudaSuccess;
  junk<<<blocks_for(bytes / sizeof(uint4)), kThreads, 0, stream>>>(reinterpret_cast<uint4*>(memory),
                                                                   bytes / sizeof(uint4), round);
  return cudaGetLastError();
}

cudaError_t launch_stress(Stress kind, std::byte* data, std::uint64_t elements, DType dtype,
                          std::uint64_t key, const StressFactors& factors, cudaStream_t stream) {
  if (elements == 0) return cudaSuccess;
  const StressArguments arguments{key, outlier_place(key, elements), factors};
  switch (kind) {
    case Stress::scaled_up:
      return launch_for<Stress::scaled_up>(dtype, data, elements, arguments, stream);
    case Stress::scaled_down:
      return launch_for<Stress::scaled_down>(dtype, data, elements, arguments, stream);
    case Stress::sign_flipped:
      return launch_for<Stress::sign_flipped>(dtype, data, elements, arguments, stream);
    case Stress::heavy_tails:
      return launch_for<Stress::heavy_tails>(dtype, data, elements, arguments, stream);
    case Stress::outliers:
      return launch_for<Stress::outliers>(dtype, data, elements, arguments, stream);
    case Stress::small_integers:
      return launch_for<Stress::small_integers>(dtype, data, elements, arguments, stream);
    case Stress::planted: {
      const std::uint64_t count = std::min(elements, elements / 65536 + 3);
      plant<<<blocks_for(count), kThreads, 0, stream>>>(
          reinterpret_cast<unsigned char*>(data), elements, size_of_floating(dtype), count, key);
      return cudaGetLastError();
    }
  }
  return cudaErrorInvalidValue;
}

}  // namespace kb::cuda

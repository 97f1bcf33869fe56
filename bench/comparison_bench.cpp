// How close the judge's bulk memory work comes to memory speed: the comparison pass beside memcpy.
//
// Each figure is bytes over wall time, in SI units (G = 10^9). `read` counts the bytes read: one
// side for memcpy and copy, both sides for compare and equal. `traffic` counts bytes written too.
// The argument is the size of a tensor in MiB of its own dtype (of the candidate's for a comparison
// against float64).
//
//   build/release/bench/comparison_bench --benchmark_repetitions=5
//
// All threads is one per available CPU. On a shared machine take the best of several repetitions.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <stdexcept>

#include "device/cpu/compare.h"
#include "device/cpu/half.h"
#include "device/cpu/memory.h"
#include "device/cpu/stress.h"
#include "device/cpu/thread_pool.h"
#include "device/random.h"
#include "device/tensor.h"

namespace {

using kb::DType;
using kb::cpu::ThreadPool;

/// Pages of its own, huge where the system has them; as a worker's shared slots are.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : bytes_(bytes) {
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    madvise(memory_, bytes, MADV_HUGEPAGE);
    std::memset(memory_, 1, bytes);
  }
  ~Pages() { munmap(memory_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(memory_); }
  std::span<std::byte> bytes() const { return {data(), bytes_}; }

 private:
  void* memory_;
  std::size_t bytes_;
};

std::size_t size_of_run(const benchmark::State& state) {
  return static_cast<std::size_t>(state.range(0)) << 20;
}

void report(benchmark::State& state, double read, double written) {
  auto rate = [&](double bytes) {
    return benchmark::Counter(bytes, benchmark::Counter::kIsIterationInvariantRate,
                              benchmark::Counter::kIs1000);
  };
  state.counters["read"] = rate(read);
  if (written > 0) state.counters["traffic"] = rate(read + written);
}

void store(std::byte* at, DType dtype, double x) {
  auto put = [at](auto value) { std::memcpy(at, &value, sizeof value); };
  switch (dtype) {
    case DType::float64: return put(x);
    case DType::float32: return put(static_cast<float>(x));
    case DType::float16: return put(kb::cpu::to_float16(static_cast<float>(x)));
    case DType::bfloat16: return put(kb::cpu::to_bfloat16(static_cast<float>(x)));
    case DType::int64: return put(static_cast<std::int64_t>(x * 1000));
    default: throw std::logic_error("store: a dtype without a benchmark");
  }
}

void memcpy_one_thread(benchmark::State& state) {
  std::size_t bytes = size_of_run(state);
  Pages from(bytes), to(bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  report(state, static_cast<double>(bytes), static_cast<double>(bytes));
}

/// One memcpy for each thread.
void memcpy_all_threads(benchmark::State& state) {
  std::size_t bytes = size_of_run(state);
  Pages from(bytes), to(bytes);
  ThreadPool pool;
  std::size_t share = bytes / pool.size();
  for (auto _ : state) {
    pool.parallel_for(pool.size(), [&](std::size_t i, unsigned) {
      std::memcpy(to.data() + i * share, from.data() + i * share, share);
    });
    benchmark::ClobberMemory();
  }
  report(state, static_cast<double>(share * pool.size()), static_cast<double>(share * pool.size()));
}

void copy(benchmark::State& state) {
  std::size_t bytes = size_of_run(state);
  Pages from(bytes), to(bytes);
  ThreadPool pool;
  for (auto _ : state) kb::cpu::copy(to.bytes(), from.bytes(), pool);
  report(state, static_cast<double>(bytes), static_cast<double>(bytes));
}

void equal(benchmark::State& state) {
  std::size_t bytes = size_of_run(state);
  Pages a(bytes), b(bytes);
  ThreadPool pool;
  for (auto _ : state) {
    if (!kb::cpu::equal(a.bytes(), b.bytes(), pool)) state.SkipWithError("not equal");
  }
  report(state, 2 * static_cast<double>(bytes), 0);
}

void poison(benchmark::State& state) {
  std::size_t bytes = size_of_run(state);
  Pages memory(bytes);
  ThreadPool pool;
  for (auto _ : state) kb::cpu::poison(memory.bytes(), pool);
  report(state, 0, static_cast<double>(bytes));
}

void flush(benchmark::State& state) {
  ThreadPool pool;
  kb::cpu::CacheFlusher flusher(kb::cpu::last_level_cache_bytes(), pool);
  for (auto _ : state) flusher.flush();
  report(state, 0, static_cast<double>(flusher.bytes()));
  state.counters["MiB"] = static_cast<double>(flusher.bytes() >> 20);
}

enum class Candidate : std::uint8_t {
  good,      ///< every element off by a rounding error, as a correct kernel's output is
  unwritten  ///< all poison
};

void compare(benchmark::State& state, DType dtype, DType reference_dtype, Candidate kind) {
  std::size_t n = size_of_run(state) / kb::size_of(dtype);
  std::size_t size = kb::size_of(dtype), reference_size = kb::size_of(reference_dtype);
  Pages c(n * size), r(n * reference_size);
  ThreadPool pool;
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t bits = kb::random_bits(1, i);
    double x = static_cast<double>(bits >> 40) * 0x1p-24 + 0.01;
    double noise = kb::is_floating(dtype) ? 1e-7 * static_cast<double>(bits & 0xff) / 256 : 0;
    store(r.data() + i * reference_size, reference_dtype, x);
    store(c.data() + i * size, dtype, x * (1 + noise));
  }
  if (kind == Candidate::unwritten) kb::cpu::poison(c.bytes(), pool);
  kb::TensorSpec spec{dtype, {static_cast<std::int64_t>(n)}};
  kb::Tolerance tolerance{1e-2, 1e-2, 1e-2};
  std::uint64_t order = 0;
  for (auto _ : state) {
    kb::Comparison result =
        kb::cpu::compare(kb::cpu::MemorySource(c.data()), spec, kb::cpu::MemorySource(r.data()),
                         reference_dtype, tolerance, ++order, pool);
    if (result.within_tolerance != (kind == Candidate::good)) state.SkipWithError("wrong verdict");
  }
  report(state, static_cast<double>(n * (size + reference_size)), 0);
}

void stress(benchmark::State& state, kb::Stress kind) {
  std::size_t bytes = size_of_run(state);
  Pages memory(bytes);
  ThreadPool pool;
  for (auto _ : state) {
    kb::cpu::apply_stress(kind, memory.bytes(), DType::float32, 1, pool);
  }
  report(state, static_cast<double>(bytes), static_cast<double>(bytes));
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(1)->Arg(8)->Arg(64)->Arg(512)->UseRealTime()->Unit(benchmark::kMillisecond);
}

void one_size(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(64)->UseRealTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK(memcpy_one_thread)->Apply(sizes);
BENCHMARK(memcpy_all_threads)->Apply(sizes);
BENCHMARK_CAPTURE(compare, float32, DType::float32, DType::float32, Candidate::good)->Apply(sizes);
BENCHMARK_CAPTURE(compare, float16, DType::float16, DType::float16, Candidate::good)->Apply(sizes);
BENCHMARK_CAPTURE(compare, bfloat16, DType::bfloat16, DType::bfloat16, Candidate::good)
    ->Apply(sizes);
BENCHMARK_CAPTURE(compare, float32_to_float64, DType::float32, DType::float64, Candidate::good)
    ->Apply(sizes);
BENCHMARK_CAPTURE(compare, int64, DType::int64, DType::int64, Candidate::good)->Apply(sizes);
BENCHMARK_CAPTURE(compare, float32_unwritten, DType::float32, DType::float32, Candidate::unwritten)
    ->Apply(sizes);
BENCHMARK(copy)->Apply(sizes);
BENCHMARK(equal)->Apply(sizes);
BENCHMARK(poison)->Apply(sizes);
BENCHMARK(flush)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(stress, heavy_tails, kb::Stress::heavy_tails)->Apply(one_size);
BENCHMARK_CAPTURE(stress, outliers, kb::Stress::outliers)->Apply(one_size);
BENCHMARK_CAPTURE(stress, small_integers, kb::Stress::small_integers)->Apply(one_size);

}  // namespace

BENCHMARK_MAIN();

#include "device/cpu/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "device/cpu/compare_run.h"
#include "device/cpu/half.h"
#include "device/cpu/memory.h"
#include "device/random.h"

namespace kb::cpu {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr DType kFloats[] = {DType::float64, DType::float32, DType::float16, DType::bfloat16};
constexpr DType kIntegers[] = {DType::int64, DType::int32, DType::int16,
                               DType::int8,  DType::uint8, DType::boolean};

/// A tensor's bytes, read and written as doubles.
class Values {
 public:
  Values(DType dtype, std::size_t n) : dtype_(dtype), bytes_(n * size_of(dtype)) {}

  std::size_t size() const { return bytes_.size() / size_of(dtype_); }
  const std::byte* data() const { return bytes_.data(); }
  std::span<std::byte> bytes() { return bytes_; }

  void set(std::size_t i, double x) {
    switch (dtype_) {
      case DType::float64: return store(i, x);
      case DType::float32: return store(i, static_cast<float>(x));
      case DType::float16: return store(i, to_float16(static_cast<float>(x)));
      case DType::bfloat16: return store(i, to_bfloat16(static_cast<float>(x)));
      case DType::int64: return store(i, static_cast<std::int64_t>(x));
      case DType::int32: return store(i, static_cast<std::int32_t>(x));
      case DType::int16: return store(i, static_cast<std::int16_t>(x));
      case DType::int8: return store(i, static_cast<std::int8_t>(x));
      case DType::uint8:
      case DType::boolean: return store(i, static_cast<std::uint8_t>(x));
    }
  }

  double get(std::size_t i) const {
    switch (dtype_) {
      case DType::float64: return at<double>(i);
      case DType::float32: return static_cast<double>(at<float>(i));
      case DType::float16: return static_cast<double>(to_float(at<Float16>(i)));
      case DType::bfloat16: return static_cast<double>(to_float(at<BFloat16>(i)));
      case DType::int64: return static_cast<double>(at<std::int64_t>(i));
      case DType::int32: return at<std::int32_t>(i);
      case DType::int16: return at<std::int16_t>(i);
      case DType::int8: return at<std::int8_t>(i);
      case DType::uint8:
      case DType::boolean: return at<std::uint8_t>(i);
    }
    return 0;
  }

  template <class T>
  T at(std::size_t i) const {
    T x;
    std::memcpy(&x, bytes_.data() + i * sizeof x, sizeof x);
    return x;
  }

 private:
  template <class T>
  void store(std::size_t i, T x) {
    std::memcpy(bytes_.data() + i * sizeof x, &x, sizeof x);
  }

  DType dtype_;
  std::vector<std::byte> bytes_;
};

/// torch.isclose's definition with equal_nan=True, in float64.
bool is_close(double c, double r, const Tolerance& t) {
  if (c == r || (std::isnan(c) && std::isnan(r))) return true;
  double gap = std::fabs(c - r);
  return std::isfinite(gap) && gap <= t.atol + t.rtol * std::fabs(r);
}

/// The header's definition, an element at a time.
Comparison oracle(const Values& c, DType dtype, const Values& r, const Tolerance& t) {
  Comparison result;
  result.elements = static_cast<std::int64_t>(c.size());
  long double error = 0, reference = 0;
  for (std::size_t i = 0; i < c.size(); ++i) {
    double x = c.get(i), y = r.get(i);
    bool close = is_floating(dtype)
                     ? is_close(x, y, t)
                     : std::memcmp(c.data() + i * size_of(dtype), r.data() + i * size_of(dtype),
                                   size_of(dtype)) == 0;
    bool finite = std::isfinite(x) && std::isfinite(y);
    if (!close) {
      if (result.violations++ == 0) {
        result.first_violation = static_cast<std::int64_t>(i);
        result.candidate_at_first = x;
        result.reference_at_first = y;
      }
      if (!finite) ++result.nonfinite_mismatches;
    }
    if (!finite) continue;
    result.max_abs_error = std::max(result.max_abs_error, std::fabs(x - y));
    if (y != 0) {
      result.max_rel_error = std::max(result.max_rel_error, std::fabs(x - y) / std::fabs(y));
    }
    long double d = static_cast<long double>(x) - static_cast<long double>(y);
    error += d * d;
    reference += static_cast<long double>(y) * static_cast<long double>(y);
  }
  result.error_norm = static_cast<double>(std::sqrt(error));
  result.reference_norm = static_cast<double>(std::sqrt(reference));
  result.within_tolerance =
      result.violations == 0 &&
      (std::isinf(t.norm_rtol) || std::sqrt(error) <= t.norm_rtol * std::sqrt(reference));
  return result;
}

void expect_same_value(double a, double b, const char* what) {
  if (std::isnan(a) && std::isnan(b)) return;
  EXPECT_EQ(a, b) << what;
}

void expect_near(double a, double b, const char* what) {
  if (a == b) return;
  EXPECT_LE(std::fabs(a - b), 1e-12 * std::fabs(b)) << what << " " << a << " " << b;
}

void expect_agrees(const Comparison& got, const Comparison& expected) {
  EXPECT_EQ(got.elements, expected.elements);
  EXPECT_EQ(got.violations, expected.violations);
  EXPECT_EQ(got.first_violation, expected.first_violation);
  expect_same_value(got.candidate_at_first, expected.candidate_at_first, "candidate_at_first");
  expect_same_value(got.reference_at_first, expected.reference_at_first, "reference_at_first");
  EXPECT_EQ(got.nonfinite_mismatches, expected.nonfinite_mismatches);
  EXPECT_EQ(got.max_abs_error, expected.max_abs_error);
  EXPECT_EQ(got.max_rel_error, expected.max_rel_error);
  expect_near(got.error_norm, expected.error_norm, "error_norm");
  expect_near(got.reference_norm, expected.reference_norm, "reference_norm");
  EXPECT_TRUE(got.readable);
  EXPECT_EQ(got.within_tolerance, expected.within_tolerance);
}

Comparison run(const Values& c, DType dtype, const Values& r, DType reference_dtype,
               const Tolerance& t, ThreadPool& pool, std::uint64_t order_seed = 1) {
  TensorSpec spec{dtype, {static_cast<std::int64_t>(c.size())}};
  return compare(MemorySource(c.data()), spec, MemorySource(r.data()), reference_dtype, t,
                 order_seed, pool);
}

/// A stream of random choices.
class Draws {
 public:
  explicit Draws(std::uint64_t key) : key_(key) {}
  std::uint64_t bits() { return random_bits(key_, next_++); }
  std::uint32_t below(std::uint32_t bound) {
    return random_below(static_cast<std::uint32_t>(bits() >> 32), bound);
  }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

 private:
  std::uint64_t key_;
  std::uint64_t next_ = 0;
};

/// A value that a floating tensor may well not like.
double special(Draws& draws, DType dtype) {
  bool wide = dtype == DType::float64;
  const double values[] = {kNaN,
                           kInf,
                           -kInf,
                           0.0,
                           -0.0,
                           wide ? 1.7e308 : 3.4e38,
                           wide ? -1.7e308 : -3.4e38,
                           wide ? 5e-324 : 1e-45,
                           wide ? 1e-200 : 6e-8,
                           65504,
                           -65504,
                           1};
  return values[draws.below(std::size(values))];
}

/// Fills a pair of tensors: agreeing ones with a few surprises, at a rate drawn anew for each.
void fill(Values& c, Values& r, DType dtype, DType reference_dtype, Draws& draws) {
  double scale = std::exp2(static_cast<double>(draws.below(20)) - 10);
  double noise = draws.below(3) == 0 ? 0 : std::exp2(-5 - static_cast<double>(draws.below(25)));
  std::uint32_t rarity = draws.below(4) == 0 ? 0 : 4U << (2 * draws.below(8));
  for (std::size_t i = 0; i < c.size(); ++i) {
    if (is_floating(dtype)) {
      double x = (draws.unit() * 2 - 1) * scale;
      r.set(i, x);
      c.set(i, r.get(i) * (1 + noise * (draws.unit() * 2 - 1)));
      if (rarity == 0) continue;
      if (draws.below(rarity) == 0) c.set(i, special(draws, dtype));
      if (draws.below(rarity) == 0) r.set(i, special(draws, reference_dtype));
      if (draws.below(rarity) == 0) c.set(i, r.get(i));
    } else {
      double x = dtype == DType::boolean ? draws.below(2) : draws.below(100);
      r.set(i, x);
      c.set(i, x);
      if (rarity != 0 && draws.below(rarity) == 0) c.set(i, draws.below(100));
    }
  }
}

TEST(Compare, AgreesWithTheDefinitionOnRandomTensors) {
  ThreadPool pool(3);
  Draws draws(2024);
  struct Pair {
    DType candidate, reference;
  };
  std::vector<Pair> pairs;
  for (DType c : kFloats) {
    for (DType r : kFloats) pairs.push_back({c, r});
  }
  for (DType dtype : kIntegers) pairs.push_back({dtype, dtype});
  const Tolerance tolerances[] = {{},        {1e-2, 1e-2, 1e-2}, {1e-3, 0, kInf}, {0, 1e-3, 1e-3},
                                  {0, 0, 0}, {kInf, 0, kInf}};
  for (const Pair& pair : pairs) {
    for (int round = 0; round < 60; ++round) {
      const std::size_t sizes[] = {
          0, 1, 2, 7, 8, 9, 2047, 2048, 2049, draws.below(5000), draws.below(300'000)};
      std::size_t n = sizes[draws.below(round % 6 == 0 ? 11 : 10)];
      Values c(pair.candidate, n), r(pair.reference, n);
      fill(c, r, pair.candidate, pair.reference, draws);
      const Tolerance& t = tolerances[draws.below(std::size(tolerances))];
      SCOPED_TRACE(std::string(name_of(pair.candidate)) + " against " +
                   std::string(name_of(pair.reference)) + ", round " + std::to_string(round) +
                   ", n " + std::to_string(n) + ", atol " + std::to_string(t.atol) + ", rtol " +
                   std::to_string(t.rtol));
      expect_agrees(run(c, pair.candidate, r, pair.reference, t, pool, draws.bits()),
                    oracle(c, pair.candidate, r, t));
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(Compare, TreatsEverySpecialPairAsTorchDoes) {
  ThreadPool pool(1);
  const double values[] = {kNaN,  kInf,   -kInf,  0,      -0.0,  1,       1.00005,  1e-5,
                           -1e-5, 5e-324, 1e-310, 1e-160, 1e160, 1.7e308, -1.7e308, 1e30};
  const Tolerance tolerances[] = {{}, {0, 0, 0}, {1e-4, 0, 1}, {0, 1e-4, kInf}, {1e300, 2, kInf}};
  for (DType dtype : kFloats) {
    for (double x : values) {
      for (double y : values) {
        for (const Tolerance& t : tolerances) {
          Values c(dtype, 1), r(dtype, 1);
          c.set(0, x);
          r.set(0, y);
          SCOPED_TRACE(std::string(name_of(dtype)) + " " + std::to_string(x) + " against " +
                       std::to_string(y));
          expect_agrees(run(c, dtype, r, dtype, t, pool), oracle(c, dtype, r, t));
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

TEST(Compare, VectorUnitsGiveTheSameBits) {
  Draws draws(5);
  for (DType dtype : kFloats) {
    for (int round = 0; round < 50; ++round) {
      std::size_t n = 1 + draws.below(kRunElements);
      Values c(dtype, n), r(dtype, n);
      fill(c, r, dtype, dtype, draws);
      std::vector<RunSummary> screens, inspections;
      for (VectorUnit unit : {VectorUnit::baseline, VectorUnit::avx2, VectorUnit::avx512}) {
        if (unit > widest_vector_unit()) continue;
        RunKernels kernels = run_kernels(dtype, dtype, unit);
        screens.push_back(kernels.screen(c.data(), r.data(), n, {1e-4, 1e-4}, 1e-5));
        inspections.push_back(kernels.inspect(c.data(), r.data(), n, {1e-4, 1e-4}));
      }
      for (std::size_t i = 0; i < screens.size(); ++i) {
        ASSERT_EQ(screens[i].look_again, screens[0].look_again);
        ASSERT_EQ(inspections[i].violations, inspections[0].violations);
        ASSERT_EQ(inspections[i].max_rel_error, inspections[0].max_rel_error);
        ASSERT_EQ(inspections[i].error_squares, inspections[0].error_squares);
        ASSERT_EQ(inspections[i].reference_squares, inspections[0].reference_squares);
        if (screens[i].look_again) continue;
        ASSERT_EQ(screens[i].error_squares, inspections[0].error_squares);
        ASSERT_EQ(screens[i].reference_squares, inspections[0].reference_squares);
        ASSERT_EQ(screens[i].max_abs_error, inspections[0].max_abs_error);
        ASSERT_EQ(inspections[i].violations, 0);
      }
    }
  }
}

TEST(Compare, DoesNotDependOnOrderOrThreads) {
  constexpr std::size_t kElements = 1'000'003;
  Draws draws(3);
  Values c(DType::float32, kElements), r(DType::float32, kElements);
  for (std::size_t i = 0; i < kElements; ++i) {
    r.set(i, draws.unit());
    c.set(i, r.get(i) + 1e-6 * draws.unit());
  }
  c.set(900'000, 3);
  c.set(500'001, kNaN);
  ThreadPool one(1);
  Comparison first = run(c, DType::float32, r, DType::float32, {}, one, 0);
  EXPECT_EQ(first.first_violation, 500'001);
  EXPECT_EQ(first.violations, 2);
  EXPECT_EQ(first.nonfinite_mismatches, 1);
  for (unsigned threads : {1U, 2U, 5U}) {
    ThreadPool pool(threads);
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      Comparison again = run(c, DType::float32, r, DType::float32, {}, pool, seed);
      EXPECT_EQ(again.first_violation, first.first_violation);
      EXPECT_EQ(again.max_rel_error, first.max_rel_error);
      EXPECT_EQ(again.error_norm, first.error_norm);  // to the last bit
      EXPECT_EQ(again.reference_norm, first.reference_norm);
    }
  }
}

TEST(Compare, FindsOneWrongElementAnywhere) {
  ThreadPool pool(2);
  for (DType dtype : kFloats) {
    constexpr std::size_t kElements = 140'001;
    Values c(dtype, kElements), r(dtype, kElements);
    for (std::size_t i = 0; i < kElements; ++i) {
      r.set(i, 1);
      c.set(i, 1);
    }
    for (std::size_t at = 0; at < kElements; at += at < 100 || at > kElements - 100 ? 1 : 997) {
      c.set(at, 1.25);
      Comparison result = run(c, dtype, r, dtype, {1e-2, 1e-2, kInf}, pool, at);
      ASSERT_EQ(result.violations, 1);
      ASSERT_EQ(result.first_violation, static_cast<std::int64_t>(at));
      ASSERT_EQ(result.candidate_at_first, 1.25);
      ASSERT_EQ(result.max_abs_error, 0.25);
      ASSERT_FALSE(result.within_tolerance);
      c.set(at, 1);
    }
  }
}

TEST(Compare, ZerosDoNotPassForSmallOutputs) {
  // A softmax over 393,216 values lies wholly under atol (threats C1).
  ThreadPool pool(2);
  constexpr std::size_t kElements = 393'216;
  Values c(DType::float32, kElements), r(DType::float32, kElements);
  for (std::size_t i = 0; i < kElements; ++i) r.set(i, 1.0 / kElements);
  Comparison result = run(c, DType::float32, r, DType::float32, {}, pool);
  EXPECT_EQ(result.violations, 0);
  EXPECT_EQ(result.relative_norm_error(), 1);
  EXPECT_FALSE(result.within_tolerance);
  EXPECT_TRUE(run(c, DType::float32, r, DType::float32, {1e-4, 1e-4, kInf}, pool).within_tolerance);
}

TEST(Compare, KeepsNormsWhereSquaresLeaveTheRange) {
  ThreadPool pool(1);
  for (double scale : {1e-300, 1e-170, 1e160, 1e300}) {
    Values c(DType::float64, 100), r(DType::float64, 100);
    for (std::size_t i = 0; i < 100; ++i) {
      r.set(i, scale);
      c.set(i, scale * 1.5);
    }
    Comparison result = run(c, DType::float64, r, DType::float64, {kInf, 0, 0.4}, pool);
    EXPECT_NEAR(result.relative_norm_error(), 0.5, 1e-12) << scale;
    EXPECT_FALSE(result.within_tolerance) << scale;
  }
}

TEST(Compare, PoisonIsNeverCorrect) {
  ThreadPool pool(2);
  for (int i = 0; i < kNumDTypes; ++i) {
    auto dtype = static_cast<DType>(i);
    Values c(dtype, 1000), r(dtype, 1000);
    for (std::size_t k = 0; k < 1000; ++k) r.set(k, 1);
    poison(c.bytes(), pool);
    EXPECT_EQ(run(c, dtype, r, dtype, {}, pool).violations, 1000) << name_of(dtype);
  }
}

TEST(Compare, TellsLargeIntegersApart) {
  ThreadPool pool(1);
  std::vector<std::int64_t> c(100, (std::int64_t{1} << 60) + 1), r(100, std::int64_t{1} << 60);
  Comparison result = compare(MemorySource(c.data()), {DType::int64, {100}}, MemorySource(r.data()),
                              DType::int64, {1e9, 1, kInf}, 0, pool);
  EXPECT_EQ(result.violations, 100);
  EXPECT_FALSE(result.within_tolerance);
}

TEST(Compare, TakesScalarsAndEmptyTensors) {
  ThreadPool pool(2);
  float c = 2, r = 2;
  Comparison scalar = compare(MemorySource(&c), {DType::float32, {}}, MemorySource(&r),
                              DType::float32, {}, 0, pool);
  EXPECT_EQ(scalar.elements, 1);
  EXPECT_TRUE(scalar.within_tolerance);
  Comparison empty = compare(MemorySource(nullptr), {DType::float32, {4, 0}}, MemorySource(nullptr),
                             DType::float32, {}, 0, pool);
  EXPECT_EQ(empty.elements, 0);
  EXPECT_EQ(empty.first_violation, -1);
  EXPECT_TRUE(empty.within_tolerance);
  EXPECT_EQ(empty.relative_norm_error(), 0);
}

/// Copies to scratch, as a source in another process's memory does, and loses everything from
/// `readable` bytes on.
class CopyingSource final : public BlockSource {
 public:
  CopyingSource(const std::byte* data, std::size_t readable) : data_(data), readable_(readable) {}
  const std::byte* block(std::size_t offset, std::size_t size, std::byte* scratch) const override {
    if (offset + size > readable_) return nullptr;
    std::memcpy(scratch, data_ + offset, size);
    return scratch;
  }

 private:
  const std::byte* data_;
  std::size_t readable_;
};

TEST(Compare, ReadsThroughASourceThatCopies) {
  ThreadPool pool(3);
  Draws draws(8);
  constexpr std::size_t kElements = 500'001;
  Values c(DType::float16, kElements), r(DType::float64, kElements);
  fill(c, r, DType::float16, DType::float64, draws);
  TensorSpec spec{DType::float16, {kElements}};
  CopyingSource whole(c.data(), spec.bytes()), reference(r.data(), kElements * sizeof(double));
  expect_agrees(compare(whole, spec, reference, DType::float64, {}, 1, pool),
                oracle(c, DType::float16, r, {}));
  CopyingSource torn(c.data(), spec.bytes() - 1);
  Comparison result = compare(torn, spec, reference, DType::float64, {}, 1, pool);
  EXPECT_FALSE(result.readable);
  EXPECT_FALSE(result.within_tolerance);
}

TEST(Compare, ReadsUnalignedMemory) {
  ThreadPool pool(1);
  std::vector<std::byte> c(4001), r(4003);
  Comparison result = compare(MemorySource(c.data() + 1), {DType::float32, {1000}},
                              MemorySource(r.data() + 3), DType::float32, {}, 0, pool);
  EXPECT_TRUE(result.within_tolerance);
}

TEST(Compare, RefusesWhatHasNoMeaning) {
  ThreadPool pool(1);
  float x = 0;
  MemorySource source(&x);
  TensorSpec spec{DType::float32, {1}};
  EXPECT_THROW(compare(source, spec, source, DType::int32, {}, 0, pool), std::invalid_argument);
  EXPECT_THROW(compare(source, {DType::int32, {1}}, source, DType::float32, {}, 0, pool),
               std::invalid_argument);
  EXPECT_THROW(compare(source, spec, source, DType::float32, {-1, 0, 0}, 0, pool),
               std::invalid_argument);
  EXPECT_THROW(compare(source, spec, source, DType::float32, {0, kNaN, 0}, 0, pool),
               std::invalid_argument);
}

}  // namespace
}  // namespace kb::cpu

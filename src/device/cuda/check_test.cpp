// The comparison on the GPU against the CPU's, and the checks of bytes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "device/cpu/compare.h"
#include "device/cuda/test_device.h"

namespace kb::cuda {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr DType kAllTypes[] = {DType::float64, DType::float32, DType::float16, DType::bfloat16,
                               DType::int64,   DType::int32,   DType::int16,   DType::int8,
                               DType::uint8,   DType::boolean};
constexpr DType kFloats[] = {DType::float64, DType::float32, DType::float16, DType::bfloat16};

struct Pair {
  DType dtype = DType::float32;
  DType reference_dtype = DType::float32;
  std::vector<std::byte> candidate, reference;

  Pair(DType c, DType r, std::size_t n)
      : dtype(c), reference_dtype(r), candidate(n * size_of(c)), reference(n * size_of(r)) {}
  std::size_t size() const { return candidate.size() / size_of(dtype); }
  void set(std::size_t i, double c, double r) {
    store(candidate, dtype, i, c);
    store(reference, reference_dtype, i, r);
  }
};

/// Random values; the candidate's are off by up to `error`, relatively.
Pair random_pair(DType dtype, DType reference_dtype, std::size_t n, double error,
                 std::uint64_t seed = 1) {
  Pair pair(dtype, reference_dtype, n);
  const double scale = is_floating(dtype) ? 2 : dtype == DType::boolean ? 1 : 100;
  for (std::size_t i = 0; i < n; ++i) {
    double x = scale * uniform(seed, i);
    if (dtype == DType::uint8 || dtype == DType::boolean) x = std::fabs(x) + 0.5;
    if (!is_floating(dtype)) x = std::floor(x);
    const double off = is_floating(dtype) ? x * error * uniform(seed + 1, i) : 0;
    pair.set(i, x + off, x);
  }
  return pair;
}

CompareJob compare_job(const Memory& candidate, const TensorSpec& spec, const Memory& reference,
                       DType reference_dtype, std::vector<std::int64_t> strides = {}) {
  CompareJob job;
  job.candidate.data = candidate.bytes().data();
  job.candidate.strides = std::move(strides);
  job.spec = spec;
  job.reference = reference.bytes().data();
  job.reference_dtype = reference_dtype;
  return job;
}

void expect_near(double found, double expected, const char* what, double tolerance = 1e-6) {
  if (std::isfinite(expected)) {
    EXPECT_NEAR(found, expected, tolerance * std::fabs(expected)) << what;
  } else {
    EXPECT_EQ(found, expected) << what;
  }
}

void expect_same(const Comparison& found, const Comparison& expected) {
  EXPECT_EQ(found.elements, expected.elements);
  EXPECT_EQ(found.violations, expected.violations);
  EXPECT_EQ(found.first_violation, expected.first_violation);
  EXPECT_EQ(found.nonfinite_mismatches, expected.nonfinite_mismatches);
  EXPECT_EQ(found.within_tolerance, expected.within_tolerance);
  EXPECT_EQ(found.readable, expected.readable);
  auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  EXPECT_TRUE(same(found.candidate_at_first, expected.candidate_at_first))
      << found.candidate_at_first << " " << expected.candidate_at_first;
  EXPECT_TRUE(same(found.reference_at_first, expected.reference_at_first))
      << found.reference_at_first << " " << expected.reference_at_first;
  expect_near(found.max_abs_error, expected.max_abs_error, "max_abs_error");
  expect_near(found.max_rel_error, expected.max_rel_error, "max_rel_error", 2e-6);
  expect_near(found.error_norm, expected.error_norm, "error_norm");
  expect_near(found.reference_norm, expected.reference_norm, "reference_norm");
}

class CheckTest : public GpuTest {
 protected:
  static Comparison on_cpu(const Pair& pair, const Tolerance& tolerance) {
    cpu::ThreadPool pool(2);
    const TensorSpec spec{pair.dtype, {static_cast<std::int64_t>(pair.size())}};
    return cpu::compare(cpu::MemorySource(pair.candidate.data()), spec,
                        cpu::MemorySource(pair.reference.data()), pair.reference_dtype, tolerance,
                        7, pool);
  }

  /// With both sides `shift` elements behind an aligned address.
  static Comparison on_gpu(const Pair& pair, const Tolerance& tolerance, std::size_t shift = 0) {
    const std::size_t c_shift = shift * size_of(pair.dtype);
    const std::size_t r_shift = shift * size_of(pair.reference_dtype);
    auto candidate = allocate(c_shift + pair.candidate.size());
    auto reference = allocate(r_shift + pair.reference.size());
    device_->upload(candidate->bytes().subspan(c_shift), pair.candidate);
    device_->upload(reference->bytes().subspan(r_shift), pair.reference);
    CompareJob job;
    job.candidate.data = candidate->bytes().data() + c_shift;
    job.spec = {pair.dtype, {static_cast<std::int64_t>(pair.size())}};
    job.reference = reference->bytes().data() + r_shift;
    job.reference_dtype = pair.reference_dtype;
    job.tolerance = tolerance;
    return run({.compare = {job}}).compare.at(0);
  }

  static CheckResults run(CheckList list, std::uint64_t seed = 3) {
    device_->begin_check(std::move(list), seed);
    auto results = device_->end_check();
    if (!results) {
      ADD_FAILURE() << results.error();
      return {};
    }
    return *results;
  }

  static void expect_agreement(const Pair& pair, const Tolerance& tolerance,
                               std::size_t shift = 0) {
    SCOPED_TRACE(std::string(name_of(pair.dtype)) + " " +
                 std::string(name_of(pair.reference_dtype)) + " " + std::to_string(pair.size()) +
                 " shifted by " + std::to_string(shift));
    expect_same(on_gpu(pair, tolerance, shift), on_cpu(pair, tolerance));
  }
};

TEST_F(CheckTest, AgreesWithTheCpuAtEverySizeAndType) {
  for (DType dtype : kAllTypes) {
    for (std::size_t n : {0UL, 1UL, 3UL, 4095UL, (1UL << 20) + 7}) {
      expect_agreement(random_pair(dtype, dtype, n, 1e-5), {});
      if (is_floating(dtype))
        expect_agreement(random_pair(dtype, DType::float64, n, 1e-2), {1e-2, 1e-2, 1e-2});
    }
  }
}

TEST_F(CheckTest, AgreesWithTheCpuWhereMuchIsWrong) {
  for (DType dtype : kFloats) {
    expect_agreement(random_pair(dtype, dtype, 100'003, 0.3), {1e-2, 1e-2, 1e-2});
    expect_agreement(random_pair(dtype, dtype, 100'003, 3), {});
    expect_agreement(random_pair(dtype, DType::float64, 100'003, 0.02), {0, 1e-2, kInf});
  }
  for (DType dtype : kAllTypes) {
    Pair wrong = random_pair(dtype, dtype, 100'003, 0, 1);
    wrong.reference = random_pair(dtype, dtype, 100'003, 0, 5).reference;
    expect_agreement(wrong, {});
  }
}

TEST_F(CheckTest, AgreesWithTheCpuOnNonFiniteNumbers) {
  const double specials[] = {kNaN, kInf, -kInf, 1.0};
  for (DType dtype : kFloats) {
    for (DType reference : {dtype, DType::float64}) {
      for (double tolerance : {1e-2, kInf}) {
        Pair pair = random_pair(dtype, reference, 50'021, 1e-5);
        for (std::size_t i = 0; i < 16; ++i) {
          pair.set(101 * i + 40'000, specials[i / 4], specials[i % 4]);
          pair.set(3 * i, specials[i / 4], specials[i / 4]);  // agree
        }
        expect_agreement(pair, {tolerance, tolerance, 1e-2});
        expect_agreement(pair, {tolerance, 0, kInf});
      }
    }
  }
}

TEST_F(CheckTest, AgreesWithTheCpuOnExtremeNumbers) {
  for (double scale : {1e-310, 1e-200, 1e-40, 1e-25, 1e25, 1e38, 1e200, 1.7e308}) {
    for (DType dtype : {DType::float64, DType::float32}) {
      Pair pair(dtype, dtype, 5003);
      for (std::size_t i = 0; i < pair.size(); ++i) {
        const double x = scale * uniform(1, i);
        pair.set(i, i % 7 == 0 ? -x : x, x);
      }
      // Where float32 has no such number it is 0 or infinite on both sides.
      expect_agreement(pair, {});
      expect_agreement(pair, {0, 0, kInf});
    }
  }
  Pair zeros(DType::float32, DType::float32, 5003);
  expect_agreement(zeros, {});
  zeros.set(4999, 1e-30, 0);
  expect_agreement(zeros, {});
}

TEST_F(CheckTest, AgreesWithTheCpuAtUnalignedAddresses) {
  for (DType dtype : kAllTypes) expect_agreement(random_pair(dtype, dtype, 70'001, 1e-5), {}, 1);
  expect_agreement(random_pair(DType::bfloat16, DType::float64, 70'001, 1e-2), {}, 1);
}

TEST_F(CheckTest, FindsASingleViolationAtEitherEnd) {
  for (DType dtype : kAllTypes) {
    for (std::size_t n : {1UL, 4095UL, (1UL << 20) + 7}) {
      for (std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
        Pair pair = random_pair(dtype, dtype, n, 0);
        pair.set(at, 1, 0);
        const Comparison found = on_gpu(pair, {});
        EXPECT_EQ(found.violations, 1) << name_of(dtype) << " " << n;
        EXPECT_EQ(found.first_violation, static_cast<std::int64_t>(at)) << name_of(dtype);
        EXPECT_EQ(found.candidate_at_first, 1);
        EXPECT_EQ(found.reference_at_first, 0);
        EXPECT_FALSE(found.within_tolerance);
      }
    }
  }
}

TEST_F(CheckTest, DecidesExactlyAtTheTolerance) {
  Pair pair(DType::float32, DType::float32, 1000);
  for (std::size_t i = 0; i < pair.size(); ++i) pair.set(i, 1.5, 1);
  EXPECT_EQ(on_gpu(pair, {0.5, 0, kInf}).violations, 0);
  EXPECT_EQ(on_gpu(pair, {std::nextafter(0.5, 0), 0, kInf}).violations, 1000);
  EXPECT_EQ(on_gpu(pair, {0.25, 0.25, kInf}).violations, 0);
  EXPECT_EQ(on_gpu(pair, {0.25, 0.25 - 0x1p-50, kInf}).violations, 1000);
}

TEST_F(CheckTest, FollowsStrides) {
  const std::vector<std::int64_t> shape = {5, 7, 33, 65};
  // Where the dimensions lie in memory, the outermost first.
  const std::vector<std::vector<std::size_t>> orders = {
      {0, 1, 2, 3}, {0, 2, 3, 1}, {3, 2, 1, 0}, {1, 0, 3, 2}};
  for (DType dtype : kAllTypes) {
    for (DType reference_dtype : {dtype, DType::float64}) {
      if (reference_dtype != dtype && !is_floating(dtype)) continue;
      const TensorSpec spec{dtype, shape};
      const auto n = static_cast<std::size_t>(spec.numel());
      Pair pair = random_pair(dtype, reference_dtype, n, 1e-5);
      pair.set(0, 0, 1);
      pair.set(n - 1, 0, 1);
      for (const auto& order : orders) {
        for (std::int64_t gap : {1, 3}) {
          std::vector<std::int64_t> strides(4);
          std::int64_t step = gap;
          for (std::size_t k = 4; k-- > 0;) {
            strides[order[k]] = step;
            step *= shape[order[k]];
          }
          const std::size_t size = size_of(dtype);
          std::vector<std::byte> memory(static_cast<std::size_t>(step) * size, std::byte{0x55});
          for (std::size_t i = 0; i < n; ++i) {
            auto rest = static_cast<std::int64_t>(i);
            std::int64_t place = 0;
            for (std::size_t k = 4; k-- > 0;) {
              place += rest % shape[k] * strides[k];
              rest /= shape[k];
            }
            std::memcpy(memory.data() + static_cast<std::size_t>(place) * size,
                        pair.candidate.data() + i * size, size);
          }
          auto candidate = on_device(memory);
          auto reference = on_device(pair.reference);
          const CompareJob job =
              compare_job(*candidate, spec, *reference, reference_dtype, strides);
          SCOPED_TRACE(name_of(dtype));
          expect_same(run({.compare = {job}}).compare.at(0), on_cpu(pair, {}));
        }
      }
    }
  }
}

TEST_F(CheckTest, ReadsAnExpandedTensor) {
  Pair pair(DType::float32, DType::float32, 12);
  for (std::size_t i = 0; i < 12; ++i) pair.set(i, 0, static_cast<double>(i / 4));
  const std::vector<float> values = {0, 1, 2};
  auto candidate = on_device(std::as_bytes(std::span(values)));
  auto reference = on_device(pair.reference);
  const CompareJob job =
      compare_job(*candidate, {DType::float32, {3, 4}}, *reference, DType::float32, {1, 0});
  EXPECT_TRUE(run({.compare = {job}}).compare.at(0).within_tolerance);
}

TEST_F(CheckTest, FindsADamagedByteAnywhere) {
  for (std::size_t n : {1UL, 15UL, 16UL, 4097UL, (3UL << 20) + 5}) {
    for (std::size_t shift : {0UL, 1UL, 4UL}) {
      std::vector<std::byte> bytes(n);
      for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(random_bits(1, i));
      auto a = allocate(n + shift), b = allocate(n + shift);
      const EqualJob job{a->range(shift, n), b->range(shift, n)};
      device_->upload(a->range(shift, n), bytes);
      device_->upload(b->range(shift, n), bytes);
      EXPECT_TRUE(run({.equal = {job}}).equal.at(0)) << n;
      for (std::size_t at : {std::size_t{0}, n / 3, n - 1}) {
        const std::byte damaged = bytes[at] ^ std::byte{1};
        device_->upload(b->range(shift + at, 1), {&damaged, 1});
        EXPECT_FALSE(run({.equal = {job}}).equal.at(0)) << n << " at " << at;
        device_->upload(b->range(shift + at, 1), {&bytes[at], 1});
      }
    }
  }
}

TEST_F(CheckTest, KnowsItsGuards) {
  for (std::size_t n : {kGuardBytes, std::size_t{13}}) {
    for (std::size_t shift : {0UL, 3UL}) {
      auto memory = allocate(n + shift);
      const auto band = memory->range(shift, n);
      device_->write_guard(band, 99);
      EXPECT_TRUE(run({.guards = {{band, 99}}}).guards_intact.at(0));
      EXPECT_FALSE(run({.guards = {{band, 98}}}).guards_intact.at(0));
      for (std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
        std::vector<std::byte> byte = on_host(band.subspan(at, 1));
        byte[0] ^= std::byte{0x10};
        device_->upload(band.subspan(at, 1), byte);
        EXPECT_FALSE(run({.guards = {{band, 99}}}).guards_intact.at(0)) << at;
        byte[0] ^= std::byte{0x10};
        device_->upload(band.subspan(at, 1), byte);
      }
      EXPECT_TRUE(run({.guards = {{band, 99}}}).guards_intact.at(0));
    }
  }
}

TEST_F(CheckTest, DoesManyJobsOfAllSortsInOneCheck) {
  // More than the first buffers hold.
  constexpr std::size_t kJobs = 1500;
  auto memory = allocate(kJobs * 4096);
  auto other = allocate(kJobs * 4096);
  CheckList list;
  for (std::size_t i = 0; i < kJobs; ++i) {
    const auto a = memory->range(i * 4096, 4096), b = other->range(i * 4096, 4096);
    const std::byte damage{1};
    if (i % 3 == 0) {
      list.compare.push_back({.candidate = {.data = a.data()},
                              .spec = {DType::uint8, {static_cast<std::int64_t>(i)}},
                              .reference = b.data(),
                              .reference_dtype = DType::uint8});
      if (i % 2 == 1) device_->upload(a.subspan(i - 1, 1), {&damage, 1});
    } else if (i % 3 == 1) {
      list.equal.push_back({a, b});
      if (i % 2 == 1) device_->upload(b.last(1), {&damage, 1});
    } else {
      device_->write_guard(a, i);
      list.guards.push_back({a, i + i % 2});
    }
  }
  for (std::uint64_t seed : {1, 2, 3}) {
    const CheckResults results = run(list, seed);
    ASSERT_EQ(results.compare.size(), kJobs / 3);
    for (std::size_t i = 0; i < kJobs; ++i) {
      const bool good = i % 2 == 0;
      if (i % 3 == 0) {
        EXPECT_EQ(results.compare[i / 3].violations, good ? 0 : 1) << i;
        EXPECT_EQ(results.compare[i / 3].first_violation,
                  good ? -1 : static_cast<std::int64_t>(i) - 1);
      } else if (i % 3 == 1) {
        EXPECT_EQ(results.equal[i / 3], good) << i;
      } else {
        EXPECT_EQ(results.guards_intact[i / 3], good) << i;
      }
    }
  }
  EXPECT_TRUE(run({}).compare.empty());
}

TEST_F(CheckTest, RefusesWhatMakesNoSense) {
  auto memory = allocate(4096);
  const CompareJob job = compare_job(*memory, {DType::float32, {4}}, *memory, DType::float32);
  auto refused = [&](const CompareJob& wrong) {
    EXPECT_THROW(device_->begin_check({.compare = {wrong}}, 1), std::invalid_argument);
  };
  CompareJob wrong = job;
  wrong.reference_dtype = DType::float16;
  refused(wrong);
  wrong = job;
  wrong.tolerance.atol = -1;
  refused(wrong);
  wrong = job;
  wrong.candidate.strides = {1, 1};
  refused(wrong);
  wrong = job;
  wrong.candidate.data = nullptr;
  refused(wrong);
  EXPECT_TRUE(run({.compare = {job}}).compare.at(0).within_tolerance);
}

}  // namespace
}  // namespace kb::cuda

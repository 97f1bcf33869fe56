// The two vector kernels of compare_run.h. compare_run.cpp includes this text once for each vector
// unit, inside a namespace and under a pragma that names the unit.
//
// Why not the attribute target_clones, or target on the two outermost functions: g++ splits vector
// operations that a function's own target lacks before it inlines or clones, and comparisons of
// vectors longer than the machine's become scalar. With the pragma every helper has the target from
// the start, and the 8 lanes are kParts vectors of the machine's own length.

constexpr std::size_t kWidth = KB_WIDTH;  ///< doubles in a vector
constexpr std::size_t kParts = kLanes / kWidth;

/// GCC's and clang's vector types.
template <class T>
struct VectorOf {
  using type [[gnu::vector_size(kWidth * sizeof(T))]] = T;
};
template <class T>
using Vec = typename VectorOf<T>::type;
using Doubles = Vec<double>;
using Mask = Vec<std::int64_t>;  ///< -1 where true, 0 where false

KB_INLINE Doubles all(double x) {
  return Doubles{} + x;
}

KB_INLINE Doubles select(const Mask& mask, const Doubles& yes, const Doubles& no) {
  return mask ? yes : no;
}

KB_INLINE Doubles where(const Mask& mask, const Doubles& x) {
  return reinterpret_cast<Doubles>(reinterpret_cast<Mask>(x) & mask);
}

KB_INLINE Doubles absolute(const Doubles& x) {
  constexpr std::int64_t kAllButSign = std::numeric_limits<std::int64_t>::max();
  return where(Mask{} + kAllButSign, x);
}

template <class T>
KB_INLINE Vec<T> load_raw(const std::byte* from) {
  Vec<T> raw;
  std::memcpy(&raw, from, sizeof raw);
  return raw;
}

// What g++ 12 makes of a conversion between vectors of unlike length is slow, in part scalar: so
// the conversions that matter are spelled out for the units that have instructions for them. (The
// maskz forms with a full mask are the plain instructions; g++ 12 warns falsely about the plain
// intrinsics, GCC bug 105593.)
#if KB_WIDTH == 8
KB_INLINE Doubles load_floats(const std::byte* from) {
  return reinterpret_cast<Doubles>(_mm512_maskz_cvtps_pd(0xFF, load_raw<float>(from)));
}
KB_INLINE Doubles load_float16s(const std::byte* from) {
  __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return reinterpret_cast<Doubles>(_mm512_maskz_cvtps_pd(0xFF, _mm256_cvtph_ps(h)));
}
KB_INLINE Doubles load_bfloat16s(const std::byte* from) {
  __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(b), 16);
  return reinterpret_cast<Doubles>(_mm512_maskz_cvtps_pd(0xFF, _mm256_castsi256_ps(bits)));
}
/// Element by element a < b ? a : b; b where one is NaN.
KB_INLINE Doubles smaller(const Doubles& a, const Doubles& b) {
  return _mm512_maskz_min_pd(0xFF, a, b);
}
/// Element by element a > b ? a : b; b where one is NaN.
KB_INLINE Doubles larger(const Doubles& a, const Doubles& b) {
  return _mm512_maskz_max_pd(0xFF, a, b);
}
#else
#if KB_WIDTH == 4
KB_INLINE Doubles load_floats(const std::byte* from) {
  return reinterpret_cast<Doubles>(_mm256_cvtps_pd(load_raw<float>(from)));
}
KB_INLINE Doubles load_float16s(const std::byte* from) {
  __m128i h = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return reinterpret_cast<Doubles>(_mm256_cvtps_pd(_mm_cvtph_ps(h)));
}
KB_INLINE Doubles load_bfloat16s(const std::byte* from) {
  __m128i b = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  __m128i bits = _mm_slli_epi32(_mm_cvtepu16_epi32(b), 16);
  return reinterpret_cast<Doubles>(_mm256_cvtps_pd(_mm_castsi128_ps(bits)));
}
#else
KB_INLINE Doubles load_floats(const std::byte* from) {
  return __builtin_convertvector(load_raw<float>(from), Doubles);
}
KB_INLINE Doubles load_float16s(const std::byte* from) {
  Doubles x;
  for (std::size_t i = 0; i < kWidth; ++i) x[i] = value_of<Float16>(from + i * sizeof(Float16));
  return x;
}
KB_INLINE Doubles load_bfloat16s(const std::byte* from) {
  Doubles x;
  for (std::size_t i = 0; i < kWidth; ++i) x[i] = value_of<BFloat16>(from + i * sizeof(BFloat16));
  return x;
}
#endif
KB_INLINE Doubles smaller(const Doubles& a, const Doubles& b) {
  return select(a < b, a, b);
}
KB_INLINE Doubles larger(const Doubles& a, const Doubles& b) {
  return select(a > b, a, b);
}
#endif

/// Reads kWidth elements as doubles; exact except for 64-bit integers.
template <class T>
KB_INLINE Doubles load(const std::byte* from) {
  if constexpr (std::is_same_v<T, Float16>) {
    return load_float16s(from);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return load_bfloat16s(from);
  } else if constexpr (std::is_same_v<T, float>) {
    return load_floats(from);
  } else if constexpr (std::is_same_v<T, double>) {
    return load_raw<double>(from);
  } else {
    return __builtin_convertvector(load_raw<T>(from), Doubles);
  }
}

/// Where kWidth integers differ; compares the integers, as doubles would merge large ones.
template <class T>
KB_INLINE Mask differing(const std::byte* a, const std::byte* b) {
  return __builtin_convertvector(load_raw<T>(a) != load_raw<T>(b), Mask);
}

/// The 8 lanes of a value that is kept for each.
template <class V>
struct Lanes {
  V part[kParts]{};

  KB_INLINE auto operator[](std::size_t lane) const { return part[lane / kWidth][lane % kWidth]; }
};

KB_INLINE double sum(const Lanes<Doubles>& x) {
  return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

KB_INLINE double largest(const Lanes<Doubles>& x) {
  double most = x[0];
  for (std::size_t i = 1; i < kLanes; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

KB_INLINE std::int64_t sum(const Lanes<Mask>& x) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < kLanes; ++i) total += x[i];
  return total;
}

KB_INLINE bool any(const Lanes<Mask>& x) {
  std::int64_t bits = 0;
  for (std::size_t i = 0; i < kLanes; ++i) bits |= x[i];
  return bits != 0;
}

KB_INLINE Mask is_nan(const Doubles& x) {
  return ~(absolute(x) <= all(std::numeric_limits<double>::infinity()));
}

/// Nonzero magnitudes under kTiny.
KB_INLINE Mask tiny(const Doubles& magnitude) {
  return (magnitude < all(kTiny)) & (magnitude != all(0));
}

/// Calls `step` for each part of each 8 elements; the last ones are copied between zeros, which
/// agree.
template <class C, class R, class Step>
KB_INLINE void for_each_part(const std::byte* c, const std::byte* r, std::size_t n, Step& step) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t p = 0; p < kParts; ++p) {
      step(p, c + (i + p * kWidth) * sizeof(C), r + (i + p * kWidth) * sizeof(R));
    }
  }
  if (i < n) {
    std::byte c_tail[kLanes * sizeof(C)] = {};
    std::byte r_tail[kLanes * sizeof(R)] = {};
    std::memcpy(c_tail, c + i * sizeof(C), (n - i) * sizeof(C));
    std::memcpy(r_tail, r + i * sizeof(R), (n - i) * sizeof(R));
    for (std::size_t p = 0; p < kParts; ++p) {
      step(p, c_tail + p * kWidth * sizeof(C), r_tail + p * kWidth * sizeof(R));
    }
  }
}

template <class C, class R>
struct ScreenStep {
  Doubles atol, rtol, record;
  Lanes<Doubles> error_squares{}, reference_squares{}, max_abs_error{};
  Lanes<Mask> doubtful{};

  KB_INLINE void operator()(std::size_t p, const std::byte* c_bytes, const std::byte* r_bytes) {
    Doubles c = load<C>(c_bytes);
    Doubles r = load<R>(r_bytes);
    Doubles d = c - r;
    Doubles error = absolute(d);
    Doubles magnitude = absolute(r);
    if constexpr (kIsFloating<C>) {
      // A NaN bound is doubtful as well: NaN <= NaN is false. The product is NaN when the record is
      // infinite and r is 0, where it must not count.
      Doubles bound = smaller(record * magnitude, atol + rtol * magnitude);
      doubtful.part[p] |= ~(error <= bound);
    } else {
      doubtful.part[p] |= differing<C>(c_bytes, r_bytes);
    }
    if constexpr (std::is_same_v<C, double> || std::is_same_v<R, double>) {
      doubtful.part[p] |= tiny(error) | tiny(magnitude);
    }
    error_squares.part[p] += d * d;
    reference_squares.part[p] += r * r;
    max_abs_error.part[p] = larger(error, max_abs_error.part[p]);
  }
};

template <class C, class R>
RunSummary screen(const std::byte* c, const std::byte* r, std::size_t n, ElementTolerance tolerance,
                  double max_rel_error) {
  // A little under the record, or rounding of the product could hide a value just over it.
  double record = max_rel_error * (1 - 0x1p-50);
  ScreenStep<C, R> step{
      .atol = all(tolerance.atol), .rtol = all(tolerance.rtol), .record = all(record)};
  for_each_part<C, R>(c, r, n, step);
  RunSummary summary;
  summary.error_squares = sum(step.error_squares);
  summary.reference_squares = sum(step.reference_squares);
  summary.max_abs_error = largest(step.max_abs_error);
  // An infinite error against an infinite tolerance is not doubtful, but its square is infinite; so
  // is the square, or NaN, of whatever else is not finite.
  summary.look_again = any(step.doubtful) || !(summary.error_squares <= kLargest) ||
                       !(summary.reference_squares <= kLargest);
  return summary;
}

template <class C, class R>
struct InspectStep {
  Doubles atol, rtol;
  Lanes<Doubles> error_squares{}, reference_squares{}, max_abs_error{}, max_rel_error{};
  Lanes<Mask> violations{}, nonfinite{}, tiny_seen{};  // the first two count down

  KB_INLINE void operator()(std::size_t p, const std::byte* c_bytes, const std::byte* r_bytes) {
    Doubles c = load<C>(c_bytes);
    Doubles r = load<R>(r_bytes);
    Doubles magnitude = absolute(r);
    Mask finite = (absolute(c) <= all(kLargest)) & (magnitude <= all(kLargest));
    Mask violates;
    if constexpr (kIsFloating<C>) {
      Doubles gap = absolute(c - r);
      Mask same = (c == r) | (is_nan(c) & is_nan(r));
      violates = ~(same | ((gap <= all(kLargest)) & (gap <= atol + rtol * magnitude)));
    } else {
      violates = differing<C>(c_bytes, r_bytes);
    }
    violations.part[p] += violates;
    nonfinite.part[p] += violates & ~finite;

    Doubles d = where(finite, c - r);
    Doubles error = absolute(d);
    r = where(finite, r);
    magnitude = absolute(r);
    error_squares.part[p] += d * d;
    reference_squares.part[p] += r * r;
    max_abs_error.part[p] = larger(error, max_abs_error.part[p]);
    Doubles relative = where(magnitude != all(0), error / magnitude);
    max_rel_error.part[p] = larger(relative, max_rel_error.part[p]);
    if constexpr (std::is_same_v<C, double> || std::is_same_v<R, double>) {
      tiny_seen.part[p] |= tiny(error) | tiny(magnitude);
    }
  }
};

template <class C, class R>
RunSummary inspect(const std::byte* c, const std::byte* r, std::size_t n,
                   ElementTolerance tolerance) {
  InspectStep<C, R> step{.atol = all(tolerance.atol), .rtol = all(tolerance.rtol)};
  for_each_part<C, R>(c, r, n, step);
  RunSummary summary;
  summary.error_squares = sum(step.error_squares);
  summary.reference_squares = sum(step.reference_squares);
  summary.max_abs_error = largest(step.max_abs_error);
  summary.max_rel_error = largest(step.max_rel_error);
  summary.violations = -sum(step.violations);
  summary.nonfinite_mismatches = -sum(step.nonfinite);
  summary.extreme = any(step.tiny_seen) || !(summary.error_squares <= kLargest) ||
                    !(summary.reference_squares <= kLargest);
  return summary;
}

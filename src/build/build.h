// Builds candidates in the compile sandbox, behind a content-addressed cache.
//
// A build never runs a candidate outside a sandbox, has no network and writes to its own folder
// only. Its result is a folder of the cache, `<cache>/<first two hex digits>/<key>/`, that appears
// by one rename(2) and is never changed afterwards; the key is a SHA-256 of everything that the
// result depends on. Any number of processes may share a cache; one that is killed leaves a
// temporary folder that the next one sweeps (when its owner's lock is gone).
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/sandbox.h"

namespace kb::build {

/// A shared library made from a candidate.
struct Artifact {
  /// Module name for a Python extension; "kernel" for a native candidate, and "libtvm_ffi" for the
  /// library that one needs.
  std::string name;
  std::filesystem::path path;  ///< inside the cache; read-only
};

enum class Status {
  ok,
  compile_error,  ///< the candidate's fault: `log` holds the compiler's words
  load_error,     ///< Python only: importing the candidate failed for another reason than a build
  timeout
};

struct Result {
  Status status = Status::ok;
  /// Native: the candidate's library is the last, before it is what must be loaded first. Python:
  /// any number, also none.
  std::vector<Artifact> artifacts;
  std::string log;  ///< bounded to 64 KiB; failures are cached with their log, time-outs are not
  bool cached = false;
  double build_ms = 0;  ///< 0 when cached
};

struct Options {
  std::filesystem::path cache_directory;            ///< made if missing
  std::filesystem::path include_directory;          ///< holds kernelbench/kernel.h
  std::filesystem::path compiler;                   ///< absolute; empty: the system's g++
  std::vector<std::filesystem::path> nvcc_folders;  ///< to look for nvcc; empty: the usual ones
  std::vector<std::filesystem::path> hip_folders;   ///< to look for HIP; empty: the usual ones
  std::uint64_t max_bytes = 10ull << 30;  ///< of the cache: least recently used entries are
                                          ///< dropped, never one used within the hour
  std::chrono::milliseconds time_limit{300'000};
  std::uint64_t memory_bytes = 8ull << 30;
  unsigned jobs = 0;  ///< parallel compiler processes for one extension build; 0: one per CPU
};

/// What a Python build needs to know of the interpreter (from worker/python_environment.h).
struct Python {
  std::string executable;                ///< absolute
  std::vector<std::string> folders;      ///< to be visible read-only: prefixes, site-packages
  std::string identity;                  ///< version strings of Python and torch, part of the key
  std::filesystem::path package_folder;  ///< holds kernelbench_worker/
  std::string architecture;    ///< that CUDA sources are compiled for, "sm_90"; may be empty
  std::string thunderkittens;  ///< folder of that library for a source that needs it, or empty
};

/// The Python package apache-tvm-ffi, for a native candidate that includes its headers.
struct TvmFfi {
  std::filesystem::path folder;  ///< holds include/tvm/ffi/ and lib/libtvm_ffi.so; empty: not there
  std::string version;           ///< part of the key
};

class Builder {
 public:
  /// Error: one sentence (the cache folder cannot be made, no compiler …).
  static std::expected<Builder, std::string> create(Options options, sandbox::Launcher& launcher);
  Builder(Builder&&) noexcept;
  ~Builder();

  /// Compiles a native C++ candidate: g++ -std=c++20 -O3 -march=native -fopenmp -fPIC -shared,
  /// include/ on the path. One that includes TVM-FFI gets the headers and a copy of the library of
  /// `tvm_ffi`, and where it has no kb_run of its own, the one of
  /// kernelbench/tvm_ffi_adapter.cpp. Error: infrastructure (disk full, unreadable cache, a package
  /// that is missing), one sentence. Thread-safe.
  std::expected<Result, std::string> build_cpp(const std::string& source,
                                               const TvmFfi& tvm_ffi = {});

  /// Compiles a CUDA candidate with nvcc for one `architecture` ("sm_90"): -std=c++20 -O3 -shared,
  /// include/ on the path, linked with the libraries of the toolkit whose headers it includes;
  /// TVM-FFI as in build_cpp(). No GPU is needed; nor is nvcc, on a machine with a cache in which
  /// another has built the same source. Error: infrastructure (no nvcc, one that does not work),
  /// one sentence. Thread-safe.
  std::expected<Result, std::string> build_cuda(const std::string& source,
                                                const std::string& architecture,
                                                const TvmFfi& tvm_ffi = {});

  /// Compiles a HIP candidate for one `architecture`: with hipcc for an AMD card ("gfx942"), with
  /// nvcc and HIP's headers for an NVIDIA one ("sm_90"). Flags, libraries and what serves a machine
  /// without the compiler are as in build_cuda(). Error: infrastructure (no hipcc, no headers of
  /// HIP, no nvcc, one that does not work), one sentence. Thread-safe.
  std::expected<Result, std::string> build_hip(const std::string& source,
                                               const std::string& architecture);

  /// Imports a Python candidate in the compile sandbox with torch.utils.cpp_extension's load and
  /// load_inline building into the cache, and collects the extension modules it built, in the order
  /// of first use. A source that mentions neither returns ok at once, without artifacts. With
  /// `problem_source` also what is built when ModelNew is constructed or called. Thread-safe.
  std::expected<Result, std::string> build_python(const std::string& source, const Python& python,
                                                  const std::string& problem_source = {});

 private:
  struct Impl;
  explicit Builder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// `$XDG_CACHE_HOME/kernelbench` or `~/.cache/kernelbench`.
std::filesystem::path default_cache_directory();

}  // namespace kb::build

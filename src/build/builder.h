// The Builder's inside. build.cpp has what every build needs, native_build.cpp what natives share
// and C++, cuda_build.cpp CUDA, hip_build.cpp HIP, extension_build.cpp the extensions of Python
// candidates.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "build/build.h"
#include "build/cache.h"
#include "build/compiler.h"
#include "build/hip.h"
#include "build/key.h"
#include "build/nvcc.h"
#include "sandbox/sandbox.h"

namespace kb::build {

inline constexpr std::uint64_t kMaxLibraryBytes = 256ull << 20;
inline constexpr std::uint64_t kMaxHeaderBytes = 16ull << 20;

/// Where TVM-FFI's headers are inside the sandbox.
inline constexpr const char* kTvmFfiRoot = "/tvm_ffi/include";

/// Files of a build folder: name and contents.
using Sources = std::vector<std::pair<const char*, std::string>>;

/// What compiles HIP for one kind of card; in hip_build.cpp.
struct HipTools;

struct Builder::Impl {
  Options options;
  sandbox::Launcher& launcher;
  Compiler compiler;
  Cache cache;
  std::once_flag nvcc_sought = {};
  std::expected<Nvcc, std::string> nvcc_found = {};
  std::once_flag hip_sought = {};
  std::expected<Hip, std::string> hipcc_found = {}, hip_headers_found = {};

  // One run of one command on one build folder.
  struct Run {
    bool timed_out = false;
    bool too_much = false;  // it filled its folder
    sandbox::Exit exit;
    std::string output;
    double ms = 0;

    bool succeeded() const { return !timed_out && !too_much && exit.exited && exit.code == 0; }
  };

  // What a command needs to know of where it runs: without a sandbox there is no /build.
  struct Place {
    std::string root;     // the build folder
    std::string include;  // include/
    std::vector<std::string> prefixes() const { return {root, include, kTvmFfiRoot}; }
  };
  Place place(const Workplace& workplace) const;
  sandbox::Command command(const Workplace& workplace, const Place& place) const;
  std::expected<Run, std::string> run(sandbox::Command command, const Workplace& workplace) const;
  std::expected<Outcome, std::string> outcome(const Workplace& workplace, const Run& run,
                                              Status status, std::string log) const;

  std::expected<Outcome, std::string> compile_library(const sandbox::Command& command,
                                                      const TvmFfi* tvm_ffi,
                                                      Workplace& workplace) const;

  // What TVM-FFI adds to a key, to a build folder and to a compiler's command. Null adds nothing.
  std::expected<void, std::string> add_tvm_ffi(Key& key, const TvmFfi* tvm_ffi) const;
  std::expected<Sources, std::string> furniture(const char* name, const std::string& source,
                                                const TvmFfi* tvm_ffi) const;
  void show_tvm_ffi(sandbox::Command& compile, const std::string& source, const TvmFfi* tvm_ffi,
                    const Place& place) const;

  std::expected<std::string, std::string> cpp_key(const std::string& source,
                                                  const TvmFfi* tvm_ffi) const;
  std::expected<Outcome, std::string> compile_cpp(const std::string& source, const TvmFfi* tvm_ffi,
                                                  Workplace& workplace) const;
  const std::expected<Nvcc, std::string>& nvcc();
  std::expected<std::string, std::string> cuda_name(const std::string& source,
                                                    const std::string& architecture,
                                                    const TvmFfi* tvm_ffi) const;
  std::expected<std::string, std::string> cuda_key(const std::string& name, const Nvcc& nvcc) const;
  std::expected<Outcome, std::string> run_nvcc(const std::string& source,
                                               const std::string& architecture, const Nvcc& nvcc,
                                               const TvmFfi* tvm_ffi, const Hip* hip,
                                               Workplace& workplace) const;
  std::expected<HipTools, std::string> hip_tools(const std::string& architecture);
  std::expected<std::string, std::string> hip_name(const std::string& source,
                                                   const std::string& architecture) const;
  std::expected<std::string, std::string> hip_key(const std::string& name,
                                                  const HipTools& tools) const;
  std::expected<Outcome, std::string> run_hip(const std::string& source,
                                              const std::string& architecture,
                                              const HipTools& tools, Workplace& workplace) const;
  // The least that a compiler of device code can do.
  struct Least {
    std::filesystem::path compiler;
    std::string architecture;
    std::function<std::expected<std::string, std::string>()> key;
    std::function<std::expected<Outcome, std::string>(Workplace&)> run;
  };
  // `outcome`, or, where the compiler cannot even do the least, an error that says so.
  std::expected<Outcome, std::string> or_broken(std::expected<Outcome, std::string> outcome,
                                                const Least& least) const;
  // What is built under a name that a machine without the compiler knows. `key` holds the reason
  // where there is no compiler.
  std::expected<Result, std::string> get_named(const std::string& name,
                                               const std::expected<std::string, std::string>& key,
                                               const Cache::Build& build) const;
  std::expected<std::string, std::string> python_key(const std::string& source,
                                                     const Python& python,
                                                     const std::string& problem_source);
  std::expected<Outcome, std::string> import_python(const std::string& source, const Python& python,
                                                    const std::string& problem_source,
                                                    Workplace& workplace);
  std::expected<Result, std::string> get(const std::string& key, const Cache::Build& build) const;
};

std::string error_text(int error);
bool is_header(const std::filesystem::path& path);
std::string_view name_of(Status status);

/// Adds the contents of the files in `folder` that `wanted` accepts, in order of their names.
/// Error: one sentence, as for the next three.
std::expected<void, std::string> add_files(Key& key, const std::filesystem::path& folder,
                                           bool (*wanted)(const std::filesystem::path&));
/// include/kernelbench/*.h
std::expected<void, std::string> add_own_headers(Key& key, const std::filesystem::path& include);
/// The dlpack/ that a compiler with `include` on its path finds.
std::expected<void, std::string> add_dlpack(Key& key, const std::filesystem::path& include);
/// Writes the sources and makes tmp/ in a build folder.
std::expected<void, std::string> furnish(const Workplace& workplace, const Sources& sources);

/// What a source needs of TVM-FFI: null is nothing. Error: one sentence.
std::expected<const TvmFfi*, std::string> needed_by(const std::string& source,
                                                    const TvmFfi& tvm_ffi);

}  // namespace kb::build

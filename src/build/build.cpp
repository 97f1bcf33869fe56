#include "build/build.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "build/cache.h"
#include "build/compiler.h"
#include "build/extensions.h"
#include "build/files.h"
#include "build/hip.h"
#include "build/key.h"
#include "build/log.h"
#include "build/nvcc.h"
#include "problem/native_source.h"

namespace kb::build {

namespace fs = std::filesystem;

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint32_t kMaxProcesses = 512;
constexpr std::uint64_t kMaxFileBytes = 512ull << 20;
constexpr std::uint64_t kMaxLibraryBytes = 256ull << 20;
// Of everything that one build leaves lying about; looked at twice a second.
constexpr Usage kMaxBuild{4ull << 30, 20'000};
constexpr milliseconds kLookInterval{500};
constexpr std::uint64_t kMaxHeaderBytes = 16ull << 20;

// What every working toolkit can build.
constexpr const char* kLeastKernel =
    "__global__ void nothing() {}\n"
    "extern \"C\" int kb_run(const void*) { nothing<<<1, 1>>>(); return cudaGetLastError(); }\n";
// The same for what compiles HIP.
constexpr const char* kLeastHipKernel =
    "#include <hip/hip_runtime.h>\n"
    "__global__ void nothing() {}\n"
    "extern \"C\" int kb_run(const void*) { nothing<<<1, 1>>>(); return hipGetLastError(); }\n";

// Inside the sandbox.
constexpr const char* kNice = "/usr/bin/nice";
constexpr const char* kBuildRoot = "/build";
constexpr const char* kIncludeRoot = "/kernelbench/include";
constexpr const char* kTvmFfiRoot = "/tvm_ffi/include";

constexpr const char* kTvmFfiLibrary = "libtvm_ffi.so";
constexpr const char* kTvmFfiAdapter = "kernelbench/tvm_ffi_adapter.cpp";

std::string error_text(int error) {
  return std::error_code(error, std::generic_category()).message();
}

std::string_view name_of(Status status) {
  switch (status) {
    case Status::ok: return "ok";
    case Status::compile_error: return "compile_error";
    case Status::load_error: return "load_error";
    case Status::timeout: return "timeout";
  }
  return "";
}

Status status_of(std::string_view name) {
  for (const Status status : {Status::ok, Status::compile_error, Status::timeout}) {
    if (name == name_of(status)) return status;
  }
  return Status::load_error;
}

// Files of a build folder: name and contents.
using Sources = std::vector<std::pair<const char*, std::string>>;

bool is_header(const fs::path& path) {
  return path.extension() == ".h";
}

// Adds the contents of the files in `folder` that `wanted` accepts, in order of their names.
// Error: one sentence.
template <class Wanted>
std::expected<void, std::string> add_files(Key& key, const fs::path& folder, Wanted wanted) {
  std::vector<fs::path> paths;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::end(entry); entry.increment(error)) {
    if (wanted(entry->path())) paths.push_back(entry->path());
  }
  if (error) {
    return std::unexpected(fmt::format("cannot read the folder {} ({}): reinstall kernelbench",
                                       folder.string(), error.message()));
  }
  std::ranges::sort(paths);
  for (const fs::path& path : paths) {
    auto bytes = read_file(path, kMaxHeaderBytes);
    if (!bytes) {
      return std::unexpected(fmt::format("cannot read {} ({}): reinstall kernelbench",
                                         path.string(), error_text(bytes.error())));
    }
    key.add(path.filename().string(), *bytes);
  }
  return {};
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// include/kernelbench/*.h
std::expected<void, std::string> add_own_headers(Key& key, const fs::path& include) {
  return add_files(key, include / "kernelbench", is_header);
}

// The dlpack/ that a compiler with `include` on its path finds.
std::expected<void, std::string> add_dlpack(Key& key, const fs::path& include) {
  for (const fs::path& folder :
       {include, fs::path("/usr/local/include"), fs::path("/usr/include")}) {
    if (is_there(folder / "dlpack")) return add_files(key, folder / "dlpack", is_header);
  }
  return {};
}

// What a source needs of TVM-FFI: null is nothing. Error: one sentence.
std::expected<const TvmFfi*, std::string> needed_by(const std::string& source,
                                                    const TvmFfi& tvm_ffi) {
  if (!problem::includes_tvm_ffi(source)) return nullptr;
  if (!tvm_ffi.folder.empty()) return &tvm_ffi;
  return std::unexpected(
      "the candidate includes TVM-FFI, and Python has no package apache-tvm-ffi: run `make build`, "
      "or install it with pip");
}

// What compiles HIP for one kind of card.
struct HipTools {
  Hip hip;
  std::optional<Nvcc> nvcc;  // null for AMD's: hipcc

  fs::path compiler() const { return nvcc ? nvcc->path : hip.hipcc; }
};

}  // namespace

// ---- Builder
// -------------------------------------------------------------------------------------

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
    fs::path compiler;
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

Builder::Builder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Builder::Builder(Builder&&) noexcept = default;
Builder::~Builder() = default;

std::expected<Builder, std::string> Builder::create(Options options, sandbox::Launcher& launcher) {
  auto compiler = find_compiler(options.compiler);
  if (!compiler) return std::unexpected(std::move(compiler.error()));
  if (!is_there(options.include_directory / "kernelbench" / "kernel.h")) {
    return std::unexpected(
        fmt::format("the folder {} holds no kernelbench/kernel.h: reinstall kernelbench, or set "
                    "KERNELBENCH_HOME to its folder",
                    options.include_directory.string()));
  }
  auto cache = Cache::open({.directory = options.cache_directory, .max_bytes = options.max_bytes});
  if (!cache) return std::unexpected(std::move(cache.error()));
  if (options.nvcc_folders.empty()) options.nvcc_folders = nvcc_folders();
  if (options.hip_folders.empty()) options.hip_folders = hip_folders();
  return Builder(std::unique_ptr<Impl>(
      new Impl{std::move(options), launcher, std::move(*compiler), std::move(*cache)}));
}

std::expected<Result, std::string> Builder::build_cpp(const std::string& source,
                                                      const TvmFfi& tvm_ffi) {
  const auto needed = needed_by(source, tvm_ffi);
  if (!needed) return std::unexpected(needed.error());
  auto key = impl_->cpp_key(source, *needed);
  if (!key) return std::unexpected(std::move(key.error()));
  return impl_->get(
      *key, [&](Workplace& workplace) { return impl_->compile_cpp(source, *needed, workplace); });
}

std::expected<Result, std::string> Builder::build_cuda(const std::string& source,
                                                       const std::string& architecture,
                                                       const TvmFfi& tvm_ffi) {
  if (!is_architecture(architecture)) {
    return std::unexpected(
        fmt::format("'{}' is no GPU architecture: give one such as sm_90", architecture));
  }
  const auto needed = needed_by(source, tvm_ffi);
  if (!needed) return std::unexpected(needed.error());
  const auto name = impl_->cuda_name(source, architecture, *needed);
  if (!name) return std::unexpected(name.error());
  const auto& nvcc = impl_->nvcc();
  const auto key_of = [&](const std::string& one) -> std::expected<std::string, std::string> {
    if (!nvcc) return std::unexpected(nvcc.error());
    return impl_->cuda_key(one, *nvcc);
  };
  return impl_->get_named(*name, key_of(*name), [&](Workplace& workplace) {
    const Impl::Least least{
        .compiler = nvcc->path,
        .architecture = architecture,
        .key = [&]() -> std::expected<std::string, std::string> {
          const auto its_name = impl_->cuda_name(kLeastKernel, architecture, nullptr);
          return its_name ? key_of(*its_name) : its_name;
        },
        .run =
            [&](Workplace& here) {
              return impl_->run_nvcc(kLeastKernel, architecture, *nvcc, nullptr, nullptr, here);
            }};
    return impl_->or_broken(
        impl_->run_nvcc(source, architecture, *nvcc, *needed, nullptr, workplace), least);
  });
}

std::expected<Result, std::string> Builder::build_hip(const std::string& source,
                                                      const std::string& architecture) {
  if (!is_architecture(architecture) && !is_amd_architecture(architecture)) {
    return std::unexpected(
        fmt::format("'{}' is no GPU architecture: give one such as gfx942 or sm_90", architecture));
  }
  const auto name = impl_->hip_name(source, architecture);
  if (!name) return std::unexpected(name.error());
  const auto tools = impl_->hip_tools(architecture);
  const auto key_of = [&](const std::string& one) -> std::expected<std::string, std::string> {
    if (!tools) return std::unexpected(tools.error());
    return impl_->hip_key(one, *tools);
  };
  return impl_->get_named(*name, key_of(*name), [&](Workplace& workplace) {
    const Impl::Least least{.compiler = tools->compiler(),
                            .architecture = architecture,
                            .key = [&]() -> std::expected<std::string, std::string> {
                              const auto its_name = impl_->hip_name(kLeastHipKernel, architecture);
                              return its_name ? key_of(*its_name) : its_name;
                            },
                            .run =
                                [&](Workplace& here) {
                                  return impl_->run_hip(kLeastHipKernel, architecture, *tools,
                                                        here);
                                }};
    return impl_->or_broken(impl_->run_hip(source, architecture, *tools, workplace), least);
  });
}

std::expected<Result, std::string> Builder::build_python(const std::string& source,
                                                         const Python& python,
                                                         const std::string& problem_source) {
  // Whoever builds an extension names the module that does it. (One who hides the name gets no
  // extension built ahead, and fails when the worker, which has no compiler, imports it.)
  if (source.find("cpp_extension") == std::string::npos &&
      source.find("load_inline") == std::string::npos) {
    return Result{};
  }
  auto key = impl_->python_key(source, python, problem_source);
  if (!key) return std::unexpected(std::move(key.error()));
  return impl_->get(*key, [&](Workplace& workplace) {
    return impl_->import_python(source, python, problem_source, workplace);
  });
}

std::expected<Result, std::string> Builder::Impl::get(const std::string& key,
                                                      const Cache::Build& build) const {
  auto entry = cache.get(key, build);
  if (!entry) return std::unexpected(std::move(entry.error()));
  Result result{.status = status_of(entry->status),
                .artifacts = {},
                .log = std::move(entry->log),
                .cached = entry->cached,
                .build_ms = entry->cached ? 0 : entry->build_ms};
  for (const Entry::File& file : entry->files) {
    result.artifacts.push_back({file.path.stem().string(), file.path});
  }
  return result;
}

std::expected<Result, std::string> Builder::Impl::get_named(
    const std::string& name, const std::expected<std::string, std::string>& key,
    const Cache::Build& build) const {
  if (!key) {
    const auto linked = cache.linked(name);
    if (!linked) return std::unexpected(key.error());
    return get(*linked, [&](Workplace&) { return std::unexpected(key.error()); });
  }
  auto result = get(*key, build);
  cache.link(name, *key);
  return result;
}

// ---- running a build
// -----------------------------------------------------------------------------

Builder::Impl::Place Builder::Impl::place(const Workplace& workplace) const {
  if (launcher.will_sandbox()) return {kBuildRoot, kIncludeRoot};
  return {workplace.build_folder().string(), options.include_directory.string()};
}

sandbox::Command Builder::Impl::command(const Workplace& workplace, const Place& place) const {
  sandbox::Command command;
  command.environment = {{"PATH", "/usr/bin:/bin"},
                         {"HOME", place.root},
                         {"LC_ALL", "C"},
                         {"TMPDIR", place.root + "/tmp"}};
  command.read_only = {{options.include_directory.string(), place.include}};
  command.writable = {{workplace.build_folder().string(), place.root}};
  command.working_directory = place.root;
  command.gives_way = true;
  command.limits.memory_bytes = options.memory_bytes;
  command.limits.max_processes = kMaxProcesses;
  command.limits.max_file_bytes = kMaxFileBytes;
  return command;
}

std::expected<Builder::Impl::Run, std::string> Builder::Impl::run(
    sandbox::Command command, const Workplace& workplace) const {
  const auto start = steady_clock::now();
  // Compilers give way to what an evaluation waits for: the import of PyTorch.
  if (is_there(kNice)) command.argv.insert(command.argv.begin(), {kNice, "-n", "10"});
  auto process = launcher.start(command);
  if (!process) return std::unexpected(std::move(process.error()));
  const auto deadline = start + options.time_limit;
  Run run;
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    const auto exit = process->wait(std::clamp(left, milliseconds(0), kLookInterval));
    if (exit) {
      run.exit = *exit;
      break;
    }
    run.timed_out = steady_clock::now() >= deadline;
    const Usage usage = measure_tree(workplace.build_folder(), kMaxBuild);
    run.too_much = usage.bytes > kMaxBuild.bytes || usage.entries > kMaxBuild.entries;
    if (run.timed_out || run.too_much) break;
  }
  process->kill();  // nothing may touch the folder from here on
  run.ms = std::chrono::duration<double, std::milli>(steady_clock::now() - start).count();
  run.output = process->output();
  return run;
}

// Puts together what a finished run means. `status` and `log` are for a run that ended by itself.
std::expected<Outcome, std::string> Builder::Impl::outcome(const Workplace& workplace,
                                                           const Run& run, Status status,
                                                           std::string log) const {
  bool keep = true;
  if (run.timed_out) {
    status = Status::timeout;
    keep = false;
    log = fmt::format("the build was stopped after {:.0f} s\n{}",
                      std::chrono::duration<double>(options.time_limit).count(), run.output);
  } else if (run.too_much) {
    status = Status::compile_error;
    log = fmt::format("the build was stopped: it wrote over {} GiB or {} files\n{}",
                      kMaxBuild.bytes >> 30, kMaxBuild.entries, run.output);
  } else if (status != Status::ok) {
    // These may be another machine's luck: not to be remembered. (A candidate that prints
    // these words gains nothing but another build.)
    if (run.exit.out_of_memory) {
      log =
          fmt::format("the build used over {} MiB of memory\n{}", options.memory_bytes >> 20, log);
      keep = false;
    } else if (!run.exit.exited ||
               log.find("Killed signal terminated program") != std::string::npos ||
               log.find("died due to signal 9 ") != std::string::npos) {
      keep = false;
    }
  }
  if (status != Status::ok && disk_nearly_full(workplace.build_folder())) {
    return std::unexpected(fmt::format(
        "the disk that holds the build cache {} is full: free some space, or use a cache folder on "
        "another disk",
        options.cache_directory.string()));
  }
  return Outcome{.status = std::string(name_of(status)),
                 .log = clean_log(log, place(workplace).prefixes()),
                 .build_ms = run.ms,
                 .keep = keep};
}

namespace {

// Writes the sources and makes tmp/ in a build folder. Error: one sentence.
std::expected<void, std::string> furnish(const Workplace& workplace, const Sources& sources) {
  Io<void> written;
  if (::mkdir((workplace.build_folder() / "tmp").c_str(), 0777) != 0) {
    written = std::unexpected(errno);
  }
  for (const auto& [name, source] : sources) {
    if (written) written = write_file(workplace.build_folder() / name, source, 0644, false);
  }
  if (written) return {};
  return std::unexpected(fmt::format(
      "cannot write to {} in the build cache ({}): free some space, or use another cache folder",
      workplace.build_folder().string(), error_text(written.error())));
}

}  // namespace

// ---- TVM-FFI
// -------------------------------------------------------------------------------------

std::expected<void, std::string> Builder::Impl::add_tvm_ffi(Key& key, const TvmFfi* tvm_ffi) const {
  if (tvm_ffi == nullptr) return {};
  key.add("tvm-ffi", tvm_ffi->version);
  const fs::path adapter = options.include_directory / kTvmFfiAdapter;
  const auto bytes = read_file(adapter, kMaxHeaderBytes);
  if (!bytes) {
    return std::unexpected(fmt::format("cannot read {} ({}): reinstall kernelbench",
                                       adapter.string(), error_text(bytes.error())));
  }
  key.add("tvm-ffi adapter", *bytes);
  return {};
}

// The library is copied, so that an entry of the cache is whole: it serves where the package is in
// another place, and the worker's sandbox need not show one.
std::expected<Sources, std::string> Builder::Impl::furniture(const char* name,
                                                             const std::string& source,
                                                             const TvmFfi* tvm_ffi) const {
  Sources sources{{name, source}};
  if (tvm_ffi == nullptr) return sources;
  const fs::path library = tvm_ffi->folder / "lib" / kTvmFfiLibrary;
  auto bytes = read_file(library, kMaxLibraryBytes);
  if (!bytes) {
    return std::unexpected(fmt::format("cannot read {} ({}): install apache-tvm-ffi again",
                                       library.string(), error_text(bytes.error())));
  }
  sources.emplace_back(kTvmFfiLibrary, std::move(*bytes));
  return sources;
}

void Builder::Impl::show_tvm_ffi(sandbox::Command& compile, const std::string& source,
                                 const TvmFfi* tvm_ffi, const Place& place) const {
  if (tvm_ffi == nullptr) return;
  const fs::path headers = tvm_ffi->folder / "include";
  const std::string shown = launcher.will_sandbox() ? kTvmFfiRoot : headers.string();
  compile.read_only.push_back({headers.string(), shown});
  // Its dlpack/ is of one release with it, and newer than what kernel.h needs.
  compile.argv.push_back("-I" + shown);
  if (problem::is_tvm_ffi_function(source)) {
    compile.argv.push_back(place.include + "/" + kTvmFfiAdapter);
  }
  compile.argv.emplace_back(kTvmFfiLibrary);
}

// ---- C++
// -----------------------------------------------------------------------------------------

std::expected<std::string, std::string> Builder::Impl::cpp_key(const std::string& source,
                                                               const TvmFfi* tvm_ffi) const {
  Key key("cpp");
  key.add("source", source);
  for (const std::string& flag : cpp_flags()) key.add("flag", flag);
  key.add("compiler", compiler.identity);
  if (auto added = add_own_headers(key, options.include_directory); !added) {
    return std::unexpected(std::move(added.error()));
  }
  if (auto added = add_tvm_ffi(key, tvm_ffi); !added) {
    return std::unexpected(std::move(added.error()));
  }
  if (auto added = add_dlpack(key, options.include_directory); !added) {
    return std::unexpected(std::move(added.error()));
  }
  return key.hex();
}

std::expected<Outcome, std::string> Builder::Impl::compile_cpp(const std::string& source,
                                                               const TvmFfi* tvm_ffi,
                                                               Workplace& workplace) const {
  const auto sources = furniture("kernel.cpp", source, tvm_ffi);
  if (!sources) return std::unexpected(sources.error());
  if (auto ready = furnish(workplace, *sources); !ready) {
    return std::unexpected(std::move(ready.error()));
  }
  const Place here = place(workplace);
  sandbox::Command compile = command(workplace, here);
  compile.argv = {compiler.path.string()};
  compile.argv.insert(compile.argv.end(), cpp_flags().begin(), cpp_flags().end());
  for (const std::string& argument : {"-I" + here.include, std::string("kernel.cpp"),
                                      std::string("-o"), std::string("kernel.so")}) {
    compile.argv.push_back(argument);
  }
  show_tvm_ffi(compile, source, tvm_ffi, here);
  return compile_library(compile, tvm_ffi, workplace);
}

// Runs a compiler that is to leave kernel.so.
std::expected<Outcome, std::string> Builder::Impl::compile_library(const sandbox::Command& command,
                                                                   const TvmFfi* tvm_ffi,
                                                                   Workplace& workplace) const {
  auto ran = run(command, workplace);
  if (!ran) return std::unexpected(std::move(ran.error()));
  if (!ran->succeeded()) return outcome(workplace, *ran, Status::compile_error, ran->output);
  std::vector<const char*> libraries{"kernel.so"};
  if (tvm_ffi != nullptr) libraries.insert(libraries.begin(), kTvmFfiLibrary);
  for (const char* library : libraries) {
    auto adopted = workplace.adopt(library, library, kMaxLibraryBytes);
    if (adopted) continue;
    if (!adopted.error().candidates_fault) return std::unexpected(adopted.error().text);
    workplace.forget();
    return outcome(workplace, *ran, Status::compile_error, adopted.error().text);
  }
  return outcome(workplace, *ran, Status::ok, ran->output);
}

// ---- CUDA
// ----------------------------------------------------------------------------------------

const std::expected<Nvcc, std::string>& Builder::Impl::nvcc() {
  std::call_once(nvcc_sought, [&] { nvcc_found = find_nvcc(options.nvcc_folders); });
  return nvcc_found;
}

// What a machine without nvcc knows of the key.
std::expected<std::string, std::string> Builder::Impl::cuda_name(const std::string& source,
                                                                 const std::string& architecture,
                                                                 const TvmFfi* tvm_ffi) const {
  Key key("cuda name");
  key.add("source", source);
  key.add("architecture", architecture_flag(architecture));
  for (const std::string& flag : cuda_flags()) key.add("flag", flag);
  for (const std::string& library : cuda_libraries(source)) key.add("library", library);
  if (auto added = add_own_headers(key, options.include_directory); !added) {
    return std::unexpected(std::move(added.error()));
  }
  if (auto added = add_tvm_ffi(key, tvm_ffi); !added) {
    return std::unexpected(std::move(added.error()));
  }
  return key.hex();
}

std::expected<std::string, std::string> Builder::Impl::cuda_key(const std::string& name,
                                                                const Nvcc& nvcc) const {
  Key key("cuda");
  key.add("name", name);
  key.add("nvcc", nvcc.identity);
  key.add("compiler", compiler.portable_identity);
  if (auto added = add_dlpack(key, options.include_directory); !added) {
    return std::unexpected(std::move(added.error()));
  }
  return key.hex();
}

std::expected<Outcome, std::string> Builder::Impl::run_nvcc(const std::string& source,
                                                            const std::string& architecture,
                                                            const Nvcc& nvcc, const TvmFfi* tvm_ffi,
                                                            const Hip* hip,
                                                            Workplace& workplace) const {
  const char* file = hip != nullptr ? "kernel.hip" : "kernel.cu";
  const auto sources = furniture(file, source, tvm_ffi);
  if (!sources) return std::unexpected(sources.error());
  if (auto ready = furnish(workplace, *sources); !ready) {
    return std::unexpected(std::move(ready.error()));
  }
  const Place here = place(workplace);
  sandbox::Command compile = command(workplace, here);
  compile.read_only.push_back({nvcc.root.string(), ""});
  compile.argv = {nvcc.path.string()};
  const auto add = [&](const std::vector<std::string>& arguments) {
    compile.argv.insert(compile.argv.end(), arguments.begin(), arguments.end());
  };
  add(cuda_flags());
  add({architecture_flag(architecture), "-ccbin=" + compiler.path.string(), "-I" + here.include});
  auto libraries = cuda_libraries(source);
  if (hip != nullptr) {
    // Its headers call the driver.
    libraries.emplace_back("cuda");
    // The system's own are where a compiler looks last.
    if (hip->root != "/usr") {
      compile.read_only.push_back({hip->include.string(), ""});
      add({"-isystem", hip->include.string()});
    }
    add(hip_on_nvcc_flags());
  }
  add({file, "-o", "kernel.so"});
  show_tvm_ffi(compile, source, tvm_ffi, here);
  add(library_flags(nvcc, libraries));
  return compile_library(compile, tvm_ffi, workplace);
}

std::expected<Outcome, std::string> Builder::Impl::or_broken(
    std::expected<Outcome, std::string> outcome, const Least& least) const {
  if (!outcome || !outcome->keep || outcome->status == name_of(Status::ok)) return outcome;
  // Before a candidate is blamed: a toolkit may lack a part, may not know the architecture, or may
  // refuse the host's compiler as too new. A success is remembered.
  const auto of = least.key();
  if (!of) return std::unexpected(of.error());
  Key key("device code works");
  key.add("key", *of);
  const auto proof = cache.get(key.hex(), [&](Workplace& other) {
    auto ran = least.run(other);
    if (ran && ran->status != name_of(Status::ok)) ran->keep = false;
    return ran;
  });
  if (!proof) return std::unexpected(proof.error());
  if (proof->status == name_of(Status::ok)) return outcome;
  return std::unexpected(fmt::format("{} cannot compile even an empty kernel for {} with {}: {}",
                                     least.compiler.string(), least.architecture,
                                     compiler.path.string(), first_error(proof->log)));
}

// ---- HIP
// -----------------------------------------------------------------------------------------

std::expected<HipTools, std::string> Builder::Impl::hip_tools(const std::string& architecture) {
  std::call_once(hip_sought, [&] {
    hipcc_found = find_hipcc(options.hip_folders);
    hip_headers_found = find_hip_headers(options.hip_folders);
  });
  const bool amd = is_amd_architecture(architecture);
  if (!amd && !nvcc()) return std::unexpected(nvcc().error());
  const auto& hip = amd ? hipcc_found : hip_headers_found;
  if (!hip) return std::unexpected(hip.error());
  HipTools tools{*hip, std::nullopt};
  if (!amd) tools.nvcc = *nvcc();
  return tools;
}

// What a machine without HIP knows of the key.
std::expected<std::string, std::string> Builder::Impl::hip_name(
    const std::string& source, const std::string& architecture) const {
  Key key("hip name");
  key.add("source", source);
  if (is_amd_architecture(architecture)) {
    key.add("architecture", architecture);
    for (const std::string& flag : hipcc_flags()) key.add("flag", flag);
  } else {
    key.add("architecture", architecture_flag(architecture));
    for (const std::string& flag : cuda_flags()) key.add("flag", flag);
    for (const std::string& flag : hip_on_nvcc_flags()) key.add("flag", flag);
    for (const std::string& library : cuda_libraries(source)) key.add("library", library);
  }
  if (auto added = add_own_headers(key, options.include_directory); !added) {
    return std::unexpected(std::move(added.error()));
  }
  return key.hex();
}

std::expected<std::string, std::string> Builder::Impl::hip_key(const std::string& name,
                                                               const HipTools& tools) const {
  Key key("hip");
  key.add("name", name);
  key.add("hip", tools.hip.identity);
  if (tools.nvcc) key.add("nvcc", tools.nvcc->identity);
  key.add("compiler", compiler.portable_identity);
  if (auto added = add_dlpack(key, options.include_directory); !added) {
    return std::unexpected(std::move(added.error()));
  }
  return key.hex();
}

std::expected<Outcome, std::string> Builder::Impl::run_hip(const std::string& source,
                                                           const std::string& architecture,
                                                           const HipTools& tools,
                                                           Workplace& workplace) const {
  const Hip& hip = tools.hip;
  if (tools.nvcc) return run_nvcc(source, architecture, *tools.nvcc, nullptr, &hip, workplace);
  if (auto ready = furnish(workplace, {{"kernel.hip", source}}); !ready) {
    return std::unexpected(std::move(ready.error()));
  }
  const Place here = place(workplace);
  sandbox::Command compile = command(workplace, here);
  compile.environment.emplace_back("HIP_PLATFORM", "amd");
  if (hip.root != "/usr") {
    compile.read_only.push_back({hip.root.string(), ""});
    compile.environment.emplace_back("ROCM_PATH", hip.root.string());
    compile.environment.emplace_back("HIP_PATH", hip.root.string());
  }
  compile.argv = {hip.hipcc.string()};
  const auto add = [&](const std::vector<std::string>& arguments) {
    compile.argv.insert(compile.argv.end(), arguments.begin(), arguments.end());
  };
  add(hipcc_flags());
  add({"--offload-arch=" + architecture, "-I" + here.include, "kernel.hip", "-o", "kernel.so"});
  add(hip_library_flags(hip, source));
  return compile_library(compile, nullptr, workplace);
}

// ---- Python
// --------------------------------------------------------------------------------------

namespace {

constexpr const char* kSomeArchitecture = "sm_90";

// Does it ask torch.utils.cpp_extension for nvcc? Too often said, this costs a build anew.
bool has_cuda_sources(const std::string& source) {
  for (const char* word : {"cuda_sources", "with_cuda", ".cu\"", ".cu'"})
    if (source.find(word) != std::string::npos) return true;
  return false;
}

}  // namespace

std::expected<std::string, std::string> Builder::Impl::python_key(
    const std::string& source, const Python& python, const std::string& problem_source) {
  Key key("python");
  key.add("source", source);
  key.add("problem", problem_source);
  key.add("python", python.identity);
  key.add("compiler", compiler.identity);
  if (has_cuda_sources(source)) {
    key.add("architecture", python.architecture);
    if (const auto& cuda = nvcc()) key.add("nvcc", cuda->identity);
  }
  const fs::path package = python.package_folder / "kernelbench_worker";
  if (!is_there(package / "prebuild.py")) {
    return std::unexpected(
        fmt::format("{} is missing: reinstall kernelbench, or set KERNELBENCH_HOME to its folder",
                    (package / "prebuild.py").string()));
  }
  const auto code = [](const fs::path& path) {
    return path.extension() == ".py" && !path.stem().string().ends_with("_test");
  };
  if (auto added = add_files(key, package, code); !added) {
    return std::unexpected(std::move(added.error()));
  }
  // What prebuild.py puts before PyTorch's headers.
  for (const char* folder : {"lean", "lean/ATen", "lean/torch"}) {
    if (!is_there(package / folder)) continue;
    key.add("headers", folder);
    if (auto added = add_files(key, package / folder, is_header); !added) {
      return std::unexpected(std::move(added.error()));
    }
  }
  return key.hex();
}

std::expected<Outcome, std::string> Builder::Impl::import_python(const std::string& source,
                                                                 const Python& python,
                                                                 const std::string& problem_source,
                                                                 Workplace& workplace) {
  if (auto ready = furnish(workplace, {{"candidate.py", source}, {"problem.py", problem_source}});
      !ready) {
    return std::unexpected(std::move(ready.error()));
  }
  const Place here = place(workplace);
  sandbox::Command import = command(workplace, here);
  import.argv = {python.executable,
                 "-I",
                 "-B",
                 (python.package_folder / "kernelbench_worker" / "prebuild.py").string(),
                 "--source",
                 here.root + "/candidate.py",
                 "--out",
                 here.root};
  if (!problem_source.empty()) {
    import.argv.insert(import.argv.end(), {"--problem", here.root + "/problem.py"});
  }
  if (!python.architecture.empty() && has_cuda_sources(source)) {
    import.argv.insert(import.argv.end(), {"--architecture", python.architecture});
  }
  const unsigned jobs =
      options.jobs != 0 ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
  // ninja may be a package of the same Python.
  import.environment[0].second =
      fs::path(python.executable).parent_path().string() + ":/usr/bin:/bin";
  import.environment.insert(import.environment.end(), {{"MAX_JOBS", std::to_string(jobs)},
                                                       {"TORCH_EXTENSIONS_DIR", here.root + "/ext"},
                                                       { "CXX",
                                                         compiler.path.string() }});
  if (const auto& cuda = nvcc(); cuda && has_cuda_sources(source)) {
    import.environment[0].second =
        cuda->path.parent_path().string() + ":" + import.environment[0].second;
    import.environment.emplace_back("CUDA_HOME", cuda->root.string());
    // Machine code for one GPU only; without a GPU for some, so that what is wrong shows.
    import.environment.emplace_back(
        "TORCH_CUDA_ARCH_LIST",
        torch_architecture(python.architecture.empty() ? kSomeArchitecture : python.architecture));
    import.read_only.push_back({cuda->root.string(), ""});
  }
  if (!python.thunderkittens.empty()) {
    import.environment.emplace_back("THUNDERKITTENS_ROOT", python.thunderkittens);
    import.read_only.push_back({python.thunderkittens, ""});
  }
  for (const std::string& folder : python.folders) import.read_only.push_back({folder, ""});
  import.read_only.push_back({python.package_folder.string(), ""});

  auto ran = run(import, workplace);
  if (!ran) return std::unexpected(std::move(ran.error()));
  if (ran->timed_out || ran->too_much) return outcome(workplace, *ran, Status::load_error, "");

  const auto load_error = [&](std::string_view why) {
    return outcome(workplace, *ran, Status::load_error, fmt::format("{}\n{}", why, ran->output));
  };
  if (!ran->succeeded()) {
    // Either a candidate that ended the process, or a Python that does not work. The first gets
    // what it deserves; the second must not be remembered.
    auto ended = load_error(fmt::format("importing the candidate ended Python with {} {}",
                                        ran->exit.exited ? "exit code" : "signal", ran->exit.code));
    if (ended) ended->keep = false;
    return ended;
  }
  auto folder = open_folder(workplace.build_folder());
  if (!folder) {
    return std::unexpected(fmt::format("cannot read {} in the build cache ({}): use another one",
                                       workplace.build_folder().string(),
                                       error_text(folder.error())));
  }
  std::expected<std::string, int> json = std::unexpected(0);
  if (auto file = open_beneath(folder->get(), "extensions.json")) {
    json = read_file(file->get(), kMaxExtensionsBytes);
  }
  if (!json)
    return load_error("importing the candidate ended Python before its builds were listed");
  auto extensions = parse_extensions(*json);
  if (!extensions) {
    return load_error(
        fmt::format("the candidate spoilt its build: extensions.json {}", extensions.error()));
  }
  const std::string& words = extensions->text.empty() ? ran->output : extensions->text;
  if (extensions->status != Status::ok) return outcome(workplace, *ran, extensions->status, words);
  for (const auto& [name, file] : extensions->extensions) {
    auto adopted = workplace.adopt(file, name + ".so", kMaxLibraryBytes);
    if (adopted) continue;
    if (!adopted.error().candidates_fault) return std::unexpected(adopted.error().text);
    workplace.forget();
    return outcome(workplace, *ran, Status::compile_error, adopted.error().text);
  }
  return outcome(workplace, *ran, Status::ok, words);
}

// ---- where the cache is
// --------------------------------------------------------------------------

fs::path default_cache_directory() {
  const auto absolute = [](const char* text) -> std::optional<fs::path> {
    if (text == nullptr || *text != '/') return std::nullopt;
    return fs::path(text);
  };
  if (auto cache = absolute(std::getenv("XDG_CACHE_HOME"))) return *cache / "kernelbench";
  auto home = absolute(std::getenv("HOME"));
  if (!home) {
    if (const passwd* user = ::getpwuid(::getuid())) home = absolute(user->pw_dir);
  }
  return home.value_or("/") / ".cache" / "kernelbench";
}

}  // namespace kb::build

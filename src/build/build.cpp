#include "build/build.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <utility>

#include "build/builder.h"
#include "build/files.h"
#include "build/log.h"

namespace kb::build {

namespace fs = std::filesystem;

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::uint32_t kMaxProcesses = 512;
constexpr std::uint64_t kMaxFileBytes = 512ull << 20;
// Of everything that one build leaves lying about; looked at twice a second.
constexpr Usage kMaxBuild{4ull << 30, 20'000};
constexpr milliseconds kLookInterval{500};

// Inside the sandbox.
constexpr const char* kNice = "/usr/bin/nice";
constexpr const char* kBuildRoot = "/build";
constexpr const char* kIncludeRoot = "/kernelbench/include";

Status status_of(std::string_view name) {
  for (const Status status : {Status::ok, Status::compile_error, Status::timeout}) {
    if (name == name_of(status)) return status;
  }
  return Status::load_error;
}

}  // namespace

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

// ---- what every build needs

std::string error_text(int error) {
  return std::error_code(error, std::generic_category()).message();
}

bool is_header(const fs::path& path) {
  return path.extension() == ".h";
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

std::expected<void, std::string> add_files(Key& key, const fs::path& folder,
                                           bool (*wanted)(const fs::path&)) {
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

std::expected<void, std::string> add_own_headers(Key& key, const fs::path& include) {
  return add_files(key, include / "kernelbench", is_header);
}

std::expected<void, std::string> add_dlpack(Key& key, const fs::path& include) {
  for (const fs::path& folder :
       {include, fs::path("/usr/local/include"), fs::path("/usr/include")}) {
    if (is_there(folder / "dlpack")) return add_files(key, folder / "dlpack", is_header);
  }
  return {};
}

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

// ---- running a build

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

// ---- what compilers of device code share

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

// ---- where the cache is

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

#include "worker/python_environment.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace kb::worker {
namespace fs = std::filesystem;
namespace {

// Everything a sandbox must bind for `import torch` to work, without importing it.
constexpr const char* kProbe = R"py(
import importlib.metadata as m, json, os, re, sys, sysconfig
def version(n):
    try: return m.version(n)
    except Exception: return None
def tvm_ffi():
    try: folder = os.path.abspath(str(m.distribution("apache-tvm-ffi").locate_file("tvm_ffi")))
    except Exception: return ""
    files = ["include/tvm/ffi/c_api.h", "lib/libtvm_ffi.so"]
    return folder if all(os.path.isfile(os.path.join(folder, f)) for f in files) else ""
def torch_cuda():
    try: text = m.distribution("torch").locate_file("torch/version.py").read_text()
    except Exception: return ""
    found = re.search(r"^cuda\b.*= '([0-9.]+)'", text, re.MULTILINE)
    return found[1] if found else ""
paths = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, os.path.dirname(sys.executable),
         os.path.dirname(os.path.realpath(sys.executable)), *sysconfig.get_paths().values(), *[p for p in sys.path if p]]
packages = ["triton", "helion", "nvidia-cutlass-dsl", "tilelang", "cuda-tile", "nvidia-cuda-tileiras",
            "cupy-cuda13x", "cupy-cuda12x", "cupy", "apache-tvm-ffi", "ninja"]
print(json.dumps({"python": sys.version.split()[0], "torch": version("torch"),
                  "torch_cuda": torch_cuda(),
                  "headers": os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")),
                  "tvm_ffi": tvm_ffi(),
                  "packages": {n: version(n) for n in packages if version(n)},
                  "folders": sorted({p for q in paths for p in (os.path.abspath(q), os.path.realpath(q)) if os.path.isdir(p)})}))
)py";

// Runs `program` with -I -c kProbe and returns what it printed; null when it could not be run or
// failed.
std::string run_probe(const std::string& program) {
  int out[2];
  if (::pipe(out) != 0) return {};
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(out[1], 1);
    ::close(out[0]);
    ::execlp(program.c_str(), program.c_str(), "-I", "-c", kProbe, static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(out[1]);
  std::string text;
  std::array<char, 4096> buffer;
  ssize_t got;
  while (child > 0 && (got = ::read(out[0], buffer.data(), buffer.size())) > 0)
    text.append(buffer.data(), static_cast<std::size_t>(got));
  ::close(out[0]);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) return {};
  return text;
}

bool is_system_folder(const std::string& folder) {
  for (const char* system : {"/usr", "/lib", "/lib64", "/bin", "/sbin"})
    if (folder == system || folder.starts_with(std::string(system) + "/"))
      return !folder.starts_with("/usr/local/");
  return false;
}

std::string find_on_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string rest = path ? path : "/usr/bin:/bin";
  for (std::size_t start = 0; start <= rest.size();) {
    const std::size_t end = std::min(rest.find(':', start), rest.size());
    const std::string folder = rest.substr(start, end - start);
    if (!folder.empty() && ::access((folder + "/" + name).c_str(), X_OK) == 0)
      return folder + "/" + name;
    start = end + 1;
  }
  return {};
}

}  // namespace

std::string choose_python(const std::string& option, const fs::path& installation_root) {
  if (!option.empty()) return option;
  if (const char* chosen = std::getenv("KERNELBENCH_PYTHON"); chosen && *chosen) return chosen;
  if (const char* active = std::getenv("VIRTUAL_ENV"); active && *active)
    return std::string(active) + "/bin/python";
  std::error_code ignored;
  for (const fs::path& root : {fs::current_path(ignored), installation_root})
    if (fs::path venv = root / ".venv/bin/python"; fs::exists(venv, ignored)) return venv.string();
  return "python3";
}

std::expected<PythonEnvironment, std::string> probe_python(const std::string& chosen) {
  PythonEnvironment environment;
  environment.executable = chosen.find('/') == std::string::npos
                               ? find_on_path(chosen)
                               : fs::absolute(chosen).lexically_normal().string();
  if (environment.executable.empty() || ::access(environment.executable.c_str(), X_OK) != 0)
    return std::unexpected(fmt::format(
        "there is no Python at {}: run `make setup` for a .venv, or give --python PATH", chosen));
  const auto json = nlohmann::json::parse(run_probe(environment.executable), nullptr, false);
  if (json.is_discarded() || !json.is_object())
    return std::unexpected(fmt::format(
        "{} does not run as a Python interpreter: give another with --python PATH", chosen));
  environment.python_version = json.value("python", std::string());
  int major = 0, minor = 0;
  if (std::sscanf(environment.python_version.c_str(), "%d.%d", &major, &minor) != 2 || major < 3 ||
      (major == 3 && minor < 10))
    return std::unexpected(
        fmt::format("{} is Python {}; 3.10 or later is needed: give another with --python PATH",
                    chosen, environment.python_version));
  if (!json["torch"].is_string())
    return std::unexpected(fmt::format(
        "{} has no PyTorch: run `make setup` for a .venv with it, or give --python PATH", chosen));
  environment.torch_version = json["torch"].get<std::string>();
  environment.torch_cuda = json.value("torch_cuda", std::string());
  if (std::sscanf(environment.torch_version.c_str(), "%d.%d", &major, &minor) != 2 || major < 2 ||
      (major == 2 && minor < 9))
    return std::unexpected(fmt::format(
        "{} has PyTorch {}; 2.9 or later is needed: run `make setup`, or give --python PATH",
        chosen, environment.torch_version));
  environment.has_headers = json.value("headers", false);
  for (const auto& [name, version] : json["packages"].items())
    if (version.is_string()) environment.packages[name] = version.get<std::string>();
  if (const char* root = std::getenv("THUNDERKITTENS_ROOT");
      root && *root == '/' &&
      ::access((std::string(root) + "/include/kittens.cuh").c_str(), R_OK) == 0)
    environment.thunderkittens = root;
  environment.tvm_ffi = json.value("tvm_ffi", std::string());
  // Sorted, so that a folder comes before those below it.
  for (const auto& entry : json["folders"]) {
    const auto folder = entry.get<std::string>();
    const auto covers = [&](const std::string& above) { return folder.starts_with(above + "/"); };
    if (!is_system_folder(folder) && folder != "/" &&
        std::ranges::none_of(environment.folders, covers))
      environment.folders.push_back(folder);
  }
  return environment;
}

std::string PythonEnvironment::version_of(std::string_view package) const {
  const auto found = packages.find(package);
  return found == packages.end() ? std::string() : found->second;
}

}  // namespace kb::worker

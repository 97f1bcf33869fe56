#include "build/nvcc.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <set>
#include <sstream>
#include <system_error>

#include "build/capture.h"
#include "build/files.h"

namespace kb::build {

namespace fs = std::filesystem;

namespace {

constexpr int kOldestMajor = 12;
constexpr int kOldestMinor = 4;
// "static" or "shared": which the candidate's library has of the CUDA runtime.
constexpr const char* kCudaRuntime = "static";
constexpr const char* kDriver = "cuda";

struct Library {
  std::string_view word;  // in the source: the name of a header, or how those of a library begin
  std::vector<std::string> names;
};

const std::vector<Library>& known_libraries() {
  static const std::vector<Library> libraries{{"cublas", {"cublas", "cublasLt"}},
                                              {"cudnn.h", {"cudnn"}},
                                              {"cufft", {"cufft"}},
                                              {"curand", {"curand"}},
                                              {"cusparse", {"cusparse"}},
                                              {"cusolver", {"cusolver"}},
                                              {"nvrtc", {"nvrtc"}},
                                              {"cuda.h", {kDriver}}};
  return libraries;
}

bool in_system(const fs::path& path) {
  return path.native().starts_with("/usr/") || path == "/usr";
}

// Null for what is no toolkit's nvcc: a script in somebody's home, say, whose parent folder must
// not be shown to a candidate; or a link to ccache.
std::expected<Nvcc, int> examine(const fs::path& found) {
  std::error_code error;
  Nvcc nvcc;
  nvcc.path = fs::canonical(found, error);
  if (error || nvcc.path.filename() != "nvcc") return std::unexpected(0);
  nvcc.root = nvcc.path.parent_path().parent_path();
  if (!in_system(nvcc.root) &&
      !(is_there(nvcc.root / "nvvm") && is_there(nvcc.root / "bin" / "ptxas"))) {
    return std::unexpected(0);
  }
  const auto words = capture({nvcc.path.string(), "--version"});
  if (!words) return std::unexpected(words.error());
  // "Cuda compilation tools, release 13.0, V13.0.88"
  const std::size_t version = words->find(", V");
  if (version == std::string::npos) return std::unexpected(0);
  nvcc.version = words->substr(version + 3, words->find_first_of(" \n", version + 3) - version - 3);
  nvcc.identity = fmt::format("{}\n{}", nvcc.path.string(), *words);
  for (const char* folder : {"lib64", "targets/x86_64-linux/lib", "lib"}) {
    if (is_there(nvcc.root / folder / "libcudart_static.a")) {
      nvcc.libraries = nvcc.root / folder;
      break;
    }
  }
  return nvcc;
}

}  // namespace

std::vector<fs::path> path_folders() {
  std::vector<fs::path> folders;
  const char* search = std::getenv("PATH");
  std::istringstream path(search == nullptr ? "" : search);
  for (std::string folder; std::getline(path, folder, ':');) {
    if (folder.starts_with('/')) folders.emplace_back(folder);
  }
  return folders;
}

std::vector<fs::path> nvcc_folders() {
  std::vector<fs::path> folders;
  if (const char* home = std::getenv("CUDA_HOME"); home != nullptr && *home == '/') {
    folders.push_back(fs::path(home) / "bin");
  }
  folders.emplace_back("/usr/local/cuda/bin");
  std::ranges::move(path_folders(), std::back_inserter(folders));
  return folders;
}

std::expected<Nvcc, std::string> find_nvcc(const std::vector<fs::path>& folders) {
  const std::string advice = fmt::format(
      "install the CUDA toolkit {}.{} or later (nvcc), in /usr/local/cuda or in the folder that "
      "CUDA_HOME names",
      kOldestMajor, kOldestMinor);
  std::string why = "no CUDA compiler was found";
  std::set<fs::path> seen;
  for (const fs::path& folder : folders) {
    const fs::path path = folder / "nvcc";
    if (!seen.insert(path).second || ::access(path.c_str(), X_OK) != 0) continue;
    auto nvcc = examine(path);
    if (!nvcc) {
      why = fmt::format("{} is not a CUDA toolkit's compiler, or does not run", path.string());
      continue;
    }
    int minor = 0;
    if (std::sscanf(nvcc->version.c_str(), "%d.%d", &nvcc->major, &minor) == 2 &&
        std::pair(nvcc->major, minor) >= std::pair(kOldestMajor, kOldestMinor)) {
      return *nvcc;
    }
    why = fmt::format("the CUDA compiler {} is too old ({})", path.string(), nvcc->version);
  }
  return std::unexpected(fmt::format("{}: {}", why, advice));
}

bool is_architecture(std::string_view word) {
  if (!word.starts_with("sm_")) return false;
  word.remove_prefix(3);
  if (word.ends_with('a') || word.ends_with('f')) word.remove_suffix(1);
  return (word.size() == 2 || word.size() == 3) && word[0] != '0' &&
         std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

std::string torch_architecture(const std::string& architecture) {
  const std::string number = architecture.substr(3);
  const std::size_t digits = std::min(number.find_first_not_of("0123456789"), number.size());
  return number.substr(0, digits - 1) + "." + number.substr(digits - 1);
}

std::string architecture_flag(const std::string& architecture) {
  // Not -arch=sm_90a: that compiles for plain compute_90 as well, which takes twice the time and
  // fails where the "a" is needed.
  std::string number = architecture.substr(3);
  const bool plain = number.find_first_not_of("0123456789") == std::string::npos;
  if (plain && (number.size() > 2 || number >= "90")) number += 'a';
  return fmt::format("-gencode=arch=compute_{0},code=sm_{0}", number);
}

const std::vector<std::string>& cuda_flags() {
  // As cpp_flags(), for the host's side. The two --e flags only allow more: constexpr functions and
  // lambdas of the host in kernels. --as-needed: a header of a library does not yet use it.
  static const std::vector<std::string> flags{
      "-std=c++20",
      "-O3",
      "-shared",
      fmt::format("-cudart={}", kCudaRuntime),
      "--expt-relaxed-constexpr",
      "--extended-lambda",
      "--compiler-options=-fPIC,-fno-gnu-unique,-fdiagnostics-color=never,-fmax-errors=50",
      "--linker-options=-z,defs,-z,relro,-z,now,--as-needed"};
  return flags;
}

std::vector<std::string> cuda_libraries(std::string_view source) {
  std::vector<std::string> libraries;
  for (const Library& library : known_libraries()) {
    if (source.find(library.word) != std::string_view::npos) {
      libraries.insert(libraries.end(), library.names.begin(), library.names.end());
    }
  }
  return libraries;
}

std::vector<std::string> library_flags(const Nvcc& nvcc,
                                       const std::vector<std::string>& libraries) {
  std::vector<std::string> flags;
  bool loaded = false;
  for (const std::string& library : libraries) {
    if (library != kDriver) {
      flags.push_back("-l" + library);
      loaded = true;
    } else if (!nvcc.libraries.empty() && is_there(nvcc.libraries / "stubs" / "libcuda.so")) {
      flags.push_back("-l" + library);
    } else {
      flags.emplace_back("--linker-options=-z,undefs");
    }
  }
  if (loaded && !nvcc.libraries.empty()) {
    flags.push_back("--linker-options=-rpath," + nvcc.libraries.string());
  }
  return flags;
}

}  // namespace kb::build

// Which Python runs the torch workers, and what a sandbox must show of the host for it to start.
#pragma once

#include <expected>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kb::worker {

struct PythonEnvironment {
  std::string
      executable;  ///< absolute, links kept (a venv's python finds its packages by its own path)
  std::string python_version;  ///< "3.11.2"
  std::string torch_version;   ///< "2.11.0"
  std::string torch_cuda;      ///< the CUDA that PyTorch was made for, "13.0"; empty: none
  std::vector<std::string>
      folders;               ///< prefixes and site-packages, absolute, without those below another
  bool has_headers = false;  ///< Python.h, which extensions and Triton's launchers include
  /// Version of each package that a candidate's language comes with, where it is installed: by the
  /// name that pip knows it by.
  std::map<std::string, std::string, std::less<>> packages;
  std::string
      thunderkittens;   ///< $THUNDERKITTENS_ROOT where it holds include/kittens.cuh, or empty
  std::string tvm_ffi;  ///< where apache-tvm-ffi has its include/ and lib/, absolute, or empty

  /// Of one of `packages`, or empty.
  std::string version_of(std::string_view package) const;
};

/// `--python PATH` if given, else $KERNELBENCH_PYTHON, else an active virtual environment's, else
/// `.venv` in the working folder or the installation root, else python3 on PATH.
std::string choose_python(const std::string& option,
                          const std::filesystem::path& installation_root);

/// Asks the interpreter (a few tens of milliseconds; torch is not imported). Error: one sentence:
/// no such file, older than 3.10, or no torch ≥ 2.9 in it, and what to do.
std::expected<PythonEnvironment, std::string> probe_python(const std::string& executable);

}  // namespace kb::worker

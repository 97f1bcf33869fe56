// A folder for the time that something takes.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "build/files.h"

namespace kb::build {

/// Made in `base`, which is made where it is missing (by default the system's folder for temporary
/// files), and removed with all that is in it, whoever wrote that. False where it could not be
/// made.
class Scratch {
 public:
  Scratch() {
    std::error_code error;
    const auto base = std::filesystem::temp_directory_path(error);
    if (!error) make(base);
  }
  explicit Scratch(const std::filesystem::path& base) { make(base); }
  ~Scratch() {
    if (!path_.empty()) static_cast<void>(remove_tree(path_));
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }
  explicit operator bool() const { return !path_.empty(); }

 private:
  void make(const std::filesystem::path& base) {
    std::error_code ignored;  // shows in the next step
    std::filesystem::create_directories(base, ignored);
    std::string name = (base / ".kernelbench-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }

  std::filesystem::path path_;
};

}  // namespace kb::build

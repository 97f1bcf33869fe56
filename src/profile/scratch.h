// A folder for the time that something takes.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "build/files.h"

namespace kb::profile {

/// Made in the system's folder for temporary files, and removed with all that is in it, whoever
/// wrote that. False where it could not be made.
class Scratch {
 public:
  Scratch() {
    std::error_code error;
    std::string name =
        (std::filesystem::temp_directory_path(error) / "kernelbench-profile-XXXXXX").string();
    if (!error && ::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~Scratch() {
    if (!path_.empty()) static_cast<void>(build::remove_tree(path_));
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }
  explicit operator bool() const { return !path_.empty(); }

 private:
  std::filesystem::path path_;
};

}  // namespace kb::profile

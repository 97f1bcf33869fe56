// A problem set on disk, by id.
#pragma once

#include <expected>
#include <filesystem>
#include <string>
#include <vector>

#include "problem/id.h"
#include "problem/problem_file.h"

namespace kb::problem {

/// A folder with level1/, level2/, … holding `<number>_<name>.py` (flat names like `level1_19.py`
/// are not accepted). Other files and folders in it are left alone.
class Catalog {
 public:
  /// Error: one sentence (the folder does not exist or has no problems, two files have one id …).
  static std::expected<Catalog, std::string> open(const std::filesystem::path& root);
  struct Entry {
    Id id;
    std::string name;
    std::filesystem::path path;
  };
  const std::vector<Entry>& entries() const { return entries_; }  ///< in order of id
  /// Error: one sentence, which names the ids that exist when this one does not.
  std::expected<Problem, std::string> load(Id id) const;

 private:
  std::vector<Entry> entries_;
  std::filesystem::path root_;
};

}  // namespace kb::problem

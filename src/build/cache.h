// A folder cache whose entries are named by what they were made from.
//
//   <cache>/ab/ab12…/     an entry: manifest.json and the files that it lists, all mode 0444
//   <cache>/locks/ab12…   flock: exclusive while the entry is made, repaired or dropped, shared
//   while
//                         it is looked up
//   <cache>/links/12ab…   a file that holds the key of an entry: its other name
//   <cache>/tmp/…         one folder for each build in progress; its maker holds a flock on it
//
// An entry appears whole, by one rename(2), and every file in it is checked against the size and
// the SHA-256 in the manifest each time it is used. A lock ends with its holder, so kill -9 leaves
// nothing but a folder in tmp/, which the next process that opens the cache or builds removes: it
// can take that folder's lock. Nothing here is a secret; whoever may write to the folder may decide
// what it holds.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "build/files.h"

namespace kb::build {

/// Where one build works. Removed, with all that was left in it, when the build is over.
class Workplace {
 public:
  Workplace(std::filesystem::path build_folder, std::filesystem::path entry_folder)
      : build_folder_(std::move(build_folder)), entry_folder_(std::move(entry_folder)) {}

  /// For the build to write to. What it leaves there is not trusted.
  const std::filesystem::path& build_folder() const { return build_folder_; }

  struct Refusal {
    bool candidates_fault = false;  ///< false: our disk
    std::string text;               ///< one sentence
  };
  /// Copies a regular file from the build folder into the future entry as `name`.
  std::expected<void, Refusal> adopt(const std::filesystem::path& relative, const std::string& name,
                                     std::uint64_t max_bytes);

  /// Takes back everything adopted so far.
  void forget();

  struct File {
    std::string name;
    Digest digest;
  };
  const std::vector<File>& files() const { return files_; }

 private:
  std::filesystem::path build_folder_;
  std::filesystem::path entry_folder_;
  std::vector<File> files_;
};

/// What a build came to.
struct Outcome {
  std::string status;  ///< a word of the caller's
  std::string log;     ///< valid UTF-8
  double build_ms = 0;
  bool keep = true;  ///< false: not to be cached (a time-out)
};

struct Entry {
  std::string status;
  std::string log;
  double build_ms = 0;  ///< of the build that made it
  struct File {
    std::string name;
    std::filesystem::path path;
  };
  std::vector<File> files;
  bool cached = false;  ///< it was there already
};

class Cache {
 public:
  struct Options {
    std::filesystem::path directory;
    std::uint64_t max_bytes = 10ull << 30;
    /// An entry used within this time is never dropped, whatever the size of the cache: the paths
    /// of an Entry stay good for so long.
    std::chrono::seconds keep_recent{3600};
  };
  /// Makes the folder if it is missing and sweeps it. A folder that cannot be written to is fine as
  /// long as everything that is asked for is in it. Error: one sentence.
  static std::expected<Cache, std::string> open(Options options);
  Cache(Cache&&) noexcept;
  ~Cache();

  using Build = std::function<std::expected<Outcome, std::string>(Workplace&)>;
  /// The entry `key` (64 hex digits), made by `build` if it is missing or damaged. Of any number of
  /// threads and processes that want one key at a time, one builds and the others wait for it.
  /// Error: one sentence, `build`'s own or about the folder. Thread-safe.
  std::expected<Entry, std::string> get(const std::string& key, const Build& build) const;

  /// Gives the entry `key`, if there is one, another name (64 hex digits) under which a machine
  /// finds it that cannot know the key; the last to do so wins. Best effort.
  void link(const std::string& name, const std::string& key) const;
  /// The key that `name` stands for. Its entry may be gone.
  std::optional<std::string> linked(const std::string& name) const;

  /// Drops the least recently used entries until the others fit into `max_bytes`. get() calls it
  /// now and then. Does nothing while another process is at it.
  void trim() const;
  /// Removes what dead processes left in tmp/.
  void sweep() const;

  /// Where an entry is or would be.
  std::filesystem::path entry_folder(const std::string& key) const;

 private:
  struct Impl;
  explicit Cache(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kb::build

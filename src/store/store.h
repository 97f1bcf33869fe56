// The results of a run, in SQLite (WAL): one row an evaluation, written in one transaction when it
// is done, so that a run that is killed at any moment loses at most the evaluations in flight and
// judges nothing twice.
#pragma once

#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kb::store {

/// What makes two evaluations the same: all of it must match for a result to be reused.
struct Key {
  std::string problem;  ///< "level1/19" or a path
  int sample = 0;
  std::string problem_hash;
  std::string candidate_hash;
  std::string device;    ///< "cpu"
  std::string settings;  ///< canonical JSON of what changes a result: precision, size, rules …
};

struct Row {
  Key key;
  std::string verdict;      ///< as in the JSON
  std::string result_json;  ///< the object that `eval --json` prints
  std::string finished_at;  ///< ISO 8601, UTC; filled in by the store
};

/// One verdict means that nothing was learnt about the candidate.
inline constexpr std::string_view kInfrastructureError = "infrastructure_error";

/// Open on one file. Several threads may use one Store, and several processes one file; a Store
/// does not survive fork().
class Store {
 public:
  /// Opens or creates. Error: one sentence (corrupt database: says to move it away; no write
  /// permission; full disk; made by a later version; not one of ours). Reads the whole file once,
  /// to find damage before anything is judged.
  static std::expected<Store, std::string> open(const std::filesystem::path& file);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  /// The result of an equal key, if there is one. `infrastructure_error` rows are not returned
  /// (they are tried again).
  std::expected<std::optional<Row>, std::string> find(const Key& key);
  /// Inserts or replaces; but an infrastructure_error never replaces another verdict of an equal
  /// key, which another process may have reached meanwhile. When it returns without error the row
  /// is on the disk. Error: one sentence (disk full …); nothing is half written.
  std::expected<void, std::string> put(const Row& row);
  /// The newest row of each (problem, sample), ordered by problem (numbers in it by value) and
  /// sample.
  std::expected<std::vector<Row>, std::string> rows();

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace kb::store

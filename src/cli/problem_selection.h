// What the commands over a problem set share: which set, and which of its problems.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "problem/problem.h"

namespace kb::cli {

struct SelectionFlags {
  std::string set;  ///< as problem::find_set takes it
  int level = 0;
  std::string family, name, subset;
};

/// --problems alone.
void add_set_option(CLI::App& app, std::string& set);
/// --problems, --level, --family, --name, --subset.
void add_selection_options(CLI::App& app, SelectionFlags& flags);

/// A set of which problems are selected.
class Selection {
 public:
  /// UsageError for a set, family or subset that does not exist.
  explicit Selection(const SelectionFlags& flags);
  const problem::Catalog& catalog() const { return catalog_; }
  /// By what can be told without reading the file: level and subset.
  bool has(const problem::Catalog::Entry& entry) const;
  /// By all of it; `problem` is the entry's.
  bool has(const problem::Catalog::Entry& entry, const problem::Problem& problem) const;
  /// Why the subset has the problem; empty without one.
  std::string reason(problem::Id id) const;
  /// True when a filter reads the file.
  bool reads() const { return !flags_.family.empty() || !flags_.name.empty(); }

 private:
  SelectionFlags flags_;
  std::filesystem::path root_;
  problem::Catalog catalog_;
  std::map<problem::Id, std::string> subset_;
};

}  // namespace kb::cli

// What the commands over a run folder share: which samples are meant, and work on many at a time.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "problem/problem.h"

namespace kb::cli {

struct SampleFlags {
  std::string folder;
  std::vector<int> levels;
  std::string ids;
  /// The set, as problem::find_set takes it; empty: the one that the folder's generate.json names,
  /// else the bundled one.
  std::string problems;
  std::string subset;  ///< of that set
  int draw = 0;
  std::uint64_t seed = 0;
  unsigned jobs = 0;
};

void add_sample_options(CLI::App& app, SampleFlags& flags);
/// --jobs alone.
void add_jobs_option(CLI::App& app, SampleFlags& flags);

/// In order of their ids. UsageError when there is none.
std::vector<problem::Sample> select_samples(const SampleFlags& flags);

/// The problem set of --problems. UsageError when there is none.
problem::Catalog open_set(const SampleFlags& flags);

/// "level1/19 sample 0"
std::string label_of(const problem::Sample& sample);

/// Compilations at a time beside so many judges of GPUs: some CPUs are for those, their workers and
/// the imports. `jobs`: what --jobs says.
unsigned compilers_beside(std::size_t judges, unsigned jobs);

/// Calls `work` with 0 … count - 1, on `threads` threads (0: one per CPU), and returns when all
/// calls have.
void in_parallel(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& work);

}  // namespace kb::cli

// Profiles one model at a time: why a kernel is fast or slow, never whether it is.
//
// The model is run by a small worker of its own (python/kernelbench_worker/profiled.py), which is
// the child of Nsight Compute, both in one sandbox with a writable folder for the report. The
// report is then printed in a second sandbox: the candidate could have written it, and what reads
// it parses a hostile file. Without counters the same worker uses PyTorch's profiler.
//
// The candidate shares the profiled process and can make the profile say anything. No verdict and
// no time of a result comes from here.
#pragma once

#include <expected>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "build/build.h"
#include "judge/evaluator.h"
#include "judge/options.h"
#include "problem/problem.h"
#include "profile/launch.h"
#include "profile/ncu.h"
#include "profile/operators.h"

namespace kb::profile {

/// What is known of one model. At most one of counters and operators is there.
struct Side {
  std::string name;  ///< "candidate", "reference" or "compiled"
  std::optional<Counters> counters;
  bool cut_short = false;  ///< there were more launches than kMaxLaunches
  std::optional<Operators> operators;
  std::string error;                         ///< one sentence, where there is neither
  std::vector<std::filesystem::path> files;  ///< what was kept: reports, traces, generated code
};

struct Profile {
  std::string profiler;  ///< "Nsight Compute 2025.3.0", "PyTorch's profiler"
  std::string obstacle;  ///< why there are no counters, in a sentence; empty where there are
  std::vector<Side> sides;
};

class Profiler {
 public:
  /// `folder` is where reports are kept; made if missing. `device` is the one that options name.
  Profiler(const judge::Environment& environment, const judge::Options& options,
           const Device& device, std::filesystem::path folder);

  /// The problem's own model.
  void reference(const problem::Problem& problem);
  /// The same through torch.compile, with the code that this makes.
  void compiled(const problem::Problem& problem);
  /// `build` is ok. A native candidate for the CPU has nothing that could be looked at, and gets
  /// that for an error.
  void candidate(const problem::Problem& problem, const problem::Candidate& candidate,
                 const build::Result& build);

  const Profile& profile() const { return profile_; }

 private:
  struct Run;
  void add(const std::string& name, const std::string& subject, const problem::Problem& problem,
           nlohmann::json request, const std::vector<std::filesystem::path>& shown);
  Side counted(Run& run, const std::string& name);
  Side operated(Run& run, const std::string& name);
  std::expected<void, std::string> execute(Run& run, std::vector<std::string> argv);
  std::expected<std::vector<Launch>, std::string> read_report(const std::filesystem::path& report);
  void keep(Side& side, const Run& run, const char* file, const std::string& as,
            std::uint64_t max_bytes);

  const judge::Environment& environment_;
  judge::Options options_;
  WorkerNeeds needs_;
  std::filesystem::path folder_;
  std::optional<Ncu> ncu_;
  Profile profile_;
};

}  // namespace kb::profile

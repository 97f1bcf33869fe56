// kernelbench bench: generate, run and score in one command. Each of them resumes, so it does.

#include <algorithm>
#include <string>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/generate.h"
#include "cli/loop.h"
#include "cli/output_file.h"
#include "cli/run.h"
#include "cli/score.h"
#include "problem/problem.h"

namespace kb::cli {
namespace {

struct BenchFlags {
  GenerateFlags generate;
  RunFlags run;
  ScoreFlags score;
};

int bench(BenchFlags flags) {
  if (!flags.score.html.empty()) expect_output_folder(flags.score.html);
  share_words(flags.generate.prompting, flags.run.judging);
  const std::string& folder = flags.run.samples.folder = flags.score.run = flags.generate.folder;
  flags.run.samples.problems = flags.generate.problems;
  const Asked asked = generate(flags.generate);
  // A few questions without an answer do not keep the others from being judged.
  if (asked.stopped || (!asked.finished && !problem::find_samples(folder))) return kFindings;
  const int judged = judge_folder(flags.run);
  const int scored = score(flags.score);
  return asked.finished ? std::max(judged, scored) : kFindings;
}

}  // namespace

Command add_bench(CLI::App& root) {
  auto flags = std::make_shared<BenchFlags>();
  auto* app = root.add_subcommand("bench",
                                  "Ask a model, judge its kernels and score them; again to resume");
  add_question_options(*app, flags->generate);
  add_loop_options(*app, flags->generate.prompting, flags->generate.asking, flags->run.judging);
  add_jobs_option(*app, flags->run.samples);
  add_html_option(*app, flags->score);
  app->footer(
      "The same as generate, run and score, one after the other, in one folder.\n"
      "Example:  kernelbench bench runs/a --provider replay:examples/answers --backend cpp \\\n"
      "            --level 1 --ids 19,26,36,47 --samples 2 --size small --html report.html");
  return {app, [flags] { return bench(*flags); }};
}

}  // namespace kb::cli

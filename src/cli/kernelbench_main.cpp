// The program: parses the command line, runs one command, turns failures into one sentence.

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <cstdio>
#include <vector>

#include "cli/commands.h"
#include "cli/failure.h"
#include "version.h"

int main(int argc, char** argv) {
  using namespace kb::cli;  // NOLINT: a program's only file
  // A reader that goes away (`| head`) ends a write with an error, not the judge in mid-evaluation.
  std::signal(SIGPIPE, SIG_IGN);
  spdlog::set_default_logger(spdlog::stderr_color_mt("kernelbench"));
  spdlog::set_pattern("kernelbench: %^%l%$: %v");

  CLI::App app{"Is this machine-written kernel correct, and how much faster than PyTorch is it?",
               "kernelbench"};
  app.set_version_flag("--version", KERNELBENCH_VERSION);
  app.require_subcommand(1);
  app.footer("Start with:  kernelbench doctor\n             kernelbench run examples/run_cpu");
  auto* problems =
      app.add_subcommand("problems", "Problem sets: list, show, check, import, export");
  problems->require_subcommand(1);
  const std::vector<Command> commands = {add_doctor(app),
                                         add_problems_list(*problems),
                                         add_problems_show(*problems),
                                         add_prompt(app),
                                         add_generate(app),
                                         add_refine(app),
                                         add_bench(app),
                                         add_problems_check(*problems),
                                         add_problems_import(*problems),
                                         add_problems_export(*problems),
                                         add_eval(app),
                                         add_compile(app),
                                         add_profile(app),
                                         add_run(app),
                                         add_serve(app),
                                         add_baseline(app),
                                         add_backends(app),
                                         add_score(app),
                                         add_compare(app),
                                         add_leaderboard(app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    fmt::print(stderr, "kernelbench: {} (see kernelbench --help)\n", error.what());
    return kUsage;
  }
  try {
    for (const auto& command : commands)
      if (command.app->parsed()) return command.run();
  } catch (const UsageError& error) {
    std::fflush(stdout);
    fmt::print(stderr, "kernelbench: {}\n", error.what());
    return kUsage;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "kernelbench: internal error: {}\n", error.what());
    return kUsage;
  }
  return kUsage;
}

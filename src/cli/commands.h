// The commands. Each adds itself to the application; the returned function runs it and gives the
// exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace kb::cli {

/// A command's subcommand and what to do when it was chosen.
struct Command {
  CLI::App* app;
  std::function<int()> run;
};

Command add_doctor(CLI::App& root);
Command add_problems_list(CLI::App& problems);
Command add_problems_show(CLI::App& problems);
Command add_prompt(CLI::App& root);
Command add_generate(CLI::App& root);
Command add_refine(CLI::App& root);
Command add_bench(CLI::App& root);
Command add_problems_check(CLI::App& problems);
Command add_problems_import(CLI::App& problems);
Command add_problems_export(CLI::App& problems);
Command add_eval(CLI::App& root);
Command add_compile(CLI::App& root);
Command add_profile(CLI::App& root);
Command add_run(CLI::App& root);
Command add_serve(CLI::App& root);
Command add_backends(CLI::App& root);
Command add_baseline(CLI::App& root);
Command add_score(CLI::App& root);
Command add_compare(CLI::App& root);
Command add_leaderboard(CLI::App& root);

}  // namespace kb::cli

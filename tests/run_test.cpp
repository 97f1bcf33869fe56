// `run` and `score`: a folder of samples, killed and resumed, scored, and exported for
// KernelBench's scripts.

#include <gmock/gmock.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "run_command.h"
#include "store/store.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers
using testing::HasSubstr;

std::string relu(const std::string& comment) {
  return "// " + comment +
         "\n#include <kernelbench/kernel.h>\nextern \"C\" int kb_run(const kb_call* call) {\n  "
         "const float* x = kb_input_f32(call, 0);\n"
         "  float* y = kb_output_f32(call, 0);\n  for (int64_t i = 0, n = "
         "kb_numel(&call->inputs[0]); i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0;\n  return 0;\n}\n";
}

std::vector<std::string> run_arguments(const TemporaryFolder& folder,
                                       std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {
      "run", folder.path().string(), "--size", "small", "--no-stress", "--pairs", "5", "--trials",
      "2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<kb::store::Row> rows_of(const TemporaryFolder& folder) {
  auto store = kb::store::Store::open(folder.path() / "kernelbench.db");
  EXPECT_TRUE(store);
  auto rows = store ? store->rows() : std::vector<kb::store::Row>{};
  EXPECT_TRUE(rows);
  return rows ? *rows : std::vector<kb::store::Row>{};
}

TEST(Run, JudgesScoresAndExports) {
  TemporaryFolder folder;
  folder.write("level_1_problem_19_sample_0_kernel.cpp", relu("good"));
  folder.write("level_1_problem_19_sample_1_kernel.cpp",
               "extern \"C\" int kb_run(const void*) { return 1; }\n");
  folder.write(
      "level_1_problem_47_sample_0_kernel.cpp",
      "#include <kernelbench/kernel.h>\nextern \"C\" int kb_run(const kb_call*) { return 0; }\n");
  folder.write("notes.txt", "not a sample");
  const auto run = kernelbench(run_arguments(folder));
  EXPECT_EQ(run.code, 0) << run.err << run.out;
  EXPECT_THAT(run.out, HasSubstr("kernelbench score"));

  const auto score = kernelbench({"score", folder.path().string(), "--json"});
  EXPECT_EQ(score.code, 0) << score.err;
  const auto json = nlohmann::json::parse(score.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << score.out;

  std::ifstream file(folder.path() / "eval_results.json");
  const auto results = nlohmann::json::parse(file, nullptr, false);
  ASSERT_FALSE(results.is_discarded());
  ASSERT_EQ(results["19"].size(), 2u);
  EXPECT_EQ(results["19"][0]["sample_id"], 0);
  EXPECT_EQ(results["19"][0]["correctness"], true);
  EXPECT_GT(results["19"][0]["runtime"].get<double>(), 0);
  EXPECT_EQ(results["19"][1]["correctness"], false);
  EXPECT_EQ(results["47"][0]["correctness"], false);

  const auto table = kernelbench({"score", folder.path().string()});
  EXPECT_THAT(table.out, HasSubstr("fast"));
}

TEST(Run, ResumesAfterAKillAndJudgesNothingTwice) {
  TemporaryFolder folder;
  constexpr int kSamples = 6;
  for (int i = 0; i < kSamples; ++i)
    folder.write("level_1_problem_19_sample_" + std::to_string(i) + "_kernel.cpp",
                 relu(std::to_string(i)));
  auto arguments = run_arguments(folder);
  arguments.insert(arguments.begin(), KERNELBENCH_BINARY);
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::freopen("/dev/null", "w", stdout);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  // Killed as soon as two results are stored, at whatever it is doing then.
  std::vector<kb::store::Row> before;
  for (int i = 0; i < 1200 && before.size() < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (std::filesystem::exists(folder.path() / "kernelbench.db"))
      if (auto store = kb::store::Store::open(folder.path() / "kernelbench.db"))
        if (auto rows = store->rows()) before = *rows;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_GE(before.size(), 2u);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const auto left = run_program("pgrep", {"-f", "kernelbench-native-worker --fd"});
  EXPECT_NE(left.code, 0) << "workers outlive a killed judge: " << left.out;

  const auto again = kernelbench(run_arguments(folder));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("have been judged already"));
  const auto after = rows_of(folder);
  ASSERT_EQ(after.size(), static_cast<std::size_t>(kSamples));
  for (const auto& row : before) {
    const auto same = std::ranges::find_if(
        after, [&](const auto& other) { return other.key.sample == row.key.sample; });
    ASSERT_NE(same, after.end());
    EXPECT_EQ(same->finished_at, row.finished_at)
        << "sample " << row.key.sample << " was judged twice";
  }
}

TEST(Run, SelectsByIdLevelAndDraw) {
  TemporaryFolder folder;
  folder.write("level_1_problem_19_sample_0_kernel.cpp", relu("a"));
  folder.write("level_1_problem_26_sample_0_kernel.cpp", relu("b"));
  folder.write("level_2_problem_12_sample_0_kernel.cpp", relu("c"));
  EXPECT_EQ(
      kernelbench(run_arguments(folder, {"--level", "1", "--ids", "19-20", "--no-timing"})).code,
      0);
  auto rows = rows_of(folder);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].key.problem, "level1/19");
  const auto none = kernelbench(run_arguments(folder, {"--ids", "77"}));
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("selected"));
}

TEST(Run, AChangedKernelIsJudgedAgain) {
  TemporaryFolder folder;
  folder.write("level_1_problem_19_sample_0_kernel.cpp", relu("good"));
  EXPECT_EQ(kernelbench(run_arguments(folder, {"--no-timing"})).code, 0);
  EXPECT_EQ(rows_of(folder)[0].verdict, "correct");
  folder.write("level_1_problem_19_sample_0_kernel.cpp",
               "extern \"C\" int kb_run(const void*) { return 1; }\n");
  EXPECT_EQ(kernelbench(run_arguments(folder, {"--no-timing"})).code, 0);
  EXPECT_EQ(rows_of(folder)[0].verdict, "runtime_error");
}

TEST(Run, BadFoldersAreOneSentence) {
  TemporaryFolder folder;
  for (const auto& [arguments, says] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"run", "/nonexistent"}, "/nonexistent"},
           {{"run", folder.path().string()}, "sample"},
           {{"score", folder.path().string()}, "kernelbench run"},
           {{"problems", "show", "level1/999"}, "999"}}) {
    const auto outcome = kernelbench(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(says));
  }
  folder.write("level_1_problem_19_sample_0_kernel.cpp", relu("good"));
  folder.write("kernelbench.db",
               "this is no database, and it is longer than a header of one hundred bytes, which "
               "SQLite reads before it says so.");
  const auto corrupt = kernelbench(run_arguments(folder));
  EXPECT_EQ(corrupt.code, 2);
  EXPECT_THAT(corrupt.err, HasSubstr("kernelbench.db"));
  EXPECT_TRUE(std::filesystem::file_size(folder.path() / "kernelbench.db") > 50)
      << "the damaged file is kept";
}

TEST(Doctor, SaysWhatIsThere) {
  const auto outcome = kernelbench({"doctor", "--json"});
  const auto json = nlohmann::json::parse(outcome.out, nullptr, false);
  ASSERT_FALSE(json.is_discarded()) << outcome.out;
  EXPECT_EQ(json["fit"], true) << outcome.out;
  EXPECT_EQ(outcome.code, 0);
}

TEST(Help, HasAnExampleForEveryCommand) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"eval"}, {"run"}, {"score"}, {"doctor"}, {"problems", "list"}, {"problems", "show"}}) {
    auto arguments = command;
    arguments.push_back("--help");
    const auto outcome = kernelbench(arguments);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out, HasSubstr("Example:")) << command.back();
  }
}

}  // namespace

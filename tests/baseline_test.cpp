// `baseline`: times of the references that are taken, resumed, exported in KernelBench's format,
// and scored against.

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "run_command.h"
#include "store/store.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers
using testing::AllOf;
using testing::HasSubstr;

namespace fs = std::filesystem;

/// A data folder of the test's own, where `baseline` stores.
class DataHome {
 public:
  DataHome() { ::setenv("XDG_DATA_HOME", folder_.path().c_str(), 1); }
  ~DataHome() { ::unsetenv("XDG_DATA_HOME"); }

  fs::path path() const { return folder_.path(); }
  fs::path of(const std::string& name) const {
    return folder_.path() / "kernelbench/baselines" / name;
  }

 private:
  TemporaryFolder folder_;
};

std::vector<std::string> baseline_arguments(const std::string& name, const std::string& ids,
                                            std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"baseline", name,    "--level",    "1",   "--ids",   ids,
                                        "--size",   "small", "--device",   "cpu", "--pairs", "5",
                                        "--trials", "2",     "--no-stress"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

nlohmann::json json_in(const fs::path& file) {
  std::ifstream stream(file);
  return nlohmann::json::parse(stream, nullptr, false);
}

std::vector<kb::store::Row> rows_in(const fs::path& folder) {
  auto store = kb::store::Store::open(folder / "kernelbench.db");
  EXPECT_TRUE(store);
  auto rows = store ? store->rows() : std::vector<kb::store::Row>{};
  EXPECT_TRUE(rows);
  return rows ? *rows : std::vector<kb::store::Row>{};
}

TEST(Baseline, IsTakenResumedExportedAndScoredAgainst) {
  const DataHome home;
  const fs::path exported = home.path() / "exported";
  const auto first = kernelbench(baseline_arguments("here", "19"));
  ASSERT_EQ(first.code, 0) << first.err << first.out;
  EXPECT_THAT(first.out, HasSubstr("1 of 1 problems have a time"));
  const auto before = rows_in(home.of("here") / "eager");
  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(before[0].verdict, "correct") << "the reference itself, against itself";

  const auto second =
      kernelbench(baseline_arguments("here", "19,47", {"--export", exported.string()}));
  ASSERT_EQ(second.code, 0) << second.err << second.out;
  EXPECT_THAT(second.out,
              AllOf(HasSubstr("1 of 2 samples have been judged already"),
                    HasSubstr("2 of 2 problems have a time"), HasSubstr("--baseline here\n")));
  const auto after = rows_in(home.of("here") / "eager");
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[0].result_json, before[0].result_json) << "judged twice";

  const auto times = json_in(home.of("here") / "baseline_time_torch.json");
  ASSERT_EQ(times["level1"].size(), 2u) << times;
  const auto& relu = times["level1"]["19_ReLU.py"];
  EXPECT_GT(relu["min"].get<double>(), 0);
  EXPECT_LE(relu["min"], relu["mean"]);
  EXPECT_LE(relu["mean"], relu["max"]);
  EXPECT_GE(relu["num_trials"].get<int>(), 5);
  EXPECT_THAT(relu["hardware"].get<std::string>(), HasSubstr("cpu"));
  EXPECT_EQ(json_in(exported / "baseline_time_torch.json"), times);

  // The run of the references is a run as any other: scored against what came of it.
  const auto run = (home.of("here") / "eager").string();
  const auto score = kernelbench({"score", run, "--baseline", "here", "--ids", "19", "--json"});
  ASSERT_EQ(score.code, 0) << score.err;
  const auto scores = nlohmann::json::parse(score.out, nullptr, false);
  const auto result = nlohmann::json::parse(after[0].result_json, nullptr, false);
  EXPECT_NEAR(scores[0]["geomean_correct"].get<double>(),
              relu["median"].get<double>() * 1000 / result["time_us"].get<double>(), 1e-9);
  for (const auto& each : scores[0]["fast_p"]) EXPECT_EQ(each["verified"], 0) << each;

  const auto other = kernelbench({"score", run, "--baseline", "here/default"});
  EXPECT_EQ(other.code, 2) << "that mode was not timed";
  EXPECT_THAT(other.err, AllOf(HasSubstr("here/default"), HasSubstr("(here)")));
}

TEST(Baseline, OfTorchCompileHasTheCompiledModelsTimes) {
  const DataHome home;
  const auto outcome = kernelbench(baseline_arguments("here", "19", {"--mode", "default"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("--baseline here/default\n"));
  const auto rows = rows_in(home.of("here") / "default");
  ASSERT_EQ(rows.size(), 1u);
  const auto result = nlohmann::json::parse(rows[0].result_json, nullptr, false);
  ASSERT_EQ(verdict_of(result), "correct") << result["message"];
  const auto times = json_in(home.of("here") / "baseline_time_torch_compile_inductor_default.json");
  // The turns of the candidate, which is the compiled model, and not of its reference: those with
  // the most calls. (`time_us` may be of single calls, where these are slower.)
  const double calls = result["calls_per_turn"], overhead_us = result["overhead_us"]["candidate"];
  double least = 1e300, most = 0;
  std::size_t turns = 0;
  for (const auto& turn : result["turns"]) {
    if (turn[0] != calls) continue;
    const double us = (turn[2].get<double>() - overhead_us) / calls;
    if (us <= 0) continue;  // no longer than an empty one
    least = std::min(least, us);
    most = std::max(most, us);
    ++turns;
  }
  const auto& relu = times["level1"]["19_ReLU.py"];
  EXPECT_EQ(relu["num_trials"], turns);
  EXPECT_NEAR(relu["min"].get<double>(), least / 1000, 1e-9);
  EXPECT_NEAR(relu["max"].get<double>(), most / 1000, 1e-9);
  EXPECT_FALSE(fs::exists(home.of("here") / "baseline_time_torch.json"));
}

TEST(Baseline, RefusesWhatMeansNothing) {
  const DataHome home;
  for (const auto& [arguments, says] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {baseline_arguments("here", "19", {"--mode", "fast"}), "max-autotune"},
           {baseline_arguments("here", "19", {"--mode", "eager,fast"}), "'fast'"},
           {baseline_arguments("../here", "19"), "name"},
           {baseline_arguments("here", "777"), "no problem"},
           {baseline_arguments("here", "x"), "x"},
           {{"baseline"}, "name"}}) {
    const auto outcome = kernelbench(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_FALSE(fs::exists(home.of("here"))) << "nothing is begun";
}

TEST(Baseline, HelpHasAnExample) {
  EXPECT_THAT(kernelbench({"baseline", "--help"}).out, HasSubstr("Example:"));
}

}  // namespace

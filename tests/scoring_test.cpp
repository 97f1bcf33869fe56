// `score`, `compare` and `leaderboard` over runs of KernelBench's and ours: what a user types, and
// what comes out.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <optional>

#include "run_command.h"
#include "store/store.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

using nlohmann::json;

std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

json parsed(const Outcome& outcome) {
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return json::parse(outcome.out, nullptr, false);
}

double fast(const json& summary, double p) {
  for (const auto& each : summary["fast_p"])
    if (each["p"] == p) return each["value"];
  return -1;
}

json entry(int sample, bool correct, double runtime, std::optional<double> reference = {}) {
  json result = {{"sample_id", sample},    {"compiled", true},
                 {"correctness", correct}, {"metadata", {{"hardware", "GPU"}}},
                 {"runtime", runtime},     {"runtime_stats", json::object()}};
  if (reference) result["ref_runtime"] = *reference;
  return result;
}

// KernelBench's folder of a level 1 run: two problems, two samples each.
struct OldRun {
  TemporaryFolder folder;
  OldRun() {
    folder.write("generation_config.yaml", "level: 1\n");
    folder.write("eval_results.json", json{{"19", {entry(0, true, 2), entry(1, false, -1)}},
                                           {"2", {entry(0, false, -1), entry(1, true, 1)}}}
                                          .dump());
    folder.write("pass_at_k_results.json", R"({"averages": {"avg_pass@1": 0.5}})");
    folder.write("baseline_time_torch.json", R"({"level1": {"19_ReLU.py": {"mean": 3.0},
                                                             "2_x_.py": {"mean": 4.0}}})");
  }
  std::string path() const { return folder.path().string(); }
  std::string baseline() const { return (folder.path() / "baseline_time_torch.json").string(); }
};

// One of ours, as `run` leaves it.
void judged(const TemporaryFolder& folder, const std::vector<json>& results) {
  auto store = kb::store::Store::open(folder.path() / "kernelbench.db");
  ASSERT_TRUE(store);
  for (json result : results) {
    const json defaults = {{"backend", "cpp"},
                           {"verdict", "correct"},
                           {"correct", true},
                           {"compiled", true},
                           {"public", {{"compiled", true}, {"correct", true}}},
                           {"flags", json::array()},
                           {"device", "cpu"}};
    for (const auto& [name, value] : defaults.items())
      if (!result.contains(name)) result[name] = value;
    kb::store::Row row;
    row.key = {result["problem"], result.value("sample", 0), "", "", "cpu", "{}"};
    row.verdict = result["verdict"];
    row.result_json = result.dump();
    ASSERT_TRUE(store->put(row));
  }
}

json timed(const std::string& problem, double speedup) {
  return {{"problem", problem},
          {"time_us", 100.0},
          {"reference_time_us", 100 * speedup},
          {"speedup", speedup},
          {"speedup_ci95", {speedup * 0.99, speedup * 1.01}}};
}

TEST(Score, ReadsKernelBenchsRunAgainstABaseline) {
  const OldRun old;
  const auto scores =
      parsed(kernelbench({"score", old.path(), "--baseline", old.baseline(), "--json"}));
  EXPECT_EQ(scores[0]["problems"], 2);
  EXPECT_EQ(scores[0]["samples"], 4);
  EXPECT_DOUBLE_EQ(fast(scores[0], 1), 0.5);     // half of the samples of each
  EXPECT_DOUBLE_EQ(fast(scores[0], 1.5), 0.25);  // 3/2 is not more than 1.5
  EXPECT_NEAR(scores[0]["geomean_correct"].get<double>(), std::sqrt(1.5 * 4), 1e-9);
  EXPECT_EQ(scores[0]["pass_at_k"]["1"], 0.5);
  EXPECT_EQ(scores[0]["pass_at_k"]["2"], 1.0);
  EXPECT_EQ(scores[0]["reported_pass_at_k"]["1"], 0.5);
  EXPECT_EQ(scores[1]["name"], "level1");
  for (const auto& each : scores[0]["fast_p"]) EXPECT_EQ(each["verified"], 0);

  const auto best =
      parsed(kernelbench({"score", old.path(), "--baseline", old.baseline(), "--samples", "best",
                          "--p", "3,1.2", "--k", "2", "--json"}));
  ASSERT_EQ(best[0]["fast_p"].size(), 2u);
  EXPECT_DOUBLE_EQ(fast(best[0], 1.2), 1);
  EXPECT_DOUBLE_EQ(fast(best[0], 3), 0.5);
  EXPECT_FALSE(best[0]["pass_at_k"].contains("1"));

  const auto first = parsed(kernelbench({"score", old.path(), "--baseline", old.baseline(),
                                         "--samples", "first", "--over", "public", "--json"}));
  EXPECT_EQ(first[0]["problems"], 100);
  EXPECT_EQ(first[0]["attempted"], 2);
  EXPECT_DOUBLE_EQ(fast(first[0], 1), 0.01);
}

TEST(Score, WithoutABaselineNothingIsFast) {
  const OldRun old;
  const auto text = kernelbench({"score", old.path()});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, AllOf(HasSubstr("2 problems are correct without a speedup"),
                              HasSubstr("pass_at_k_results.json says: pass@1 0.500")));
}

TEST(Score, WritesCsvMarkdownAnalysisAndBaseline) {
  TemporaryFolder folder;
  json wrong = timed("level1/23", 3.0);
  wrong["verdict"] = "wrong_value";  // to us; KernelBench's rule accepts it
  wrong["correct"] = false;
  judged(folder, {timed("level1/19", 2.0), wrong});
  const auto out = [&](const char* name) { return (folder.path() / name).string(); };
  const auto run =
      kernelbench({"score", folder.path().string(), "--markdown", "--csv", out("s.csv"),
                   "--analysis", out("a.json"), "--export-baseline", out("b.json")});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(StartsWith("| group |"), HasSubstr("| level1 |")));
  EXPECT_THAT(read(out("s.csv")), AllOf(StartsWith("group,metric,at,value,low,high,problems\n"),
                                        HasSubstr("\nall,verified_fast_p,1,0.5,")));
  const auto analysis = json::parse(read(out("a.json")), nullptr, false);
  EXPECT_EQ(analysis["level1"]["total"], 2);
  EXPECT_EQ(analysis["level1"]["correct"], 2);
  EXPECT_EQ(analysis["level1"]["fast_p"]["2.0"], 0.5);
  EXPECT_NEAR(analysis["level1"]["geometric_mean_speedup"].get<double>(), std::sqrt(6), 1e-9);
  const auto baseline = json::parse(read(out("b.json")), nullptr, false);
  EXPECT_DOUBLE_EQ(baseline["level1"]["19_ReLU.py"]["mean"].get<double>(), 0.2);

  // What was exported scores the same kernel the same.
  const auto again = parsed(kernelbench(
      {"score", folder.path().string(), "--baseline", out("b.json"), "--ids", "19", "--json"}));
  EXPECT_EQ(again[0]["problems"], 1);
  EXPECT_NEAR(again[0]["geomean_correct"].get<double>(), 2, 1e-9);
  const auto rule =
      parsed(kernelbench({"score", folder.path().string(), "--rules", "kernelbench", "--json"}));
  EXPECT_EQ(rule[0]["correct"], 2);
  const auto csv = kernelbench({"score", folder.path().string(), "--csv", "-"});
  EXPECT_THAT(csv.out, StartsWith("group,metric"));
}

// `--csv /dev/null`: no file takes the place of a device or a pipe.
TEST(Score, WritesIntoWhatIsNoOrdinaryFile) {
  const OldRun old;
  TemporaryFolder folder;
  const auto pipe = (folder.path() / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK);
  const auto run = kernelbench({"score", old.path(), "--csv", pipe});
  EXPECT_EQ(run.code, 0) << run.err;
  std::array<char, 13> beginning{};
  EXPECT_EQ(::read(reader, beginning.data(), 12), 12);
  ::close(reader);
  EXPECT_STREQ(beginning.data(), "group,metric");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(Compare, PairsRunsOfBothKinds) {
  const OldRun old;
  TemporaryFolder ours;
  judged(ours, {timed("level1/19", 3.0), timed("level1/40", 2.0)});
  const auto comparisons = parsed(kernelbench(
      {"compare", old.path(), ours.path().string(), old.path(), "--samples", "best", "--json"}));
  ASSERT_EQ(comparisons.size(), 2u);
  EXPECT_EQ(comparisons[0]["problems"].size(), 1u);
  EXPECT_EQ(comparisons[0]["attempted_by_base_alone"], json::array({"level1/2"}));
  EXPECT_EQ(comparisons[0]["attempted_by_other_alone"], json::array({"level1/40"}));
  EXPECT_EQ(comparisons[0]["fast_1"]["other_better"], 1);
  EXPECT_EQ(comparisons[1]["fast_1"]["tied_no"], 2);  // no baseline: never fast

  const auto text = kernelbench({"compare", old.path(), ours.path().string(), "--baseline",
                                 old.baseline(), "--samples", "best"});
  EXPECT_EQ(text.code, 0) << text.err;
  // Against one baseline: 3 ms / 2 ms against 3 ms / 0.1 ms.
  EXPECT_THAT(text.out, HasSubstr("level1/19  1.50x  30.00x  20.000  faster"));
  EXPECT_THAT(text.err, HasSubstr("level1/40"));
}

TEST(Leaderboard, RanksOverTheSameProblems) {
  TemporaryFolder narrow, wide;
  judged(narrow, {timed("level1/19", 3.0)});
  judged(wide, {timed("level1/19", 2.0), timed("level1/23", 2.0), timed("level1/40", 0.5)});
  const std::vector<std::string> runs = {narrow.path().string(), wide.path().string()};
  const auto board = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"leaderboard"};
    arguments.insert(arguments.end(), runs.begin(), runs.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    return kernelbench(arguments);
  };
  auto ranking = parsed(board({"--json"}));
  EXPECT_EQ(ranking["sort"], "fast_1");
  EXPECT_EQ(ranking["runs"][0]["run"], wide.path().filename().string());
  EXPECT_NEAR(ranking["runs"][0]["value"].get<double>(), 2.0 / 3, 1e-9);
  EXPECT_NEAR(ranking["runs"][1]["value"].get<double>(), 1.0 / 3, 1e-9);
  EXPECT_EQ(ranking["runs"][1]["problems"], 3);
  ranking = parsed(board({"--sort", "geomean", "--over", "attempted", "--json"}));
  EXPECT_EQ(ranking["runs"][0]["run"], narrow.path().filename().string());
  EXPECT_EQ(ranking["runs"][0]["problems"], 1);
  EXPECT_EQ(parsed(board({"--sort", "verified_2.5", "--json"}))["runs"][0]["run"],
            narrow.path().filename().string());
  EXPECT_THAT(board({"--markdown"}).out, HasSubstr("| rank | run |"));
  // Twice the same folder: told apart, or a reader could not.
  const auto twice = kernelbench({"leaderboard", runs[0], runs[0] + "/"});
  EXPECT_THAT(twice.out, HasSubstr("/"));
}

TEST(Scoring, BadInputIsOneSentence) {
  const OldRun old;
  TemporaryFolder empty, foreign;
  foreign.write("eval_results.json", R"({"accuracy": 0.97})");
  const std::string foreign_path = foreign.path().string();
  TemporaryFolder lost;
  lost.write("eval_results.json", R"({"1": []})");
  for (const auto& [arguments, says] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"score", "/nonexistent"}, "/nonexistent"},
           {{"score", empty.path().string()}, "kernelbench run"},
           {{"score", foreign_path}, "accuracy"},
           {{"score", lost.path().string()}, "--level"},
           {{"score", old.path(), "--level", "2"}, "--level"},
           {{"score", old.path(), "--ids", "77"}, "--ids"},
           {{"score", old.path(), "--p", "1,x"}, "--p"},
           {{"score", old.path(), "--p", "nan"}, "--p"},
           {{"score", old.path(), "--p", "-1"}, "--p"},
           {{"score", old.path(), "--p", ""}, "--p"},
           {{"score", old.path(), "--k", "0"}, "--k"},
           {{"score", old.path(), "--over", "union"}, "--over"},
           {{"score", old.path(), "--samples", "worst"}, "--samples"},
           {{"score", old.path(), "--baseline", "no_such_name"}, "no_such_name"},
           {{"score", old.path(), "--baseline", foreign_path + "/eval_results.json"}, "baseline"},
           {{"score", old.path(), "--csv", "/nonexistent/a.csv"}, "/nonexistent/a.csv"},
           {{"score", old.path(), "--csv", old.path()}, "folder"},
           {{"score", old.path(), "--csv", "-", "--json"}, "--csv -"},
           {{"score", old.path(), "--export-baseline", "/tmp/never.json"}, "no time"},
           {{"compare", old.path()}, "two runs"},
           {{"compare", old.path(), foreign_path}, "accuracy"},
           {{"leaderboard", old.path(), "--sort", "speed"}, "verified_P"},
           {{"leaderboard"}, "runs"}}) {
    const auto outcome = kernelbench(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments.back() << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(says));
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_EQ(outcome.out, "") << outcome.err;
  }
  EXPECT_TRUE(std::filesystem::is_empty(empty.path())) << "reading makes no file";
}

TEST(Scoring, HelpHasAnExample) {
  for (const char* command : {"score", "compare", "leaderboard"})
    EXPECT_THAT(kernelbench({command, "--help"}).out, HasSubstr("Example:"));
}

}  // namespace

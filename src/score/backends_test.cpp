#include "score/backends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "store/store.h"

namespace kb::score {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Backends : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "kb_backends_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  /// As `run` leaves it in a folder; `changes` replaces members of a correct result.
  void judged(const std::string& in, const std::string& problem,
              const json& changes = json::object()) const {
    json result = {{"problem", problem},
                   {"backend", in.substr(0, in.find('-'))},
                   {"candidate", "level_1_problem_19_sample_0_kernel.py"},
                   {"device", "cuda:0"},
                   {"device_info", {{"name", "NVIDIA H200"}}},
                   {"precision", "fp32"},
                   {"size", "small"},
                   {"verdict", "correct"},
                   {"compiled", true},
                   {"correct", true},
                   {"flags", json::array()},
                   {"time_us", 10.0},
                   {"speedup", 1.5},
                   {"speedup_ci95", {1.4, 1.6}},
                   {"phases_ms",
                    {{"compile", 2000.0},
                     {"evaluation", 10000.0},
                     {"load", 3000.0},
                     {"first_call", 500.0},
                     {"timing", 4000.0}}},
                   {"message", ""}};
    result.update(changes);
    fs::create_directories(folder_ / in);
    auto store = store::Store::open(folder_ / in / "kernelbench.db");
    ASSERT_TRUE(store);
    store::Row row;
    row.key = {problem, 0, "", "", "cuda", "{}"};
    row.verdict = result["verdict"];
    row.result_json = result.dump();
    ASSERT_TRUE(store->put(row));
  }
  Showcase loaded() const {
    auto showcase = load_showcase(folder_);
    EXPECT_TRUE(showcase) << showcase.error();
    return showcase ? *showcase : Showcase{};
  }
  std::string error() const {
    const auto showcase = load_showcase(folder_);
    return showcase ? "" : showcase.error();
  }

  fs::path folder_;
};

/// The row of a Markdown table that begins with these cells.
std::string row_of(const std::string& markdown, const std::string& cells) {
  const auto at = markdown.find("\n| " + cells);
  return at == std::string::npos ? "" : markdown.substr(at + 1, markdown.find('\n', at + 1) - at);
}

TEST_F(Backends, OneColumnAPrecisionAndSecondsOfBothJudgings) {
  judged("triton-fp32", "level1/19");
  judged("triton-fp16", "level1/19", {{"precision", "fp16"}, {"flags", {"noisy"}}});
  judged("triton-fp32/again", "level1/19",
         {{"phases_ms", {{"compile", 0.0}, {"evaluation", 9000.0}}}});
  const auto text = to_report(loaded()).markdown();
  EXPECT_THAT(
      row_of(text, "triton | level1/19 |"),
      HasSubstr("| correct 1.50x \\[1.40, 1.60\\] | correct 1.50x \\[1.40, 1.60\\] (noisy) |"))
      << text;
  EXPECT_THAT(row_of(text, "triton | 2 |"),
              HasSubstr("| 2.0 / 0.0 | 3.0 | 0.5 | 4.0 | 12.0 / 9.0 |"))
      << text;
  EXPECT_THAT(row_of(text, "triton | - |"), HasSubstr("| NVIDIA H200, size small | 2 of 2 | - |"))
      << text;
}

TEST_F(Backends, SaysWhyTheReasonCannotBeRead) {
  write("cute-fp32/level_1_problem_19_sample_0_kernel.py", "kernel");
  write("cute-fp32/not_run", "\xff\xfe");
  EXPECT_THAT(loaded().examples.at(0).not_run, HasSubstr("UTF-8"));
}

TEST_F(Backends, SaysWhyASampleHasNotRun) {
  write("cute-fp32/level_1_problem_19_sample_0_kernel.py", "x");
  write("cute-fp32/level_1_problem_47_sample_0_kernel.py", "x");
  write("cute-fp32/not_run", "stopped after the 60 s of its backend\nmore\n");
  judged("cute-fp32", "level1/19");
  write("tilelang-bf16/level_1_problem_19_sample_0_kernel.py", "x");
  judged("cupy-fp16", "level1/19",
         {{"verdict", "infrastructure_error"}, {"correct", false}, {"message", "no device"}});
  const auto text = to_report(loaded()).markdown();
  EXPECT_THAT(row_of(text, "cute |"),
              HasSubstr("| 1 of 1 | fp32: 1 of 2: stopped after the 60 s of its backend |"));
  EXPECT_THAT(row_of(text, "tilelang |"), HasSubstr("| - | bf16: 1 of 1: it was not selected |"));
  write("cute-bf16/level_1_problem_19_sample_0_kernel.py", "x");
  write("cute-fp16/level_1_problem_19_sample_0_kernel.py", "x");
  EXPECT_THAT(row_of(to_report(loaded()).markdown(), "cute |"),
              HasSubstr("backend; fp16, bf16: 1 of 1: it was not selected |"));
  EXPECT_THAT(row_of(text, "cupy |"), HasSubstr("| - | fp16: 1 of 1: no device |"));
  EXPECT_THAT(row_of(text, "hip |"), HasSubstr("no example was judged"));
}

TEST_F(Backends, VersionsAndWhatIsMissingAreTheDoctors) {
  judged("triton-fp32", "level1/19");
  write("doctor.json",
        json{{"findings",
              {{{"what", "python"},
                {"state", "ok"},
                {"detail", "/x"},
                {"versions", {{"PyTorch", "2.11.0"}}}},
               {{"what", "triton backend"}, {"state", "ok"}, {"versions", {{"triton", "3.6.0"}}}},
               {{"what", "TVM-FFI"}, {"state", "note"}, {"detail", "apache-tvm-ffi is missing"}},
               {{"what", "hip backend"}, {"state", "note"}, {"detail", "no ROCm"}}}}}
            .dump());
  const auto showcase = loaded();
  const auto text = to_report(showcase).markdown();
  EXPECT_THAT(row_of(text, "triton |"), HasSubstr("| triton 3.6.0 |"));
  EXPECT_THAT(row_of(text, "hip |"), HasSubstr("| no ROCm |"));
  EXPECT_THAT(row_of(text, "tvm\\_ffi |"), HasSubstr("| apache-tvm-ffi is missing |"));
  EXPECT_THAT(text, AllOf(HasSubstr("\nPyTorch 2.11.0.\n"), Not(HasSubstr("/x"))));
  EXPECT_EQ(to_json(showcase)["backends"]["triton"]["versions"]["triton"], "3.6.0");
}

TEST_F(Backends, NothingInAResultIsMarkup) {
  judged("triton-fp32", "level1/19",
         {{"verdict", "runtime_error"},
          {"correct", false},
          {"message", "<img src=x>|\x1b[31m`a` [b](http://c)\nsecond line"}});
  judged("<b>-fp16", "level1/19");
  write("doctor.json", R"({"findings": [{"what": "triton backend", "state": "ok",
                            "versions": {"<i>": "| 1 |"}}, 7, {"what": 1}]})");
  const auto text = to_report(loaded()).markdown();
  EXPECT_THAT(text,
              AllOf(Not(HasSubstr("<")), Not(HasSubstr("\x1b")), Not(HasSubstr("second line")),
                    Not(HasSubstr("[b]")), HasSubstr("&lt;img")));
  EXPECT_THAT(row_of(text, "triton | &lt;i&gt; \\| 1 \\| |"), HasSubstr("| 0 of 1 | - |"));
}

TEST_F(Backends, ProfilesStandBesideTheResultThatTheyAreOf) {
  judged("triton-fp32", "level1/19");
  json profile = {{"problem", "level1/19"}, {"candidate", "level_1_problem_19_sample_0_kernel.py"},
                  {"backend", "triton"},    {"precision", "fp32"},
                  {"size", "small"},        {"profile", {{"candidate_duration_us", 8.0}}}};
  write("profile-a.json", profile.dump());
  profile["size"] = "public";
  profile["profile"]["candidate_duration_us"] = 800.0;
  write("profile-b.json", profile.dump());
  const auto showcase = loaded();
  ASSERT_EQ(showcase.examples.size(), 1U);
  EXPECT_EQ(showcase.examples[0].ncu_us, 8.0);
  EXPECT_THAT(to_report(showcase).text(), HasSubstr("10.00     8.00         1.25"));
}

TEST_F(Backends, ReadsBackendsInTheirOrderAndCsvUnrounded) {
  judged("cupy-fp32", "level1/19", {{"speedup", 1.23456}});
  judged("cuda-fp32", "level1/19");
  judged("tvm_ffi-fp32", "level1/19", {{"backend", "cuda_cpp"}});
  const auto showcase = loaded();
  ASSERT_EQ(showcase.examples.size(), 3U);
  EXPECT_EQ(showcase.examples[0].backend, "cuda");
  EXPECT_EQ(showcase.examples[1].backend, "cupy");
  EXPECT_EQ(showcase.examples[2].backend, "tvm_ffi");
  EXPECT_THAT(to_table(showcase).csv(),
              HasSubstr("cupy,fp32,level1/19,0,NVIDIA H200,small,correct,1.23456,"));
}

TEST_F(Backends, BadFoldersGetASentence) {
  EXPECT_THAT(error(), HasSubstr("holds no folder of a backend"));
  fs::create_directories(folder_ / "runs-old");
  EXPECT_THAT(error(), HasSubstr("holds no folder of a backend"));
  judged("triton-fp32", "level1/19");
  write("doctor.json", "[");
  EXPECT_THAT(error(), HasSubstr("doctor.json is no JSON object"));
  fs::remove(folder_ / "doctor.json");
  write("cute-fp32/kernelbench.db", "no database, but text that is longer than a header of one is");
  EXPECT_THAT(error(), HasSubstr("kernelbench.db"));
  EXPECT_THAT(load_showcase(folder_ / "missing").error(), HasSubstr("cannot be read"));
  EXPECT_FALSE(fs::exists(folder_ / "triton-fp32/again"));
}

TEST(WithBlock, ReplacesWhatIsBetweenTheMarkers) {
  const std::string begin = kBlockBegins, end = kBlockEnds;
  const auto changed = with_block("a\n" + begin + "\nold\nold\n" + end + "\nb\n", "new\n");
  ASSERT_TRUE(changed) << changed.error();
  EXPECT_EQ(*changed, "a\n" + begin + "\nnew\n" + end + "\nb\n");
  EXPECT_EQ(with_block(*changed, "new\n").value(), *changed);
  EXPECT_EQ(with_block(begin + "\n" + end, "new\n").value(), begin + "\nnew\n" + end);
  for (const auto& bad :
       {std::string("a\n"), "a\n" + begin + "\nb\n", "a\n" + end + "\n" + begin + "\n",
        "a\n" + begin + "\n" + end + "\n" + begin + "\nx\n" + end + "\n"})
    EXPECT_FALSE(with_block(bad, "new\n")) << bad;
}

}  // namespace
}  // namespace kb::score

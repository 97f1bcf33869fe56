// scripts/judge-backends and `kernelbench backends`: examples that a CPU can judge, really judged,
// and the tables that come of them.

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "run_command.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

namespace fs = std::filesystem;

std::string read(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The script, on the CPU at small sizes, with these variables.
Outcome judge_backends(const fs::path& out, const std::vector<std::string>& environment) {
  std::vector<std::string> arguments = {"KERNELBENCH=" + binary(), "OUT=" + out.string()};
  arguments.insert(arguments.end(), environment.begin(), environment.end());
  for (const char* word :
       {"bash", "scripts/judge-backends", "--device", "cpu", "--size", "small", "--ids", "19",
        "--set", "batch_size=3", "--set", "dim=5000", "--pairs", "5", "--no-stress"})
    arguments.emplace_back(word);
  return run_program("env", arguments, source_folder());
}

TEST(Backends, JudgesTwiceAndMakesTablesOfIt) {
  const TemporaryFolder folder;
  const auto out = folder.path() / "out";
  const auto judged = judge_backends(out, {"BACKENDS=tvm_ffi triton hip"});
  ASSERT_EQ(judged.code, 0) << judged.err;
  EXPECT_THAT(judged.out, HasSubstr("hip: left out"));

  const auto begin = std::string("<!-- kernelbench backends: begin -->\n");
  const auto end = std::string("<!-- kernelbench backends: end -->\n");
  const auto document =
      folder.write("page.md", "# Page\n" + begin + "stale words\n" + end + "after\n");
  const auto shown = kernelbench({"backends", out.string(), "--json", "--into", document});
  ASSERT_EQ(shown.code, 0) << shown.err;
  const auto json = nlohmann::json::parse(shown.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << shown.out;
  int triton = 0, tvm_ffi = 0;
  for (const auto& example : json["examples"]) {
    if (example["problem"] != "level1/19") {
      EXPECT_FALSE(example["not_run"].get<std::string>().empty()) << example;
      continue;
    }
    // Triton's interpreter gets products of bfloat16 wrong: `run` leaves them out.
    if (example["backend"] == "triton" && example["precision"] == "bf16") {
      EXPECT_THAT(example["not_run"].get<std::string>(), HasSubstr("bf16")) << example;
      continue;
    }
    ASSERT_TRUE(example["first"].is_object()) << example;
    ASSERT_TRUE(example["again"].is_object()) << example;
    EXPECT_EQ(example["first"]["verdict"], "correct") << example;
    if (example["backend"] == "triton") ++triton;
    if (example["backend"] != "tvm_ffi") continue;
    ++tvm_ffi;
    EXPECT_GT(example["first"]["phases_ms"]["compile"].get<double>(),
              example["again"]["phases_ms"]["compile"].get<double>())
        << "the second comes from the cache";
  }
  EXPECT_EQ(triton, 2);
  EXPECT_EQ(tvm_ffi, 1);
  EXPECT_THAT(json["backends"]["triton"]["versions"]["triton"].get<std::string>(), HasSubstr("3."));
  EXPECT_THAT(json["backends"]["hip"]["not_run"].get<std::string>(), HasSubstr("missing"));
  EXPECT_THAT(read(document), AllOf(HasSubstr("# Page\n" + begin), HasSubstr("| triton |"),
                                    HasSubstr(end + "after\n"), Not(HasSubstr("stale"))));
}

TEST(Backends, ALimitStopsABackendAndIsNamed) {
  const TemporaryFolder folder;
  const auto judged =
      judge_backends(folder.path() / "out", {"BACKENDS=triton", "LIMIT=1", "ONCE=1"});
  ASSERT_EQ(judged.code, 0) << judged.err;
  const auto shown = kernelbench({"backends", (folder.path() / "out").string(), "--json"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  const auto json = nlohmann::json::parse(shown.out, nullptr, false);
  EXPECT_THAT(
      json["backends"]["triton"]["not_run"].get<std::string>(),
      AllOf(StartsWith("fp32"), HasSubstr(": 3 of 3: stopped after the 1 s of its backend")));
}

TEST(Backends, BadInputGetsOneSentence) {
  const TemporaryFolder folder;
  const auto nothing = kernelbench({"backends", folder.path().string()});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("holds no folder of a backend"));
  fs::create_directories(folder.path() / "triton-fp32");
  const auto page = folder.write("page.md", "no markers\n");
  const auto refused = kernelbench({"backends", folder.path().string(), "--into", page});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("cannot take the tables"));
  EXPECT_EQ(read(page), "no markers\n");
}

}  // namespace

// `problems check`: five planted faults, each found, and clean files that pass.

#include <gmock/gmock.h>

#include <map>

#include "run_command.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kHead =
    "import torch\nimport torch.nn as nn\n"
    "def get_inputs():\n    return [torch.rand(16, 8)]\n"
    "def get_init_inputs():\n    return []\n";

std::string model(const std::string& init, const std::string& result) {
  return std::string(kHead) +
         "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        " +
         init + "\n    def forward(self, x):\n        return " + result + "\n";
}

const std::string kClean = model("self.linear = nn.Linear(8, 4)", "self.linear(x)");

/// Runs `problems check --json`; the rules of the findings of each file, by its name.
class Check {
 public:
  explicit Check(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"problems", "check", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    outcome_ = kernelbench(arguments);
    const auto json = nlohmann::json::parse(outcome_.out, nullptr, false);
    EXPECT_TRUE(json.is_array()) << outcome_.out << outcome_.err;
    if (!json.is_array()) return;
    for (const auto& report : json) {
      auto& rules = rules_[std::filesystem::path(report["id"].get<std::string>()).stem()];
      for (const auto& finding : report["findings"]) rules.push_back(finding["rule"]);
    }
  }
  int code() const { return outcome_.code; }
  const std::string& text() const { return outcome_.out; }
  std::vector<std::string> rules(const std::string& file) {
    EXPECT_TRUE(rules_.contains(file)) << file;
    return rules_[file];
  }

 private:
  Outcome outcome_;
  std::map<std::string, std::vector<std::string>> rules_;
};

TEST(ProblemsCheck, FindsPlantedFaults) {
  const TemporaryFolder folder;
  Check check({
      folder.write("clean.py", kClean),
      folder.write("copy.py", "# A copy under another name.\n" + kClean),
      folder.write("constant.py", model("pass", "torch.zeros_like(x) + 3 + 1e-7 * x")),
      folder.write("unused.py",
                   model("self.linear = nn.Linear(8, 4); self.scale = nn.Parameter(torch.ones(1))",
                         "self.linear(x)")),
      folder.write("zero.py", model("pass", "x - x.clone()")),
      folder.write("nan.py", model("pass", "torch.sqrt(x - 0.5)")),
  });
  EXPECT_EQ(check.code(), 1);
  EXPECT_THAT(check.rules("clean"), testing::ElementsAre("duplicate"));
  EXPECT_THAT(check.rules("copy"), testing::ElementsAre("duplicate"));
  EXPECT_THAT(check.rules("constant"), Contains("constant"));
  EXPECT_THAT(check.rules("unused"), testing::ElementsAre("weight"));
  EXPECT_THAT(check.text(), HasSubstr("do not depend on scale"));
  EXPECT_THAT(check.rules("zero"), Contains("zero"));
  EXPECT_THAT(check.rules("nan"), testing::ElementsAre("finite"));
}

TEST(ProblemsCheck, PassesACleanFileAndBundledProblems) {
  const TemporaryFolder folder;
  Check check({folder.write("clean.py", kClean), "level1/40", "level2/52"});
  EXPECT_EQ(check.code(), 0) << check.text();
  EXPECT_THAT(check.rules("clean"), IsEmpty());
  EXPECT_THAT(check.rules("52"), IsEmpty());
}

TEST(ProblemsCheck, OutlivesAFileThatCrashesOrHangs) {
  const TemporaryFolder folder;
  Check check({"--jobs", "1", "--timeout", "60",
               folder.write("crash.py",
                            "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n" + kClean),
               folder.write("leave.py", "import os\nos._exit(0)\n" + kClean),
               folder.write("syntax.py", kClean + "\ndef (:\n"),
               folder.write("huge.py",
                            kClean + "\ndef get_inputs():\n    return [torch.rand(1 << 40, 8)]\n"),
               folder.write("clean.py", kClean + "\nagain = 1\n")});
  EXPECT_EQ(check.code(), 1);
  EXPECT_THAT(check.rules("crash"), testing::ElementsAre("load"));
  EXPECT_THAT(check.rules("leave"), testing::ElementsAre("load"));
  EXPECT_THAT(check.rules("syntax"), testing::ElementsAre("load"));
  EXPECT_THAT(check.rules("huge"), testing::ElementsAre("memory"));
  EXPECT_THAT(check.rules("clean"), IsEmpty());

  Check hang({"--timeout", "20", folder.write("hang.py", "while True: pass\n" + kClean)});
  EXPECT_THAT(hang.rules("hang"), testing::ElementsAre("timeout"));
}

TEST(ProblemsCheck, OnceTellsWhatDoesNotRunAndLooksAtNothingElse) {
  const TemporaryFolder folder;
  Check check({"--once", "--jobs", "1", "--timeout", "60", folder.write("clean.py", kClean),
               folder.write("copy.py", kClean), folder.write("zero.py", model("pass", "x * 0")),
               folder.write("nan.py", model("pass", "torch.sqrt(x - 0.5)")),
               folder.write("infinite.py", model("pass", "x / 0")),
               folder.write("empty.py", model("pass", "x[:0]")),
               folder.write("nothing.py", model("pass", "None")),
               folder.write("raises.py", model("pass", "x @ x")),
               folder.write("leave.py", "import os\nos._exit(0)\n" + kClean),
               folder.write("huge.py",
                            kClean + "\ndef get_inputs():\n    return [torch.rand(1 << 40, 8)]\n"),
               "level1/40"});
  EXPECT_EQ(check.code(), 1);
  for (const char* runs : {"clean", "copy", "zero", "40"})
    EXPECT_THAT(check.rules(runs), IsEmpty()) << runs;
  EXPECT_THAT(check.rules("nan"), testing::ElementsAre("finite"));
  EXPECT_THAT(check.text(), testing::AllOf(HasSubstr("holds NaN"), HasSubstr("holds infinity")));
  EXPECT_THAT(check.rules("infinite"), testing::ElementsAre("finite"));
  EXPECT_THAT(check.rules("empty"), testing::ElementsAre("shape"));
  for (const char* fails : {"nothing", "raises", "leave"})
    EXPECT_THAT(check.rules(fails), testing::ElementsAre("load")) << fails;
  EXPECT_THAT(check.rules("huge"), testing::ElementsAre("memory"));

  Check hang({"--once", "--jobs", "1", "--timeout", "20",
              folder.write("hang.py", "while True: pass\n" + kClean), "level1/40"});
  EXPECT_THAT(hang.rules("hang"), testing::ElementsAre("timeout"));
  EXPECT_THAT(hang.rules("40"), IsEmpty());
}

TEST(ProblemsCheck, OnceGivesTheMemoryInUseAndPrintsFaultsAlone) {
  const TemporaryFolder folder;
  const auto clean = folder.write(
      "clean.py", kClean + "\ndef get_inputs():\n    return [torch.rand(1 << 22, 8)]\n");
  const auto json = nlohmann::json::parse(
      kernelbench({"problems", "check", "--once", "--json", clean}).out, nullptr, false);
  ASSERT_TRUE(json.is_array());
  EXPECT_GT(json[0]["peak_bytes"].get<double>(), 4 * 8 * (1 << 22));
  EXPECT_LT(json[0]["peak_bytes"].get<double>(), 4e9);
  const auto text = kernelbench({"problems", "check", "--once", clean,
                                 folder.write("nan.py", model("pass", "torch.sqrt(x - 0.5)"))});
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.out,
              testing::AllOf(HasSubstr("nan.py"), HasSubstr("finite: output 0"),
                             testing::Not(HasSubstr("clean.py")), HasSubstr("2 problems in")));
}

TEST(ProblemsCheck, ShowsDownloadedModelsReadOnlyAndNothingElseOfTheirFolder) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "hub");
  folder.write("hub/weights", "0.5");
  folder.write("token", "secret");
  ::setenv("HF_HOME", folder.path().c_str(), 1);
  Check check(
      {folder.write("reads.py",
                    "import os\ncache = os.environ['HF_HUB_CACHE']\n"
                    "scale = float(open(cache + '/weights').read())\n"
                    "assert os.environ['HF_HUB_OFFLINE'] == '1'\n" +
                        model("pass", "x * scale")),
       folder.write("writes.py",
                    "import os\nopen(os.environ['HF_HUB_CACHE'] + '/new', 'w')\n" + kClean),
       folder.write("peeks.py",
                    "import os\nopen(os.environ['HF_HUB_CACHE'] + '/../token')\n" + kClean)});
  ::unsetenv("HF_HOME");
  EXPECT_THAT(check.rules("reads"), IsEmpty()) << check.text();
  if (kernelbench({"doctor"}).out.find("bubblewrap") == std::string::npos) return;
  EXPECT_THAT(check.rules("writes"), testing::ElementsAre("load"));
  EXPECT_THAT(check.rules("peeks"), testing::ElementsAre("load"));
}

TEST(ProblemsCheck, RefusesWhatIsNoProblem) {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"problems", "check", "level1/999"},
                                             {"problems", "check", "no_such_file.py"},
                                             {"problems", "check", "--set", "=3"},
                                             {"problems", "check", "--device", "cuda:0"},
                                             {"problems", "check", "--once", "--device", "tpu"},
                                             {"problems", "check", "--jobs", "0"}}) {
    const auto outcome = kernelbench(arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("kernelbench: "));
  }
}

}  // namespace

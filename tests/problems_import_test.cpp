// `problems import` and `export`: folders and Hugging Face columns, in and out, and what is done
// with the sets afterwards.

#include <gmock/gmock.h>

#include "run_command.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers
using testing::HasSubstr;

std::string problem(const std::string& result, const std::string& more = "") {
  return "import torch\n" + more +
         "class Model(torch.nn.Module):\n    def forward(self, x):\n        return " + result +
         "\ndef get_inputs():\n    return [torch.rand(64, 32)]\ndef get_init_inputs():\n    return "
         "[]\n";
}

class ProblemsImport : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_DATA_HOME", folder_.path().c_str(), 1);
    const auto found = run_program(python(), {"-c", "import datasets, pyarrow"});
    has_datasets_ = found.code == 0;
  }
  void TearDown() override { ::unsetenv("XDG_DATA_HOME"); }
  static std::string python() {
    const char* chosen = std::getenv("KERNELBENCH_PYTHON");
    return chosen != nullptr ? chosen : "python3";
  }
  std::string write(const std::string& name, const std::string& text) {
    const auto path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    return folder_.write(name, text);
  }
  std::string in(const std::string& name) { return (folder_.path() / name).string(); }
  std::string set_file(const std::string& name) { return in("kernelbench/sets/" + name); }

  TemporaryFolder folder_;
  bool has_datasets_ = false;
};

TEST_F(ProblemsImport, TakesAFolderAndRunsNothingOfIt) {
  const auto trap = in("executed");
  write("source/level1/19_ReLU.py", problem("torch.relu(x - 0.5)", "open('" + trap + "', 'w')\n"));
  write("source/level1/20_Copy.py",
        problem("torch.relu(x - 0.5)", "# a copy\nopen('" + trap + "', 'w')\n"));
  write("source/level1/21_Broken.py", "x = 1\n");
  write("source/level1/Nameless.py", problem("x + 1"));
  write("source/level2/1_Double.py", problem("2 * x"));
  const auto outcome = kernelbench({"problems", "import", in("source"), "--name", "mine"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;  // something was left out
  EXPECT_THAT(outcome.out, HasSubstr("left out: level1/21_Broken.py"));
  EXPECT_THAT(outcome.out, HasSubstr("left out: level1/Nameless.py"));
  EXPECT_THAT(outcome.out, HasSubstr("level1/19 and level1/20 are the same program"));
  EXPECT_THAT(outcome.out, HasSubstr("3 problems are in"));
  EXPECT_FALSE(std::filesystem::exists(trap));
  EXPECT_TRUE(std::filesystem::exists(set_file("mine/level1/19_ReLU.py")));

  const auto list = kernelbench({"problems", "list", "--problems", "mine", "--json"});
  EXPECT_EQ(nlohmann::json::parse(list.out).size(), 3u) << list.out << list.err;
  const auto shown = kernelbench({"problems", "show", "mine:level2/1", "--json"});
  const auto json = nlohmann::json::parse(shown.out);
  EXPECT_EQ(json["name"], "Double") << shown.err;
  EXPECT_EQ(json["output_bytes"], 64 * 32 * 4) << shown.out;
  const auto check = kernelbench({"problems", "check", "--problems", "mine", "level2/1"});
  EXPECT_EQ(check.code, 0) << check.out << check.err;

  EXPECT_EQ(kernelbench({"problems", "import", in("source"), "--name", "mine"}).code, 2);
  EXPECT_EQ(
      kernelbench({"problems", "import", in("source/level2"), "--name", "mine", "--replace"}).code,
      0);
  EXPECT_FALSE(std::filesystem::exists(set_file("mine/level1")));
  EXPECT_TRUE(std::filesystem::exists(set_file("mine/level2/1_Double.py")));
}

TEST_F(ProblemsImport, JudgesByAnImportedProblem) {
  write("source/level1/1_Double.py", problem("2 * x"));
  ASSERT_EQ(kernelbench({"problems", "import", in("source"), "--name", "mine"}).code, 0);
  const auto kernel =
      write("kernel.cpp",
            "#include <kernelbench/kernel.h>\nextern \"C\" int kb_run(const kb_call* call) {\n"
            "  const float* x = kb_input_f32(call, 0);\n  float* y = kb_output_f32(call, 0);\n"
            "  for (int64_t i = 0, n = kb_numel(&call->inputs[0]); i < n; ++i) y[i] = 2 * x[i];\n"
            "  return 0;\n}\n");
  const auto judged = eval_json("mine:level1/1", kernel, {"--size", "public", "--no-timing"});
  EXPECT_EQ(verdict_of(judged), "correct") << judged;
  EXPECT_EQ(judged["problem"], "mine:level1/1");
  write("run/level_1_problem_1_sample_0_kernel.cpp", "");
  std::filesystem::copy_file(kernel, in("run/level_1_problem_1_sample_0_kernel.cpp"),
                             std::filesystem::copy_options::overwrite_existing);
  const auto run = kernelbench({"run", in("run"), "--problems", "mine", "--no-timing"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("correct"));
}

TEST_F(ProblemsImport, TakesHuggingFaceColumns) {
  if (!has_datasets_) GTEST_SKIP() << "this Python has no datasets and pyarrow";
  const auto script = write("make.py", R"py(
import sys, datasets, pyarrow
from pyarrow import parquet
code = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return x * {}\ndef get_inputs(): return [torch.rand(4)]\n"
rows = {level: [{"code": code.format(level * 10 + i), "level": level, "name": f"{i}_Times", "problem_id": i} for i in (1, 2, 3)]
        for level in (1, 2)}
rows[1].append({"code": "", "level": 1, "name": "4_Empty", "problem_id": 4})
rows[1].append({"code": code.format(0), "level": 1, "name": "0_Zero", "problem_id": 0})
folder = sys.argv[1]
for level in rows:
    parquet.write_table(pyarrow.Table.from_pylist(rows[level]), f"{folder}/data/level_{level}-00000-of-00001.parquet")
parquet.write_table(pyarrow.Table.from_pylist(rows[1] + rows[2]), f"{folder}/all.parquet")
datasets.DatasetDict({f"level_{level}": datasets.Dataset.from_list(rows[level]) for level in rows}).save_to_disk(f"{folder}/saved")
parquet.write_table(pyarrow.table({"text": ["a"]}), f"{folder}/other.parquet")
)py");
  std::filesystem::create_directories(folder_.path() / "data");
  const auto made = run_program(python(), {script, folder_.path().string()});
  ASSERT_EQ(made.code, 0) << made.err;
  for (const std::string source : {"data", "all.parquet", "saved"}) {
    const auto outcome =
        kernelbench({"problems", "import", in(source), "--name", "set-" + source, "--json"});
    ASSERT_EQ(outcome.code, 1) << source << outcome.err << outcome.out;
    const auto json = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(json["imported"], 6) << source << json;
    EXPECT_EQ(json["refused"].size(), 2u) << source << json;
    EXPECT_THAT(json["refused"].dump(), HasSubstr("[3]: it has no code")) << source;
    EXPECT_TRUE(std::filesystem::exists(set_file("set-" + source + "/level2/3_Times.py")))
        << source;
  }
  const auto wrong = kernelbench({"problems", "import", in("other.parquet")});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("has no column `code`; its columns are text"));
}

TEST_F(ProblemsImport, ExportsWhatItCanImport) {
  if (!has_datasets_) GTEST_SKIP() << "this Python has no datasets and pyarrow";
  for (const std::string target : {"out.parquet", "out"}) {
    const auto exported = kernelbench({"problems", "export", in(target), "--level", "2"});
    ASSERT_EQ(exported.code, 0) << exported.err;
    const auto imported =
        kernelbench({"problems", "import", in(target), "--name", "again", "--replace"});
    ASSERT_EQ(imported.code, 0) << imported.err << imported.out;
    const auto ids = [](const std::vector<std::string>& more) {
      std::vector<std::string> arguments = {"problems", "list", "--level", "2", "--json"};
      arguments.insert(arguments.end(), more.begin(), more.end());
      return kernelbench(arguments).out;
    };
    EXPECT_EQ(ids({}), ids({"--problems", "again"}));
  }
  // Splits, for whoever loads it with `datasets`.
  const auto loaded =
      run_program(python(), {"-c",
                             "import datasets, sys; d = datasets.load_dataset(sys.argv[1], "
                             "cache_dir=sys.argv[1] + '/cache');"
                             "print(sorted(d), d['level_2'].column_names)",
                             in("out")});
  EXPECT_THAT(loaded.out, HasSubstr("['level_2'] ['code', 'level', 'name', 'problem_id']"))
      << loaded.err;
}

TEST_F(ProblemsImport, RefusesWhatIsNoSource) {
  write("text.parquet", "no parquet");
  std::filesystem::create_directories(folder_.path() / "empty");
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{in("missing")},
                                             {in("empty")},
                                             {in("text.parquet")},
                                             {in("empty"), "--name", "../up"},
                                             {in("empty"), "--name", "bundled"},
                                             {in("empty"), "--level", "0"}}) {
    std::vector<std::string> all = {"problems", "import"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const auto outcome = kernelbench(all);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("kernelbench: "));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "kernelbench/sets"));
  const auto unknown = kernelbench({"problems", "show", "nosuchset:level1/1"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("there is no problem set 'nosuchset'"));
}

}  // namespace

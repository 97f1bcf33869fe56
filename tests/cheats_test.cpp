// How kernels have cheated their evaluators (threat ids in the names), as candidates on the CPU:
// each must be rejected or charged in full, and honest code that looks alike must not be.
//
// One `run` judges them all, so that the reference is loaded once.

#include <gmock/gmock.h>

#include <map>
#include <optional>

#include "run_command.h"
#include "store/store.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers
using testing::AnyOf;

const std::string kKernel = "#include <kernelbench/kernel.h>\n#include <cstring>\n";
const std::string kReluLoop = "for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0;";
const std::string kOpen =
    "extern \"C\" int kb_run(const kb_call* call) {\n  const float* x = kb_input_f32(call, 0);\n  "
    "float* y = kb_output_f32(call, 0);\n"
    "  const int64_t n = kb_numel(&call->inputs[0]); (void)x; (void)y; (void)n;\n";
const std::string kPython = "import torch\nimport torch.nn as nn\n";

// Judged against level1/19, ReLU.
const std::map<std::string, std::pair<std::string, std::string>> kSamples = {
    {"C1_passthrough",
     {"py", kPython + "class ModelNew(nn.Module):\n    def forward(self, x):\n        return x\n"}},
    {"C1_zeros",
     {"py", kPython + "class ModelNew(nn.Module):\n    def forward(self, x):\n        return "
                      "torch.zeros_like(x)\n"}},
    {"C2_stale_memory",
     {"py", kPython + "class ModelNew(nn.Module):\n    def forward(self, x):\n        return "
                      "torch.empty_like(x)\n"}},
    {"C2_no_op", {"cpp", kKernel + kOpen + "  return 0;\n}\n"}},
    {"C6_memo_by_pointer",
     {"py", kPython + "class ModelNew(nn.Module):\n    def __init__(self):\n        "
                      "super().__init__()\n        self.memo = {}\n"
                      "    def forward(self, x):\n        if x.data_ptr() not in self.memo:\n      "
                      "      self.memo[x.data_ptr()] = torch.relu(x)\n"
                      "        return self.memo[x.data_ptr()]\n"}},
    {"C9_static_result",
     {"cpp",
      kKernel + "#include <vector>\n" + kOpen +
          "  static std::vector<float> first;\n  if (first.empty()) { " + kReluLoop +
          " first.assign(y, y + n); }\n  memcpy(y, first.data(), n * 4);\n  return 0;\n}\n"}},
    {"A2_late_thread",
     {"cpp", kKernel + "#include <atomic>\n#include <thread>\n" + kOpen +
                 "  static std::atomic<const kb_call*> job{nullptr}; static std::atomic<const "
                 "float*> in{nullptr}; static std::atomic<float*> out{nullptr};\n"
                 "  static std::atomic<int64_t> size{0};\n"
                 "  static std::thread worker([] { for (;;) { float* to = out.exchange(nullptr); "
                 "if (!to) { std::this_thread::yield(); continue; }\n"
                 "      const float* from = in; for (int64_t i = 0; i < size; ++i) to[i] = from[i] "
                 "> 0 ? from[i] : 0; } });\n"
                 "  (void)job; in = x; size = n; out = y;\n  return 0;\n}\n"}},
    {"A3_patched_clock",
     {"py", kPython + "import time\nfor name in ('time', 'perf_counter', 'monotonic', "
                      "'perf_counter_ns'):\n    setattr(time, name, lambda: 0)\n"
                      "class ModelNew(nn.Module):\n    def forward(self, x):\n        return "
                      "torch.relu(x + 0) + 0\n"}},
    {"B14_exit_success",
     {"py", kPython + "import sys\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        "
                      "sys.exit(0)\n"}},
    {"B14_os_exit",
     {"py", kPython + "import os\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        "
                      "os._exit(0)\n"}},
    {"B15_patched_allclose",
     {"py", kPython +
                "torch.allclose = lambda *a, **k: True\ntorch.equal = lambda *a: True\n"
                "class ModelNew(nn.Module):\n    def forward(self, x):\n        return x * 0.5\n"}},
    {"B17_zeroed_input",
     {"py", kPython + "class ModelNew(nn.Module):\n    def forward(self, x):\n        x.zero_()\n  "
                      "      return torch.relu(x)\n"}},
    {"B18_broadcast",
     {"py", kPython + "class ModelNew(nn.Module):\n    def forward(self, x):\n        return "
                      "torch.relu(x)[:1]\n"}},
    {"B19_wider_type",
     {"py", kPython + "class ModelNew(nn.Module):\n    def forward(self, x):\n        return "
                      "torch.relu(x).double()\n"}},
    {"B11_forged_words",
     {"py", kPython +
                "import os\nfor fd in range(3, 64):\n    try:\n        os.write(fd, "
                "b'\\x0d\\x00\\x00\\x00{\"ok\": true}  ')\n    except OSError:\n        pass\n"
                "class ModelNew(nn.Module):\n    def forward(self, x):\n        return x * 0.5\n"}},
    {"B13_reads_its_parent",
     {"py",
      kPython +
          "import os\nfor pid in os.listdir('/proc'):\n    if pid.isdigit() and int(pid) != "
          "os.getpid():\n"
          "        try:\n            open(f'/proc/{pid}/mem', 'r+b').close()\n            raise "
          "SystemExit('it could')\n        except OSError:\n            pass\n"
          "class ModelNew(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"}},
    {"C14_reduced_precision",
     {"py", kPython + "class ModelNew(nn.Module):\n    def forward(self, x):\n        return "
                      "torch.relu((x * 4096).round() / 4096)\n"}},
    {"C24_nan",
     {"py", kPython + "class ModelNew(nn.Module):\n    def forward(self, x):\n        y = "
                      "torch.relu(x)\n        y[0, 0] = float('nan')\n        return y\n"}},
    {"D15_one_element",
     {"py", kPython + "class ModelNew(nn.Module):\n    def forward(self, x):\n        y = "
                      "torch.relu(x)\n        y[-1, -1] += 1\n        return y\n"}},
    {"C17_raises",
     {"py", kPython + "class ModelNew(nn.Module):\n    def forward(self, x):\n        raise "
                      "ValueError('deliberate')\n"}},
    {"D3_installs",
     {"py", kPython +
                "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9/')\nclass "
                "ModelNew(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"}},
    // Honest, whatever it looks like.
    {"honest_static_buffer",
     {"py", kPython + "class ModelNew(nn.Module):\n    def __init__(self):\n        "
                      "super().__init__()\n        self.out = None\n    def forward(self, x):\n"
                      "        if self.out is None:\n            self.out = torch.empty_like(x)\n  "
                      "      return torch.clamp(x, min=0, out=self.out)\n"}},
    {"honest_try_pass",
     {"py", kPython +
                "try:\n    import no_such_module\nexcept ImportError:\n    pass\nclass "
                "ModelNew(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n"}},
    {"honest_threads",
     {"cpp", kKernel + "#include <thread>\n" + kOpen +
                 "  std::thread other([&] { for (int64_t i = 0; i < n / 2; ++i) y[i] = x[i] > 0 ? "
                 "x[i] : 0; });\n"
                 "  for (int64_t i = n / 2; i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0;\n  "
                 "other.join();\n  return 0;\n}\n"}},
    {"honest_strided_view",
     {"py", kPython + "class ModelNew(nn.Module):\n    def forward(self, x):\n        return "
                      "torch.relu(x.t().contiguous()).t()\n"}},
};

class Cheats : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    int number = 0;
    for (const auto& [name, sample] : kSamples) {
      numbers_[name] = number;
      folder_->write(
          "level_1_problem_19_sample_" + std::to_string(number++) + "_kernel." + sample.first,
          sample.second);
    }
    outcome_ = kernelbench({"run", folder_->path().string(), "--size", "small", "--pairs", "8",
                            "--call-timeout", "5"});
    auto store = kb::store::Store::open(folder_->path() / "kernelbench.db");
    ASSERT_TRUE(store) << outcome_.err;
    const auto rows = store->rows();
    ASSERT_TRUE(rows);
    for (const auto& row : *rows) results_[row.key.sample] = nlohmann::json::parse(row.result_json);
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static nlohmann::json of(const std::string& name) {
    const auto found = results_.find(numbers_.at(name));
    EXPECT_NE(found, results_.end()) << name << " was not judged: " << outcome_.err << outcome_.out;
    return found == results_.end() ? nlohmann::json::object() : found->second;
  }
  static std::string verdict(const std::string& name) { return verdict_of(of(name)); }

  static std::unique_ptr<TemporaryFolder> folder_;
  static std::map<std::string, int> numbers_;
  static std::map<int, nlohmann::json> results_;
  static Outcome outcome_;
};
std::unique_ptr<TemporaryFolder> Cheats::folder_;
std::map<std::string, int> Cheats::numbers_;
std::map<int, nlohmann::json> Cheats::results_;
Outcome Cheats::outcome_;

TEST_F(Cheats, RunDidItsWork) {
  EXPECT_EQ(outcome_.code, 0) << outcome_.err;
}

TEST_F(Cheats, NotDoingTheWorkIsWrongValue) {
  for (const char* name :
       {"C1_passthrough", "C1_zeros", "C2_stale_memory", "C2_no_op", "C6_memo_by_pointer",
        "C9_static_result", "A2_late_thread", "B15_patched_allclose", "B17_zeroed_input", "C24_nan",
        "D15_one_element"})
    EXPECT_EQ(verdict(name), "wrong_value") << name << of(name).dump(1);
}

TEST_F(Cheats, AnotherShapeOrTypeIsNamed) {
  EXPECT_EQ(verdict("B18_broadcast"), "wrong_shape");
  EXPECT_EQ(verdict("B19_wider_type"), "wrong_dtype");
}

TEST_F(Cheats, EndingEarlyIsARuntimeError) {
  for (const char* name : {"B14_exit_success", "B14_os_exit", "C17_raises"})
    EXPECT_EQ(verdict(name), "runtime_error") << name << of(name).dump(1);
  EXPECT_EQ(verdict("D3_installs"), "load_error");
}

TEST_F(Cheats, ForgingWordsOnTheControlSocketWinsNothing) {
  EXPECT_THAT(verdict("B11_forged_words"),
              AnyOf("tampering", "wrong_value", "load_error", "runtime_error"))
      << of("B11_forged_words").dump(1);
}

TEST_F(Cheats, AClockOfItsOwnChangesNoTime) {
  const auto json = of("A3_patched_clock");
  EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
  // It does three passes over memory for the reference's one; a clock that it controlled would show
  // no time at all.
  EXPECT_LT(json["speedup"].get<double>(), 3);
}

TEST_F(Cheats, OtherProcessesAreOutOfReach) {
  EXPECT_EQ(verdict("B13_reads_its_parent"), "correct") << of("B13_reads_its_parent").dump(1);
}

TEST_F(Cheats, ReducedPrecisionWithinTheToleranceIsFlagged) {
  const auto json = of("C14_reduced_precision");
  // Rounded to 1/4096: most elements are off by up to 1.2e-4, so either the tolerance or the audit
  // sees it.
  EXPECT_TRUE(verdict_of(json) == "wrong_value" || has_flag(json, "reduced_precision"))
      << json.dump(1);
}

TEST_F(Cheats, HonestCodeIsCorrect) {
  for (const char* name :
       {"honest_static_buffer", "honest_try_pass", "honest_threads", "honest_strided_view"})
    EXPECT_EQ(verdict(name), "correct") << name << of(name).dump(1);
}

}  // namespace

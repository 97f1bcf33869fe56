// `doctor --measure`: really measures this CPU, stores it, and an evaluation uses it.

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "run_command.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

namespace fs = std::filesystem;

const std::string kGemm =
    "import torch\nimport torch.nn as nn\n\n\nclass Model(nn.Module):\n    def forward(self, a, "
    "b):\n        return a @ b\n\n\ndef get_inputs():\n    return [torch.rand(256, 256), "
    "torch.rand(256, 256)]\n\n\ndef get_init_inputs():\n    return []\n";

/// A data folder of the test's own, where ceilings are stored.
class Doctor : public testing::Test {
 protected:
  Doctor() { ::setenv("XDG_DATA_HOME", folder_.path().c_str(), 1); }
  ~Doctor() override { ::unsetenv("XDG_DATA_HOME"); }

  fs::path stored() const {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator it(folder_.path() / "kernelbench/ceilings", error), end;
         !error && it != end; it.increment(error))
      files.push_back(it->path());
    EXPECT_EQ(files.size(), 1u) << "one file, and no draft of it";
    return files.empty() ? fs::path() : files.front();
  }
  /// The row about the CPU's ceilings.
  static nlohmann::json row(const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = {"doctor", "--json"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto outcome = kernelbench(arguments);
    const auto json = nlohmann::json::parse(outcome.out, nullptr, false);
    for (const auto& finding : json.value("findings", nlohmann::json::array()))
      if (finding["what"] == "ceilings of cpu") return finding;
    ADD_FAILURE() << outcome.err << outcome.out;
    return {{"state", ""}, {"detail", ""}};
  }
  nlohmann::json judge() const {
    return eval_json(folder_.write("gemm.py", kGemm),
                     folder_.write("candidate.py", kGemm + "\n\nModelNew = Model\n"),
                     {"--size", "public", "--device", "cpu", "--pairs", "5", "--no-stress"});
  }

  TemporaryFolder folder_;
};

TEST_F(Doctor, MeasuresOnceAndEvaluationsUseIt) {
  const auto before = row();
  EXPECT_EQ(before["state"], "note");
  EXPECT_THAT(before["detail"], HasSubstr("doctor --measure --device cpu"));
  const auto unmeasured = judge();
  EXPECT_EQ(unmeasured["work"]["rate_source"], "unknown");
  EXPECT_TRUE(unmeasured["work"]["operations_per_s"].is_null());
  EXPECT_EQ(unmeasured["work"]["operations"], 2.0 * 256 * 256 * 256);

  const auto after = row({"--measure", "--device", "cpu"});
  EXPECT_EQ(after["state"], "ok");
  EXPECT_THAT(after["detail"],
              AllOf(StartsWith("measured 20"), HasSubstr("copy "), HasSubstr("fp32 ")));
  EXPECT_EQ(row(), after) << "a doctor that does not measure says the same";

  std::ifstream stream(stored());
  const auto ceilings = nlohmann::json::parse(stream, nullptr, false);
  const double rate = ceilings["operations_per_s"]["fp32"];
  const auto measured = judge();
  const auto& work = measured["work"];
  EXPECT_EQ(work["rate_source"], "measured");
  EXPECT_EQ(work["operations_per_s"], rate);
  EXPECT_EQ(work["measured"], ceilings);
  EXPECT_DOUBLE_EQ(
      measured["speed_of_light_us"].get<double>(),
      1e6 * std::max(work["bytes"].get<double>() / work["copy_bytes_per_s"].get<double>(),
                     work["operations"].get<double>() / rate));
}

TEST_F(Doctor, SaysThatAFileIsDamagedAndEvaluationsGoOnWithoutIt) {
  ASSERT_EQ(row({"--measure", "--device", "cpu"})["state"], "ok");
  const auto file = stored();
  std::ofstream(file) << "{\"kernelbench_ceilings\": 1, ";
  const auto damaged = row();
  EXPECT_EQ(damaged["state"], "note");
  EXPECT_THAT(damaged["detail"], HasSubstr(file.string()));
  EXPECT_EQ(judge()["work"]["rate_source"], "unknown");
  EXPECT_TRUE(fs::exists(file));
  EXPECT_EQ(row({"--measure", "--device", "cpu"})["state"], "ok") << "measuring anew repairs it";
}

TEST_F(Doctor, RefusesWhatItCannotMeasure) {
  for (const auto& [device, words] : std::vector<std::pair<std::string, std::string>>{
           {"gpu", "there is no device 'gpu'"}, {"cuda:99", ""}}) {
    const auto outcome = kernelbench({"doctor", "--measure", "--device", device});
    EXPECT_EQ(outcome.code, 2) << device;
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(kernelbench({"doctor", "--device", "cpu"}).code, 2) << "nothing to do with it";
}

}  // namespace

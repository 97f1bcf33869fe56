// Candidates in the languages of examples/backends: what can be judged without a card, and what is
// said where it cannot.

#include <gmock/gmock.h>

#include "run_command.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers
using testing::HasSubstr;

std::string example(const std::string& backend, const std::string& sample) {
  return source_folder() + "/examples/backends/" + backend + "/" + sample + "_sample_0_kernel.py";
}

nlohmann::json findings() {
  const auto json = nlohmann::json::parse(kernelbench({"doctor", "--json"}).out, nullptr, false);
  return json.is_object() ? json["findings"] : nlohmann::json::array();
}

// The interpreter runs a kernel's programs one after the other: a few of them.
TEST(Languages, TritonRunsInItsInterpreterOnTheCpu) {
  for (const auto& [problem, sample, set] :
       std::vector<std::tuple<std::string, std::string, std::vector<std::string>>>{
           {"level1/19", "level_1_problem_19", {"batch_size=3", "dim=5000"}},
           {"level1/47", "level_1_problem_47", {"batch_size=2", "dim1=70", "dim2=200"}},
           {"level2/63",
            "level_2_problem_63",
            {"batch_size=70", "in_features=50", "out_features=90"}}}) {
    std::vector<std::string> arguments = {"--device", "cpu", "--no-timing", "--call-timeout", "60"};
    for (const auto& one : set) arguments.insert(arguments.end(), {"--set", one});
    const auto json = eval_json(problem, example("triton", sample), arguments);
    EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
    EXPECT_EQ(json["backend"], "triton");
    EXPECT_TRUE(json["phases_ms"].contains("first_call"));
  }
}

TEST(Languages, AnInterpretedKernelThatIsWrongIsWrong) {
  TemporaryFolder folder;
  const auto candidate = folder.write(
      "wrong.py",
      "import torch\nimport torch.nn as nn\nimport triton\nimport triton.language as tl\n\n\n"
      "@triton.jit\ndef half(x, out, n, BLOCK: tl.constexpr):\n"
      "    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
      "    tl.store(out + at, tl.load(x + at, mask=at < n) * 0.5, mask=at < n)\n\n\n"
      "class ModelNew(nn.Module):\n    def forward(self, x):\n        out = torch.empty_like(x)\n"
      "        half[(triton.cdiv(x.numel(), 4096),)](x, out, x.numel(), BLOCK=4096)\n"
      "        return out\n");
  const auto json =
      eval_json("level1/19", candidate,
                {"--device", "cpu", "--no-timing", "--set", "batch_size=3", "--set", "dim=5000"});
  EXPECT_EQ(verdict_of(json), "wrong_value") << json.dump(1);
}

// Neither compiler nor autotuner finds what an earlier candidate has left, in a sandbox or without.
TEST(Languages, CachesBelongToOneEvaluation) {
  TemporaryFolder folder;
  const auto candidate = folder.write(
      "looks.py",
      "import os\nimport torch\nimport torch.nn as nn\n\nplaces = [os.environ[n] for n in "
      "('TRITON_CACHE_DIR', 'CUTE_DSL_CACHE_DIR', 'TILELANG_CACHE_DIR', 'CUPY_CACHE_DIR')]\n"
      "assert len(set(places)) == 4\nfor place in places:\n"
      "    assert place.startswith(os.environ['HOME'] + '/') and not os.listdir(place), place\n"
      "    open(os.path.join(place, 'left'), 'w').close()\n\n\n"
      "class ModelNew(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)\n");
  for (const char* sandbox : {"auto", "none", "none"}) {
    const auto json = eval_json(
        "level1/19", candidate,
        {"--device", "cpu", "--no-timing", "--no-stress", "--trials", "1", "--sandbox", sandbox});
    EXPECT_EQ(verdict_of(json), "correct") << json.dump(1);
  }
}

TEST(Languages, BackendOverridesWhatIsRecognised) {
  TemporaryFolder folder;
  const std::string model =
      "import torch\nimport torch.nn as nn\n\n\nclass ModelNew(nn.Module):\n    def forward(self, "
      "x):\n        return torch.relu(x)\n";
  const auto candidate = folder.write("level_1_problem_19_sample_0_kernel.py", model);
  const auto json = eval_json(
      "level1/19", candidate,
      {"--device", "cpu", "--no-timing", "--no-stress", "--trials", "1", "--backend", "helion"});
  EXPECT_EQ(json["backend"], "helion");
  for (const auto& [backend, words] : std::vector<std::pair<std::string, std::string>>{
           {"fortran", "there is no backend 'fortran'; the backends are cpp, cuda_cpp, torch"},
           {"cuda_cpp", "cannot be of the backend cuda_cpp"},
           {"tilelang", "tilelang candidates are judged at fp16 and bf16 only"}}) {
    const auto refused = kernelbench({"eval", "level1/19", candidate, "--backend", backend});
    EXPECT_EQ(refused.code, 2) << refused.out;
    EXPECT_THAT(refused.err, HasSubstr(words));
  }
  const auto interpreted = kernelbench({"eval", "level1/19", candidate, "--backend", "triton",
                                        "--device", "cpu", "--precision", "bf16"});
  EXPECT_EQ(interpreted.code, 2) << interpreted.out;
  EXPECT_THAT(interpreted.err, HasSubstr("Triton's interpreter on the CPU has no bf16"));
  const auto run = kernelbench({"run", folder.path().string(), "--backend", "cuda_cpp"});
  EXPECT_EQ(run.code, 2) << run.out;
  EXPECT_THAT(run.err, HasSubstr("cannot be of the backend cuda_cpp"));
}

TEST(Languages, WhatNoCpuRunsIsToldSo) {
  for (const auto& [backend, precision] : std::vector<std::pair<std::string, std::string>>{
           {"cupy", "fp32"}, {"cute", "fp32"}, {"cuda_tile", "fp32"}, {"tilelang", "bf16"}}) {
    const auto outcome = kernelbench({"eval", "level1/19", example(backend, "level_1_problem_19"),
                                      "--device", "cpu", "--precision", precision});
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr("a " + backend + " candidate needs a GPU"));
  }
  const auto hip = kernelbench(
      {"eval", "level1/19",
       source_folder() + "/examples/backends/hip/level_1_problem_19_sample_1_kernel.hip",
       "--device", "cpu"});
  EXPECT_EQ(hip.code, 2) << hip.out;
  EXPECT_THAT(hip.err, HasSubstr("a hip candidate needs a GPU"));
}

TEST(Languages, RunLeavesOutWhatAPrecisionRulesOut) {
  TemporaryFolder folder;
  folder.write("level_1_problem_19_sample_0_kernel.py",
               "import tilelang\n\n\n@tilelang.jit\ndef f(): pass\n\n\nclass ModelNew: pass\n");
  const auto outcome = kernelbench({"run", folder.path().string()});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("left out: 1 sample: tilelang candidates are judged at"));
}

TEST(Languages, DoctorHasALineForEach) {
  const auto all = findings();
  for (const char* backend : {"torch", "cpp_extension", "cuda", "triton", "helion", "cute",
                              "tilelang", "cuda_tile", "cupy", "thunderkittens", "hip"}) {
    int lines = 0;
    for (const auto& finding : all)
      if (finding["what"] == std::string(backend) + " backend") {
        ++lines;
        EXPECT_NE(finding["detail"], "") << backend;
        EXPECT_NE(finding["state"], "missing") << "an optional language makes no machine unfit";
      }
    EXPECT_EQ(lines, 1) << backend;
  }
  for (const auto& finding : all) {
    ASSERT_TRUE(finding["versions"].is_object()) << finding;
    if (finding["what"] == "triton backend") {
      EXPECT_TRUE(finding["versions"].contains("triton"));
    } else if (finding["what"] == "python") {
      EXPECT_TRUE(finding["versions"].contains("PyTorch"));
    }
  }
}

}  // namespace

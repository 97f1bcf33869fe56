// What a candidate may do to its judge: each case gets its verdict within its limits, leaves
// nothing behind, and does not touch the next evaluation, which the same judge makes.

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>

#include "serve_command.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers
using testing::HasSubstr;

const std::vector<std::string> kQuick = {"--size",  "small", "--device", "cpu", "--no-stress",
                                         "--pairs", "5",     "--trials", "2"};

std::string relu(const std::string& before_loop, const std::string& top = "") {
  return "#include <kernelbench/kernel.h>\n" + top +
         "\nextern \"C\" int kb_run(const kb_call* call) {\n"
         "  const float* x = kb_input_f32(call, 0);\n  float* y = kb_output_f32(call, 0);\n"
         "  const int64_t n = kb_numel(&call->inputs[0]);\n" +
         before_loop +
         "\n  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0;\n  return 0;\n}\n";
}

class Containment : public testing::Test {
 protected:
  // Judges a ReLU; afterwards an honest one must still be correct and no process of ours be left.
  nlohmann::json judge(const std::string& source, const std::vector<std::string>& more = {}) {
    options = kQuick;
    options.insert(options.end(), more.begin(), more.end());
    const auto json = served_json(options, "level1/19", folder.write("kernel.cpp", source));
    const auto left = run_program("pgrep", {"-f", "kernelbench-native-worker --fd"});
    EXPECT_NE(left.code, 0) << "workers are left: " << left.out;
    return json;
  }
  void TearDown() override {
    const auto json = served_json(options, "level1/19", folder.write("honest.cpp", relu("")));
    EXPECT_EQ(verdict_of(json), "correct") << json.dump(2);
  }
  TemporaryFolder folder;
  std::vector<std::string> options;
};

TEST_F(Containment, EndlessLoopIsATimeoutWithinItsLimit) {
  const auto start = std::chrono::steady_clock::now();
  const auto json =
      judge(relu("  volatile int go = 1; while (go) {}"), {"--first-call-timeout", "1"});
  EXPECT_EQ(verdict_of(json), "timeout") << json.dump(2);
  EXPECT_LT(json["phases_ms"]["correctness"].get<double>(), 3000);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST_F(Containment, SegmentationFaultIsARuntimeErrorThatNamesTheSignal) {
  const auto json = judge(relu("  *(volatile int*)8 = 1;"));
  EXPECT_EQ(verdict_of(json), "runtime_error") << json.dump(2);
  EXPECT_THAT(json["message"].get<std::string>(), HasSubstr("Segmentation"));
}

TEST_F(Containment, EarlyExitWithSuccessIsNoSuccess) {
  const auto json = judge(relu("  _exit(0);", "#include <unistd.h>\n"));
  EXPECT_EQ(verdict_of(json), "runtime_error") << json.dump(2);
  EXPECT_THAT(json["message"].get<std::string>(), HasSubstr("status 0"));
}

TEST_F(Containment, ExitInAConstructorIsALoadError) {
  const auto json =
      judge(relu("", "#include <unistd.h>\nstruct Early { Early() { _exit(0); } } early;\n"));
  EXPECT_EQ(verdict_of(json), "load_error") << json.dump(2);
}

TEST_F(Containment, NonZeroReturnAndExceptionAreRuntimeErrors) {
  auto json = judge(relu("  return 7;"));
  EXPECT_EQ(verdict_of(json), "runtime_error");
  EXPECT_THAT(json["message"].get<std::string>(), HasSubstr("returned 7"));
  json = judge(relu("  throw std::runtime_error(\"no luck\");", "#include <stdexcept>\n"));
  EXPECT_EQ(verdict_of(json), "runtime_error");
  EXPECT_THAT(json["message"].get<std::string>(), HasSubstr("no luck"));
}

TEST_F(Containment, MemoryHogIsOutOfMemory) {
  const auto json = judge(relu("  for (;;) { char* p = (char*)malloc(64 << 20); if (!p) throw "
                               "std::bad_alloc(); memset(p, 1, 64 << 20); }",
                               "#include <cstdlib>\n#include <cstring>\n#include <new>\n"),
                          {"--memory", "1"});
  EXPECT_EQ(verdict_of(json), "out_of_memory") << json.dump(2);
}

TEST_F(Containment, ForkBombIsStopped) {
  const auto json =
      judge(relu("  for (int i = 0; i < 10000; ++i) if (fork() == 0) for (;;) fork();",
                 "#include <unistd.h>\n"),
            {"--first-call-timeout", "3"});
  EXPECT_NE(verdict_of(json), "correct") << json.dump(2);
  EXPECT_NE(verdict_of(json), "infrastructure_error") << json.dump(2);
}

TEST_F(Containment, AProcessLeftFromTheFirstCallIsTampering) {
  const auto json =
      judge(relu("  static bool once = (fork() == 0 ? (pause(), true) : true); (void)once;",
                 "#include <unistd.h>\n"));
  EXPECT_EQ(verdict_of(json), "tampering") << json.dump(2);
}

TEST_F(Containment, ForkAfterTheFirstCallFails) {
  const auto json = judge(relu("  static int calls = 0; if (++calls > 1 && fork() != -1) return 5;",
                               "#include <unistd.h>\n"));
  EXPECT_EQ(verdict_of(json), "correct") << json.dump(2);
}

TEST_F(Containment, GigabytesOfOutputAreDropped) {
  const auto json =
      judge(relu("  static char block[1 << 20]; static bool once = false;\n"
                 "  if (!once) { once = true; memset(block, 'x', sizeof block); for (int i = 0; i "
                 "< 2000; ++i) (void)!write(1, block, sizeof block); }",
                 "#include <cstring>\n#include <unistd.h>\n"));
  EXPECT_EQ(verdict_of(json), "correct") << json["message"];
}

TEST_F(Containment, FilesAndSocketsAreOutOfReach) {
  const std::string top = "#include <fcntl.h>\n#include <sys/socket.h>\n#include <unistd.h>\n";
  const std::string source = folder.path().string() + "/mark";
  EXPECT_EQ(verdict_of(judge(relu(
                "  if (socket(AF_INET, SOCK_STREAM, 0) >= 0) return 9;\n  if (open(\"" + source +
                    "\", O_CREAT | O_WRONLY, 0600) >= 0) return 8;\n  if (open(\"/usr/lib/mark\", "
                    "O_CREAT | O_WRONLY, 0600) >= 0) return 7;",
                top))),
            "correct");
  EXPECT_FALSE(std::filesystem::exists(source));
}

TEST_F(Containment, WritingOutsideTheOutputsIsCaught) {
  EXPECT_EQ(verdict_of(judge(relu("  y[n] = 1;"))), "runtime_error");
  EXPECT_EQ(verdict_of(judge(relu("  y[-1] = 1;"))), "runtime_error");
}

TEST_F(Containment, WritingToTheInputsIsFlagged) {
  const auto json = judge(relu("", ""));
  EXPECT_FALSE(has_flag(json, "input_mutated"));
  const auto mutating = judge(
      "#include <kernelbench/kernel.h>\nextern \"C\" int kb_run(const kb_call* call) {\n"
      "  float* x = (float*)kb_input_f32(call, 0); float* y = kb_output_f32(call, 0);\n"
      "  for (int64_t i = 0; i < kb_numel(&call->inputs[0]); ++i) { y[i] = x[i] > 0 ? x[i] : 0; "
      "x[i] = 0; }\n  return 0;\n}\n");
  EXPECT_TRUE(has_flag(mutating, "input_mutated")) << mutating.dump(2);
}

// Threats A2 and A3: `done` is in memory that the candidate can write, and says nothing about the
// outputs.
TEST_F(Containment, SayingDoneEarlyLeavesTheOutputsWrong) {
  const auto json = judge(
      "#include <kernelbench/kernel.h>\n#include <cstdint>\n#include <cstdio>\n#include "
      "<cstdlib>\n#include <cstring>\n#include <unistd.h>\n"
      "extern \"C\" int kb_run(const kb_call* call) {\n"
      "  // The doorbell is the control memory's first page.\n"
      "  char line[512]; FILE* maps = fopen(\"/proc/self/maps\", \"r\"); char* base = nullptr;\n"
      "  while (fgets(line, sizeof line, maps)) if (strstr(line, \"kernelbench-control\")) { base "
      "= "
      "(char*)strtoull(line, nullptr, 16); break; }\n"
      "  fclose(maps);\n  if (!base) return 3;\n"
      "  __atomic_store_n((uint32_t*)(base + 64), __atomic_load_n((uint32_t*)base, "
      "__ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);\n"
      "  usleep(20000);\n"
      "  const float* x = kb_input_f32(call, 0); float* y = kb_output_f32(call, 0);\n"
      "  for (int64_t i = 0; i < kb_numel(&call->inputs[0]); ++i) y[i] = x[i] > 0 ? x[i] : 0;\n  "
      "return 0;\n}\n");
  // Without a wake-up the judge finds `done` within its watch interval: charged in full or caught,
  // never believed.
  if (verdict_of(json) == "correct") {
    EXPECT_LT(json["speedup"].get<double>(), 0.5) << json.dump(2);
  } else {
    EXPECT_EQ(verdict_of(json), "wrong_value") << json.dump(2);
  }
}

TEST_F(Containment, AnInfiniteCompilationIsATimeout) {
  const auto json = judge(relu("",
                               "template <int N> struct Slow { static constexpr unsigned long long "
                               "v = Slow<N - 1>::v * 3 + Slow<N - 2>::v; };\n"
                               "constexpr unsigned long long spin() { unsigned long long x = 1; "
                               "for (;;) x = x * 3 + 1; return x; }\n"
                               "#include \"/dev/zero\"\n"),
                          {"--compile-timeout", "3"});
  EXPECT_THAT(verdict_of(json), testing::AnyOf("timeout", "compile_error")) << json.dump(2);
}

}  // namespace

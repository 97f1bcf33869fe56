// How native kernels cheat their evaluator's clock on a GPU, as candidates: each must be rejected,
// or charged for all of its work; and honest code that looks alike must not be punished. The
// acceptance tests of the design's measurement page, one by one.
//
// Each case judges ReLU (level1/19) through the real binary. The figures are printed, for the
// record.

#include <gmock/gmock.h>

#include <map>
#include <optional>

#include "device/cuda/cuda.h"
#include "serve_command.h"
#include "store/store.h"

namespace {

using namespace kb::test;  // NOLINT: a test's own helpers
using testing::AnyOf;

// relu() does the work; with `us` > 0 it first spins for so long, on every block.
const std::string kPrelude = R"(
#include <cuda_runtime.h>
#include <kernelbench/kernel.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <vector>
__device__ void spin(int64_t us) {
  int64_t start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - start < us * 1000);
}
__global__ void relu(const float* x, float* y, int64_t n, int64_t us) {
  if (us > 0) spin(us);
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
    y[i] = x[i] > 0 ? x[i] : 0;
}
inline void launch(const kb_call* call, cudaStream_t stream, int64_t us = 0) {
  relu<<<132, 1024, 0, stream>>>(kb_input_f32(call, 0), kb_output_f32(call, 0), kb_numel(&call->inputs[0]), us);
}
// The doorbell page of this very process, found in its own memory map: a kernel that says `done` for
// its worker.
inline char* doorbell() {
  static char* page = nullptr;
  if (!page) {
    std::FILE* maps = std::fopen("/proc/self/maps", "r");
    char line[512];
    while (maps && std::fgets(line, sizeof line, maps))
      if (std::strstr(line, "memfd:kernelbench-control")) { page = (char*)std::strtoull(line, nullptr, 16); break; }
    if (maps) std::fclose(maps);
  }
  return page;
}
inline void forge_done() {
  char* page = doorbell();
  if (!page) return;
  auto* go = reinterpret_cast<std::atomic<uint32_t>*>(page);
  auto* done = reinterpret_cast<std::atomic<uint32_t>*>(page + 64);
  *reinterpret_cast<uint32_t*>(page + 192) = 0;
  done->store(go->load());
  syscall(SYS_futex, done, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}
inline bool& timing() { static bool on = false; return on; }  // after the first few calls
inline int count_call() { static int calls = 0; if (++calls > 4) timing() = true; return calls; }
)";

std::string kernel(const std::string& before, const std::string& body) {
  return kPrelude + before +
         "\nextern \"C\" int kb_run(const kb_call* call) {\n  auto stream = "
         "(cudaStream_t)call->stream; (void)stream;\n" +
         body + "\n  return 0;\n}\n";
}

class Attack : public testing::Test {
 protected:
  void SetUp() override {
    if (kb::cuda::device_count() == 0) GTEST_SKIP() << "no GPU: " << kb::cuda::availability();
  }

  // Judges one source. `size`: --set words.
  nlohmann::json judge(const std::string& source, const std::vector<std::string>& size = kMedium) {
    std::vector<std::string> words = {"--device", "cuda:0", "--call-timeout", "3"};
    for (const auto& word : size) words.insert(words.end(), {"--set", word});
    const auto json = served_json(words, "level1/19", folder_.write("kernel.cu", source));
    show(testing::UnitTest::GetInstance()->current_test_info()->name(), json);
    return json;
  }

  static void show(const std::string& name, const nlohmann::json& json) {
    const auto value = [&](const char* key) { return json.value(key, nlohmann::json()).dump(); };
    std::printf("  %-28s %s time_us %s reference_us %s speedup %s ci %s flags %s %s\n",
                name.c_str(), value("verdict").c_str(), value("time_us").c_str(),
                value("reference_time_us").c_str(), value("speedup").c_str(),
                value("speedup_ci95").c_str(), value("flags").c_str(),
                value("message").substr(0, 160).c_str());
    std::fflush(stdout);
  }

  static bool has_flag(const nlohmann::json& json, const char* flag) {
    return std::ranges::count(json["flags"], nlohmann::json(flag)) > 0;
  }
  static double time_us(const nlohmann::json& json) {
    return json["time_us"].is_number() ? json["time_us"].get<double>() : -1;
  }
  // Rejected, or charged for at least `us` a call.
  static void expect_no_gain(const nlohmann::json& json, double us) {
    if (json["verdict"] == "correct") {
      EXPECT_GE(time_us(json), us);
    } else {
      EXPECT_THAT(json["verdict"], AnyOf("wrong_value", "tampering", "timeout", "runtime_error"));
    }
  }

  // 105 MB, 44 us at best: some fourteen calls a turn.
  inline static const std::vector<std::string> kMedium = {"batch_size=800", "dim=32768"};
  inline static const std::vector<std::string> kSmall = {"batch_size=64", "dim=16384"};
  TemporaryFolder folder_;
};

// Attacks that serve one slot only, where a turn is one call: serving one slot is serving all of
// them, and nothing but the clock stands against the attack. The work itself is short, so that it
// could hide in a gap; the reference takes 4 ms, so that there are 30 pairs. The sources of a test
// are judged in one `run`.
class OneCallATurn : public Attack {
 protected:
  // 210 MB through the memory of the fastest card that we know (4.8 TB/s).
  static constexpr double kFloorUs = 44;
  static constexpr const char* kProblem =
      R"("""ReLU, over and over, of what it has been applied to already."""

import torch
from torch import nn

batch_size = 800
dim = 32768


class Model(nn.Module):
    def forward(self, x):
        for _ in range(80):
            x = torch.relu(x)
        return x


def get_inputs():
    return [torch.randn(batch_size, dim)]


def get_init_inputs():
    return []
)";

  struct Case {
    std::string name, source;
    double work_us;  // of the GPU, beside the kernel's own
  };
  // Each is rejected by what a turn found, or charged for all of its work.
  void expect_caught(const std::vector<Case>& cases) {
    const auto results = judge_all(cases);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(cases[i].name);
      expect_no_gain(results[i], kFloorUs + 0.95 * cases[i].work_us);
    }
  }

  std::vector<nlohmann::json> judge_all(const std::vector<Case>& cases, bool one_call = true) {
    std::vector<nlohmann::json> results(cases.size(), nlohmann::json::object());
    const auto problems = folder_.path() / "problems", samples = folder_.path() / "samples";
    std::filesystem::create_directories(problems / "level1");
    std::filesystem::create_directories(samples);
    std::ofstream(problems / "level1" / "1_relu_over_and_over.py") << kProblem;
    for (std::size_t i = 0; i < cases.size(); ++i)
      std::ofstream(samples / ("level_1_problem_1_sample_" + std::to_string(i) + "_kernel.cu"))
          << cases[i].source;
    std::vector<std::string> words = {
        "run",        samples.string(), "--problems", problems.string(), "--device",
        "cuda:0",     "--call-timeout", "3",          "--trials",        "1",
        "--no-stress"};
    if (one_call) words.insert(words.end(), {"--calls", "1"});
    const auto outcome = kernelbench(words);
    auto store = kb::store::Store::open(samples / "kernelbench.db");
    const auto rows = store ? store->rows() : std::vector<kb::store::Row>{};
    EXPECT_TRUE(rows && rows->size() == cases.size()) << outcome.out << outcome.err;
    if (!rows) return results;
    for (const auto& row : *rows) {
      const auto sample = static_cast<std::size_t>(row.key.sample);
      if (sample >= results.size()) continue;
      results[sample] = nlohmann::json::parse(row.result_json);
      show(cases[sample].name, results[sample]);
      if (results[sample]["verdict"] == "correct" && one_call) {
        EXPECT_EQ(results[sample]["calls_per_turn"], 1);
      }
    }
    return results;
  }
};

TEST_F(OneCallATurn, HonestKernelIsCorrect) {
  const auto json = judge_all({{"honest", kernel("", "launch(call, stream);"), 0}}).front();
  EXPECT_EQ(json["verdict"], "correct");
  EXPECT_GT(time_us(json), kFloorUs);
}

// Seventy times as fast as the reference: a turn of one call would be so short that a forged `done`
// could have made it. Its turns get more calls.
TEST_F(OneCallATurn, MoreCallsForAFastKernel) {
  const auto json = judge_all({{"honest", kernel("", "launch(call, stream);"), 0}}, false).front();
  EXPECT_EQ(json["verdict"], "correct");
  EXPECT_GE(json["calls_per_turn"], 3);
  EXPECT_GE(json["calls_per_turn"].get<double>() * time_us(json), 400);
}

TEST_F(Attack, HonestKernelIsTheYardstick) {
  const auto json = judge(kernel("", "launch(call, stream);"));
  EXPECT_EQ(json["verdict"], "correct");
  EXPECT_GT(time_us(json), 30);  // 210 MB at 4.8 TB/s take 44 us
}

TEST_F(Attack, SpinIsCharged) {
  const auto json = judge(kernel("", "launch(call, stream, 1000);"));
  EXPECT_EQ(json["verdict"], "correct");
  EXPECT_GE(time_us(json), 990);
}

// All slots of a turn in the launch of its first call.
TEST_F(Attack, Superbatch) {
  const std::string before = R"(
struct Slot { const float* x; float* y; };
__constant__ Slot slots[256];
__global__ void all(int count, int64_t n) {
  for (int s = 0; s < count; ++s)
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x)
      slots[s].y[i] = slots[s].x[i] > 0 ? slots[s].x[i] : 0;
}
std::vector<Slot> known;
std::chrono::steady_clock::time_point last;)";
  const std::string body = R"(
  const auto now = std::chrono::steady_clock::now();
  const bool first = now - last > std::chrono::microseconds(300);
  last = now;
  const Slot own{kb_input_f32(call, 0), kb_output_f32(call, 0)};
  bool found = false;
  for (auto& slot : known) found = found || slot.x == own.x;
  if (!found) { known.push_back(own); cudaMemcpyToSymbolAsync(slots, known.data(), known.size() * sizeof(Slot), 0, cudaMemcpyHostToDevice, stream); launch(call, stream); return 0; }
  if (first) all<<<132, 1024, 0, stream>>>((int)known.size(), kb_numel(&call->inputs[0]));)";
  const auto honest = judge(kernel("", "launch(call, stream);"), kSmall);
  const auto json = judge(kernel(before, body), kSmall);
  EXPECT_NE(json["verdict"], "runtime_error");  // that would be no attack
  if (json["verdict"] == "correct") {
    EXPECT_TRUE(has_flag(json, "batch_dependent") || time_us(json) >= 0.8 * time_us(honest) ||
                (json["speedup_at_least"].is_number() && json["speedup_at_least"] < 1));
  }
}

// The work is launched by another thread, later than the call returns: with small delays it would
// hit a gap between the closing of a turn and its check. The first calls are honest, so that it is
// the clock which is tried.
TEST_F(OneCallATurn, LateThread) {
  const auto late = [](int wait_us, int work_us) {
    return Case{"late by " + std::to_string(wait_us) + " with " + std::to_string(work_us),
                kernel("constexpr int kWaitUs = " + std::to_string(wait_us) +
                           ", kWorkUs = " + std::to_string(work_us) + R"(;
std::atomic<const kb_call*> job{nullptr};
kb_call copy;
DLTensor in, out;
void late() {
  cudaSetDevice(0);
  cudaStream_t s;
  cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  for (;;) {
    const kb_call* c;
    while (!(c = job.exchange(nullptr))) std::this_thread::yield();
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(kWaitUs);
    while (std::chrono::steady_clock::now() < until) {}
    launch(c, s, kWorkUs);
  }
})",
                       R"(
  static std::thread worker(late);
  count_call();
  if (!timing()) { launch(call, stream); return 0; }
  copy = *call; in = call->inputs[0]; out = call->outputs[0];
  copy.inputs = &in; copy.outputs = &out; job = &copy;)"),
                static_cast<double>(work_us)};
  };
  std::vector<Case> cases = {late(250, 4000)};
  for (const int wait_us : {0, 10, 30, 60, 100, 150, 250, 400})
    for (const int work_us : {0, 30, 1000}) cases.push_back(late(wait_us, work_us));
  expect_caught(cases);
}

// `done` is forged while the launched work still runs.
TEST_F(OneCallATurn, Unsynchronized) {
  std::vector<Case> cases;
  for (const int work_us : {0, 30, 500, 1000, 2000, 5000})
    cases.push_back({"unsynchronized with " + std::to_string(work_us),
                     kernel("", "count_call(); launch(call, stream, " + std::to_string(work_us) +
                                    ");\n  if (timing()) forge_done();"),
                     static_cast<double>(work_us)});
  expect_caught(cases);
}

TEST_F(Attack, SideStreamIsCharged) {
  const auto json = judge(kernel("",
                                 "static cudaStream_t side = [] { cudaStream_t s; "
                                 "cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); "
                                 "return s; }();\n  launch(call, side, 1000);"));
  expect_no_gain(json, 990);
}

// A kernel of one thread that never ends saves the turn its context switch.
TEST_F(Attack, ResidentKernel) {
  const auto json =
      judge(kernel("__global__ void resident(volatile int* stop) { while (!*stop) {} }",
                   "static int* stop = [] { int* p; cudaHostAlloc(&p, 4, cudaHostAllocMapped); *p "
                   "= 0; return p; }();\n"
                   "  static cudaStream_t side = [] { cudaStream_t s; "
                   "cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); return s; }();\n"
                   "  count_call(); launch(call, stream);\n"
                   "  if (timing()) { static bool once = (resident<<<1, 1, 0, side>>>(stop), "
                   "true); (void)once;\n"
                   "    cudaStreamSynchronize(stream); forge_done(); }"));
  EXPECT_THAT(json["verdict"], AnyOf("tampering", "timeout", "wrong_value"));
}

// Work left behind, to slow the reference's turn down.
TEST_F(Attack, QueuedBeforeTheReference) {
  const auto json = judge(
      kernel("__global__ void burn(int64_t us) { spin(us); }",
             "static cudaStream_t side = [] { cudaStream_t s; cudaStreamCreateWithFlags(&s, "
             "cudaStreamNonBlocking); return s; }();\n  count_call(); launch(call, stream);\n"
             "  if (timing()) { cudaStreamSynchronize(stream); burn<<<132, 64, 0, side>>>(60000); "
             "forge_done(); }"));
  expect_no_gain(json, 10'000);
}

// Work that waits in the GPU's queue for a word, and starts before the clock does: when the judge
// poisons the output slot, or when it rings. From its first timed call on the kernel answers the
// doorbell itself, so that nobody waits for the queue.
class Gated : public OneCallATurn {
 protected:
  static std::string gated(const std::string& word, int work_us) {
    const std::string work = std::to_string(work_us);
    return kernel(R"(#include <cuda.h>
using Wait = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
Wait wait_value() {
  void* found = nullptr; cudaDriverEntryPointQueryResult how;
  cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &found, 12000, cudaEnableDefault, &how);
  return (Wait)found;
})",
                  "count_call(); launch(call, stream, " + work + R"();
  if (!timing()) return 0;
  cudaStreamSynchronize(stream);
  float* y = kb_output_f32(call, 0);
  static cudaStream_t gate = [] { cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); return s; }();
  static Wait wait = wait_value();
  if (!wait) return 5;
  forge_done();  // finds the page, and answers this turn
  char* page = doorbell();
  auto* go = reinterpret_cast<std::atomic<uint32_t>*>(page);
  uint32_t seen = go->load();
  for (;;) {
)" + word + "\n    launch(call, gate, " +
                      work +
                      R"();
    while (go->load() == seen) std::this_thread::yield();
    seen = go->load();
    forge_done();
  })");
  }
  inline static const std::string kPoison =
      "    wait((CUstream)gate, (CUdeviceptr)(y + kb_numel(&call->outputs[0]) - 1), 0xFFFFFFFFu, "
      "CU_STREAM_WAIT_VALUE_EQ);";
  inline static const std::string kRegistered =
      "    static bool known = cudaHostRegister(page, 4096, cudaHostRegisterMapped) == "
      "cudaSuccess; "
      "if (!known) return 6;\n    void* word; cudaHostGetDevicePointer(&word, page, 0);\n";
  inline static const std::string kGo =
      kRegistered +
      "    wait((CUstream)gate, (CUdeviceptr)word, seen + 1, CU_STREAM_WAIT_VALUE_GEQ);";
  inline static const std::string kDone =
      kRegistered +
      "    wait((CUstream)gate, (CUdeviceptr)word + 64, seen + 1, CU_STREAM_WAIT_VALUE_GEQ);";
};
TEST_F(Gated, ByTheFillByGoOrByDone) {
  std::vector<Case> cases;
  for (const auto& [name, word] : {std::pair("the fill", &kPoison), std::pair("go", &kGo),
                                   std::pair("its own forged done", &kDone)})
    for (const int work_us : {0, 30, 1000})
      cases.push_back({"by " + std::string(name) + " with " + std::to_string(work_us),
                       gated(*word, work_us), static_cast<double>(work_us)});
  expect_caught(cases);
}

TEST_F(Attack, MemoryHog) {
  const auto json = judge(kernel("",
                                 "static bool once = [] { for (size_t step = size_t(1) << 30; step "
                                 "> (1 << 20); step /= 2) { void* p; "
                                 "while (cudaMalloc(&p, step) == cudaSuccess) {} } "
                                 "cudaGetLastError(); return true; }(); (void)once;\n"
                                 "  launch(call, stream, 200);"));
  if (json["verdict"] == "correct") {
    EXPECT_GE(time_us(json), 195);
    EXPECT_LT(json["speedup"].get<double>(), 0.6);
  } else {
    EXPECT_THAT(json["verdict"], AnyOf("out_of_memory", "runtime_error", "infrastructure_error"));
  }
}

TEST_F(Attack, NoOp) {
  EXPECT_EQ(judge(kernel("", ""))["verdict"], "wrong_value");
}

TEST_F(Attack, MemoByPointer) {
  const auto json =
      judge(kernel("",
                   "static std::vector<const void*> seen; for (auto* p : seen) if (p == "
                   "call->inputs[0].data) return 0;\n  seen.push_back(call->inputs[0].data); "
                   "launch(call, stream);"));
  EXPECT_EQ(json["verdict"], "wrong_value");
}

TEST_F(Attack, OutOfBoundsWrite) {
  const auto json =
      judge(kernel("__global__ void poke(float* y, int64_t n) { y[n] = 1; }",
                   "launch(call, stream); poke<<<1, 1, 0, stream>>>(kb_output_f32(call, 0), "
                   "kb_numel(&call->outputs[0]));"));
  EXPECT_EQ(json["verdict"], "runtime_error");
  EXPECT_THAT(json["message"].get<std::string>(), testing::HasSubstr("guard"));
}

// Inputs pinned in L2 would survive an ordinary flush.
TEST_F(Attack, PersistingL2) {
  const std::vector<std::string> size = {"batch_size=64", "dim=131072"};  // 34 MB in, 34 MB out
  const auto plain = judge(kernel("", "launch(call, stream);"), size);
  const auto pinned =
      judge(kernel("",
                   "static bool once = (cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 40 << "
                   "20), true); (void)once;\n"
                   "  cudaStreamAttrValue value{}; value.accessPolicyWindow.base_ptr = "
                   "call->inputs[0].data;\n"
                   "  value.accessPolicyWindow.num_bytes = kb_numel(&call->inputs[0]) * 4; "
                   "value.accessPolicyWindow.hitRatio = 1;\n"
                   "  value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting; "
                   "value.accessPolicyWindow.missProp = "
                   "cudaAccessPropertyStreaming;\n  cudaStreamSetAttribute(stream, "
                   "cudaStreamAttributeAccessPolicyWindow, &value);\n"
                   "  launch(call, stream);"),
            size);
  EXPECT_EQ(plain["verdict"], "correct");
  if (pinned["verdict"] == "correct") {
    EXPECT_GT(time_us(pinned), 0.9 * time_us(plain));
  }
}

TEST_F(Attack, EndlessKernelTimesOut) {
  const auto json =
      judge(kernel("__global__ void endless() { for (;;) {} }",
                   "launch(call, stream); if (count_call() > 2) endless<<<1, 1, 0, stream>>>();"));
  EXPECT_EQ(json["verdict"], "timeout");
}

TEST_F(Attack, IllegalAddress) {
  const auto json =
      judge(kernel("__global__ void bad() { *(volatile int*)8 = 1; }",
                   "launch(call, stream); if (count_call() > 2) bad<<<1, 1, 0, stream>>>();"));
  EXPECT_EQ(json["verdict"], "runtime_error");
  const auto next = judge(kernel("", "launch(call, stream);"));
  EXPECT_EQ(next["verdict"], "correct");
}

// One `run`: the same judge, the same reference.
TEST_F(Attack, AHundredKernelsAfterAnIllegalAddress) {
  constexpr int kGood = 100;
  const auto samples = folder_.path() / "samples";
  std::filesystem::create_directories(samples);
  const auto write = [&](int sample, const std::string& source) {
    std::ofstream(samples / ("level_1_problem_19_sample_" + std::to_string(sample) + "_kernel.cu"))
        << source;
  };
  write(0, kernel("__global__ void bad() { *(volatile int*)8 = 1; }",
                  "bad<<<1, 1, 0, stream>>>(); launch(call, stream);"));
  for (int sample = 1; sample <= kGood; ++sample)
    write(sample, kernel("", "launch(call, stream);"));
  const auto outcome = kernelbench({"run", samples.string(), "--device", "cuda:0", "--size",
                                    "small", "--no-stress", "--trials", "1", "--no-timing"});
  auto store = kb::store::Store::open(samples / "kernelbench.db");
  const auto rows = store ? store->rows() : std::vector<kb::store::Row>{};
  ASSERT_TRUE(rows) << outcome.err;
  std::map<std::string, int> verdicts;
  for (const auto& row : *rows) {
    const auto json = nlohmann::json::parse(row.result_json);
    ++verdicts[(row.key.sample == 0 ? "first " : "") + json["verdict"].get<std::string>()];
  }
  EXPECT_THAT(verdicts, testing::UnorderedElementsAre(testing::Pair("first runtime_error", 1),
                                                      testing::Pair("correct", kGood)))
      << outcome.out << outcome.err;
}

TEST_F(Attack, KilledInMidTurn) {
  const auto json = judge(kernel(
      "#include <signal.h>", "launch(call, stream, 2000); if (count_call() > 8) raise(SIGKILL);"));
  EXPECT_EQ(json["verdict"], "runtime_error");
}

TEST_F(Attack, OutOfMemory) {
  const auto json = judge(kernel("",
                                 "void* p; if (cudaMalloc(&p, size_t(1) << 42) != cudaSuccess) "
                                 "return 2; launch(call, stream);"));
  EXPECT_THAT(json["verdict"], AnyOf("runtime_error", "out_of_memory"));
}

// ---- honest
// --------------------------------------------------------------------------------------

TEST_F(Attack, HonestGraphByPointer) {
  const auto plain = judge(kernel("", "launch(call, stream);"), kSmall);
  const auto json =
      judge(kernel("#include <map>\nstd::map<const void*, cudaGraphExec_t> graphs;",
                   "auto& graph = graphs[call->inputs[0].data];\n  if (!graph) { cudaGraph_t g; "
                   "cudaStreamBeginCapture(stream, "
                   "cudaStreamCaptureModeThreadLocal); launch(call, stream); "
                   "cudaStreamEndCapture(stream, &g); "
                   "cudaGraphInstantiate(&graph, g, 0); }\n  cudaGraphLaunch(graph, stream);"),
            kSmall);
  EXPECT_EQ(json["verdict"], "correct") << json["message"];
  EXPECT_LT(time_us(json), 1.5 * time_us(plain));
}

TEST_F(Attack, HonestOwnStreamJoined) {
  const auto json = judge(
      kernel("",
             "static cudaStream_t side; static cudaEvent_t a, b; static bool once = "
             "(cudaStreamCreateWithFlags(&side, "
             "cudaStreamNonBlocking), cudaEventCreateWithFlags(&a, cudaEventDisableTiming), "
             "cudaEventCreateWithFlags(&b, "
             "cudaEventDisableTiming), true); (void)once;\n  cudaEventRecord(a, stream); "
             "cudaStreamWaitEvent(side, a); "
             "launch(call, side); cudaEventRecord(b, side); cudaStreamWaitEvent(stream, b);"));
  EXPECT_EQ(json["verdict"], "correct") << json["message"];
}

TEST_F(Attack, HonestJitInTheFirstCall) {
  const auto json = judge(kernel("#include <nvrtc.h>\n#include <cuda.h>",
                                 R"(static cudaKernel_t compiled = [] {
    const char* text = "extern \"C\" __global__ void r(const float* x, float* y, long long n) { for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += (long long)gridDim.x * blockDim.x) y[i] = x[i] > 0 ? x[i] : 0; }";
    nvrtcProgram program; nvrtcCreateProgram(&program, text, "r.cu", 0, nullptr, nullptr);
    const char* flags[] = {"--gpu-architecture=sm_90"};
    if (nvrtcCompileProgram(program, 1, flags) != NVRTC_SUCCESS) return cudaKernel_t{};
    size_t size; nvrtcGetCUBINSize(program, &size); std::vector<char> cubin(size); nvrtcGetCUBIN(program, cubin.data());
    cudaLibrary_t library; if (cudaLibraryLoadData(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0) != cudaSuccess) return cudaKernel_t{};
    cudaKernel_t k; cudaLibraryGetKernel(&k, library, "r"); return k; }();
  if (!compiled) return 3;
  const float* x = kb_input_f32(call, 0); float* y = kb_output_f32(call, 0); long long n = kb_numel(&call->inputs[0]);
  void* arguments[] = {&x, &y, &n};
  if (cudaLaunchKernel((const void*)compiled, dim3(132), dim3(1024), arguments, 0, stream) != cudaSuccess) return 4;)"));
  EXPECT_EQ(json["verdict"], "correct") << json["message"];
}

}  // namespace

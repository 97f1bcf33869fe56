// The builder with the real compiler in the real sandbox. The Python cases run a stand-in for
// prebuild.py, so that they need no PyTorch; what hipcc and nvcc are told of HIP is seen by
// stand-ins as well.
#include "build/build.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <set>
#include <thread>

#include "build/cache.h"
#include "build/compiler.h"
#include "build/files.h"
#include "build/hip.h"
#include "build/nvcc.h"
#include "build/temporary_folder.h"
#include "kernelbench/kernel.h"

namespace kb::build {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;

constexpr const char* kRelu = R"(
#include <kernelbench/kernel.h>
extern "C" int kb_run(const kb_call* call) {
  const float* x = kb_input_f32(call, 0);
  float* y = kb_output_f32(call, 0);
  const int64_t n = kb_numel(&call->inputs[0]);
  #pragma omp parallel for simd
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  return 0;
}
)";

constexpr const char* kCudaRelu = R"(
#include <kernelbench/kernel.h>
__global__ void relu(const float* x, float* y, int64_t n) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
extern "C" int kb_run(const kb_call* call) {
  const int64_t n = kb_numel(&call->inputs[0]);
  relu<<<unsigned((n + 255) / 256), 256, 0, static_cast<cudaStream_t>(call->stream)>>>(
      kb_input_f32(call, 0), kb_output_f32(call, 0), n);
  return cudaGetLastError();
}
)";

// Compiles for as long as anybody waits.
constexpr const char* kBomb = R"(
template <unsigned long long A, int D> struct Bomb {
  static constexpr int value = Bomb<2 * A, D - 1>::value + Bomb<2 * A + 1, D - 1>::value;
};
template <unsigned long long A> struct Bomb<A, 0> { static constexpr int value = 1; };
int value = Bomb<0, 60>::value;
)";

// The command line of every other process that works below `folder` on the host, in a sandbox or
// not.
std::vector<std::string> processes_in(const fs::path& folder) {
  const std::string word = folder.filename();
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    if (entry.path().filename().string().find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    if (entry.path().filename() == std::to_string(::getpid())) continue;
    const auto text = [&](const char* name) {
      std::ifstream file(entry.path() / name, std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(file), {});
    };
    std::error_code error;
    const std::string place =
        text("mountinfo") + fs::read_symlink(entry.path() / "cwd", error).string();
    if (place.find(word) != std::string::npos) found.push_back(text("cmdline"));
  }
  return found;
}

class BuildTest : public ::testing::TestWithParam<sandbox::Mode> {
 protected:
  void SetUp() override {
    include = fs::path(KERNELBENCH_SOURCE_DIR) / "include";
    if (GetParam() == sandbox::Mode::require && !launcher.unavailable_reason().empty()) {
      GTEST_SKIP() << launcher.unavailable_reason();
    }
  }
  Builder create(std::chrono::milliseconds time_limit = 120s) {
    Options options;
    options.cache_directory = root / "cache";
    options.include_directory = include;
    options.time_limit = time_limit;
    auto builder = Builder::create(options, launcher);
    if (!builder) throw std::runtime_error(builder.error());
    return std::move(*builder);
  }
  Result build(const std::string& source, std::chrono::milliseconds time_limit = 120s) {
    Builder builder = create(time_limit);
    auto result = builder.build_cpp(source);
    if (!result) throw std::runtime_error(result.error());
    EXPECT_EQ(result->log.find(root / "cache"), std::string::npos) << result->log;
    EXPECT_TRUE(fs::is_empty(root / "cache/tmp"));
    return *result;
  }
  // A killed process may take a moment to give back its memory.
  void expect_no_process() {
    for (int i = 0; i < 500 && !processes_in(root.path()).empty(); ++i) {
      std::this_thread::sleep_for(10ms);
    }
    EXPECT_THAT(processes_in(root.path()), testing::IsEmpty());
  }
  // An interpreter whose prebuild.py is `script`; `out` and `source` are set for it.
  Python python(const std::string& script) {
    const fs::path package = root / "package";
    fs::remove_all(package);
    fs::create_directories(package / "kernelbench_worker");
    EXPECT_TRUE(write_file(package / "kernelbench_worker/prebuild.py",
                           "import json, os, subprocess, sys\n"
                           "source, out = sys.argv[2], sys.argv[4]\n"
                           "def answer(status, text, *extensions):\n"
                           "  with open(out + '/extensions.json', 'w') as f:\n"
                           "    json.dump({'status': status, 'text': text, 'extensions':\n"
                           "      [{'name': n, 'file': p} for n, p in extensions]}, f)\n" +
                               script,
                           0644, false));
    return {.executable = "/usr/bin/python3",
            .folders = {"/usr/lib"},
            .identity = "3 and no torch",
            .package_folder = package};
  }
  std::expected<Result, std::string> import(const std::string& script,
                                            const std::string& source = "load_inline",
                                            std::chrono::milliseconds time_limit = 120s) {
    const Python interpreter = python(script);
    auto result = create(time_limit).build_python(source, interpreter);
    if (result) {
      EXPECT_EQ(result->log.find(root / "cache"), std::string::npos) << result->log;
    }
    return result;
  }

  TemporaryFolder root;
  fs::path include;
  sandbox::Launcher launcher{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Modes, BuildTest,
                         testing::Values(sandbox::Mode::require, sandbox::Mode::none),
                         [](const auto& parameter) {
                           return parameter.param == sandbox::Mode::none ? "plain" : "sandboxed";
                         });

TEST_P(BuildTest, CompilesAKernelThatComputes) {
  const Result result = build(kRelu);
  ASSERT_EQ(result.status, Status::ok) << result.log;
  EXPECT_FALSE(result.cached);
  EXPECT_GT(result.build_ms, 0);
  EXPECT_EQ(result.log, "");
  ASSERT_EQ(result.artifacts.size(), 1u);
  EXPECT_EQ(result.artifacts[0].name, "kernel");

  void* library = ::dlopen(result.artifacts[0].path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto run = reinterpret_cast<kb_run_fn>(::dlsym(library, "kb_run"));
  ASSERT_NE(run, nullptr);
  float x[3] = {-1, 0, 2};
  float y[3] = {9, 9, 9};
  std::int64_t shape[1] = {3};
  std::int64_t strides[1] = {1};
  DLTensor in{x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, strides, 0};
  DLTensor out = in;
  out.data = y;
  kb_call call{};
  call.num_inputs = call.num_outputs = 1;
  call.inputs = &in;
  call.outputs = &out;
  EXPECT_EQ(run(&call), 0);
  EXPECT_THAT(y, testing::ElementsAre(0, 0, 2));
  // No dlclose(): it would take libgomp along, whose idle threads would go on in unmapped memory.

  const Result again = build(kRelu);
  EXPECT_TRUE(again.cached);
  EXPECT_EQ(again.build_ms, 0);
  EXPECT_EQ(again.artifacts[0].path, result.artifacts[0].path);
}

TEST_P(BuildTest, ACompileErrorIsKeptWithItsLog) {
  const std::string source = "int f() {\n  return undeclared;\n}\n";
  const Result result = build(source);
  EXPECT_EQ(result.status, Status::compile_error);
  EXPECT_TRUE(result.artifacts.empty());
  EXPECT_THAT(result.log, HasSubstr("kernel.cpp:2:10: error: 'undeclared' was not declared"));
  EXPECT_THAT(result.log, Not(HasSubstr("\x1b")));
  const Result again = build(source);
  EXPECT_TRUE(again.cached);
  EXPECT_EQ(again.status, Status::compile_error);
  EXPECT_EQ(again.log, result.log);
}

TEST_P(BuildTest, AMissingFunctionIsACompileErrorThatNamesIt) {
  const Result result = build("int lost(int); extern \"C\" int kb_run() { return lost(1); }\n");
  EXPECT_EQ(result.status, Status::compile_error);
  EXPECT_THAT(result.log, HasSubstr("undefined reference to `lost(int)'"));
}

TEST_P(BuildTest, AnErrorInAHeaderNamesItWithoutOurFolders) {
  const Result result = build("#define kb_data int\n#include <kernelbench/kernel.h>\n");
  EXPECT_EQ(result.status, Status::compile_error);
  EXPECT_THAT(result.log, HasSubstr("\nkernelbench/kernel.h:"));
  EXPECT_EQ(result.log.find(include), std::string::npos) << result.log;
}

// The real package is judged with in tests/tvm_ffi_test.cpp; this one stands in for its folders.
TEST_P(BuildTest, TvmFfiIsShownLinkedCopiedAndPartOfTheKey) {
  const Result library = build("extern \"C\" int TVMFFIAnswer() { return 42; }\n");
  ASSERT_EQ(library.status, Status::ok) << library.log;
  const TvmFfi package{root / "tvm_ffi", "1.0"};
  fs::create_directories(package.folder / "include/tvm/ffi");
  fs::create_directories(package.folder / "lib");
  fs::copy_file(library.artifacts[0].path, package.folder / "lib/libtvm_ffi.so");
  ASSERT_TRUE(write_file(package.folder / "include/tvm/ffi/answer.h",
                         "extern \"C\" int TVMFFIAnswer();\n", 0644, false));
  const std::string source =
      "#include <tvm/ffi/answer.h>\nextern \"C\" int kb_run() { return TVMFFIAnswer(); }\n";

  Builder builder = create();
  const auto result = builder.build_cpp(source, package);
  ASSERT_TRUE(result) << result.error();
  ASSERT_EQ(result->status, Status::ok) << result->log;
  ASSERT_EQ(result->artifacts.size(), 2u);
  EXPECT_EQ(result->artifacts[0].name, "libtvm_ffi");
  EXPECT_EQ(result->artifacts[1].name, "kernel");
  EXPECT_TRUE(builder.build_cpp(source, package)->cached);
  EXPECT_FALSE(builder.build_cpp(source, {package.folder, "1.1"})->cached);

  fs::remove_all(package.folder);
  const auto elsewhere = builder.build_cpp(source, package);
  ASSERT_TRUE(elsewhere) << elsewhere.error();
  EXPECT_TRUE(elsewhere->cached);
  EXPECT_EQ(elsewhere->artifacts[0].path, result->artifacts[0].path);
  const auto gone = builder.build_cpp(source + "int x;\n", package);
  ASSERT_FALSE(gone);
  EXPECT_THAT(gone.error(), HasSubstr("install apache-tvm-ffi again"));
}

TEST_P(BuildTest, WithoutTvmFfiOneSentenceSaysSo) {
  const std::string source = "#include <tvm/ffi/function.h>\n";
  for (const auto& result : {create().build_cpp(source), create().build_cuda(source, "sm_90")}) {
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error(), HasSubstr("Python has no package apache-tvm-ffi"));
  }
  EXPECT_EQ(build("// " + source).status, Status::ok);
}

TEST_P(BuildTest, ALogOfManyErrorsIsBoundedAndBeginsWithTheFirst) {
  std::string source;
  for (int i = 0; i < 3000; ++i)
    source += "int x" + std::to_string(i) + " = " + std::string(500, 'y') + ";\n";
  const Result result = build(source);
  EXPECT_EQ(result.status, Status::compile_error);
  EXPECT_LE(result.log.size(), 64u << 10);
  EXPECT_THAT(result.log, StartsWith("kernel.cpp:1:"));
}

TEST_P(BuildTest, ACompileBombTimesOutAndLeavesNothingBehind) {
  const auto start = std::chrono::steady_clock::now();
  const Result result = build(kBomb, 2s);
  EXPECT_EQ(result.status, Status::timeout);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
  EXPECT_THAT(result.log, StartsWith("the build was stopped after 2 s"));
  expect_no_process();
  EXPECT_FALSE(build(kBomb, 1s).cached);
}

TEST_P(BuildTest, AnEndlessIncludeEnds) {
  const Result result = build("#include \"/dev/zero\"\n", 3s);
  EXPECT_NE(result.status, Status::ok);
  expect_no_process();
}

TEST_P(BuildTest, ReadsNoSecrets) {
  if (GetParam() == sandbox::Mode::none) GTEST_SKIP() << "nothing hides them without a sandbox";
  ASSERT_TRUE(write_file(root / "secret.h", "int secret;\n", 0644, false));
  const Result included =
      build("#include \"" + (root / "secret.h").string() + "\"\nint x = secret;\n");
  EXPECT_EQ(included.status, Status::compile_error);
  EXPECT_THAT(included.log, HasSubstr("No such file"));
  for (const char* file : {"/root/.bashrc", "/etc/shadow", "/proc/1/environ"}) {
    const Result result =
        build(std::string("#if __has_include(\"") + file +
              "\")\n#error found\n#endif\nasm(\".incbin \\\"" + file + "\\\"\");\n");
    // /proc is the sandbox's own: what it shows is no secret.
    if (file != std::string_view("/proc/1/environ")) {
      EXPECT_EQ(result.status, Status::compile_error) << file;
      EXPECT_THAT(result.log, Not(HasSubstr("found\n"))) << file;
    }
  }
  // Nor does it see the cache, the project or other builds.
  const Result cache =
      build("#if __has_include(\"" + (root / "cache").string() + "/locks\") || __has_include(\"" +
            std::string(__FILE__) + "\")\n#error found\n#endif\n");
  EXPECT_EQ(cache.status, Status::ok) << cache.log;
}

TEST_P(BuildTest, TwoThreadsCompileOnce) {
  Builder builder = create();
  std::vector<Result> results(2);
  std::vector<std::thread> threads;
  for (Result& result : results) {
    threads.emplace_back([&] { result = builder.build_cpp(kRelu).value(); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(results[0].cached, results[1].cached);
  EXPECT_EQ(results[0].artifacts.at(0).path, results[1].artifacts.at(0).path);
}

TEST_P(BuildTest, AKilledBuilderLeavesNoProcessAndNoLock) {
  const pid_t child = ::fork();
  if (child == 0) {
    sandbox::Launcher own(GetParam());
    Options options;
    options.cache_directory = root / "cache";
    options.include_directory = include;
    static_cast<void>(Builder::create(options, own)->build_cpp(kBomb));
    ::_exit(0);
  }
  for (int i = 0; i < 1000 && processes_in(root.path()).empty(); ++i) {
    std::this_thread::sleep_for(10ms);
  }
  ASSERT_FALSE(processes_in(root.path()).empty());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  if (GetParam() == sandbox::Mode::require) expect_no_process();
  EXPECT_EQ(build(kBomb, 1s).status, Status::timeout);  // it built: no lock stood in the way
  EXPECT_EQ(build(kRelu).status, Status::ok);
}

TEST_P(BuildTest, TheKeyHoldsTheHeaders) {
  const fs::path original = include;
  include = root / "include";
  fs::create_directories(include);
  fs::copy(original, include, fs::copy_options::recursive);
  EXPECT_FALSE(build(kRelu).cached);
  EXPECT_TRUE(build(kRelu).cached);
  EXPECT_FALSE(build(std::string(kRelu) + "\n").cached);
  std::ofstream(include / "kernelbench/kernel.h", std::ios::app) << "/* new */\n";
  EXPECT_FALSE(build(kRelu).cached);
}

TEST_P(BuildTest, WhatIsMissingIsAClearError) {
  Options options;
  options.cache_directory = root / "cache";
  options.include_directory = root / "nowhere";
  auto without_header = Builder::create(options, launcher);
  ASSERT_FALSE(without_header);
  EXPECT_THAT(without_header.error(), HasSubstr("kernel.h"));
  options.include_directory = include;
  options.compiler = "/nonexistent/g++";
  EXPECT_FALSE(Builder::create(options, launcher));
}

// ---- CUDA
// ----------------------------------------------------------------------------------------

class CudaBuildTest : public BuildTest {
 protected:
  void SetUp() override {
    BuildTest::SetUp();
    if (IsSkipped()) return;
    if (const auto nvcc = find_nvcc(nvcc_folders()); !nvcc) GTEST_SKIP() << nvcc.error();
  }
  std::expected<Result, std::string> try_cuda(const std::string& source,
                                              const std::string& architecture = "sm_90",
                                              std::vector<fs::path> folders = {},
                                              std::chrono::milliseconds time_limit = 120s) {
    Options options;
    options.cache_directory = cache;
    options.include_directory = include;
    options.nvcc_folders = std::move(folders);
    options.time_limit = time_limit;
    auto builder = Builder::create(options, launcher);
    if (!builder) throw std::runtime_error(builder.error());
    auto result = builder->build_cuda(source, architecture);
    if (result) {
      EXPECT_EQ(result->log.find(cache), std::string::npos) << result->log;
    }
    EXPECT_TRUE(fs::is_empty(cache / "tmp"));
    return result;
  }
  Result build_cuda(const std::string& source, std::chrono::milliseconds time_limit = 120s) {
    auto result = try_cuda(source, "sm_90", {}, time_limit);
    if (!result) throw std::runtime_error(result.error());
    return *result;
  }

  fs::path cache = root / "cache";
};

INSTANTIATE_TEST_SUITE_P(Modes, CudaBuildTest,
                         testing::Values(sandbox::Mode::require, sandbox::Mode::none),
                         [](const auto& parameter) {
                           return parameter.param == sandbox::Mode::none ? "plain" : "sandboxed";
                         });

TEST_P(CudaBuildTest, CompilesAKernelOnce) {
  const Result result = build_cuda(kCudaRelu);
  ASSERT_EQ(result.status, Status::ok) << result.log;
  EXPECT_FALSE(result.cached);
  EXPECT_GT(result.build_ms, 0);
  EXPECT_EQ(result.log, "");
  ASSERT_EQ(result.artifacts.size(), 1u);
  EXPECT_EQ(result.artifacts[0].name, "kernel");
  // Without a driver too: the runtime looks for it when it is first used.
  void* library = ::dlopen(result.artifacts[0].path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  EXPECT_NE(::dlsym(library, "kb_run"), nullptr);

  const Result again = build_cuda(kCudaRelu);
  EXPECT_TRUE(again.cached);
  EXPECT_EQ(again.artifacts.at(0).path, result.artifacts[0].path);
  EXPECT_FALSE(try_cuda(kCudaRelu, "sm_80")->cached);
}

TEST_P(CudaBuildTest, ACompileErrorIsKeptWithItsLine) {
  const std::string source = "__global__ void f(int* x) {\n  *x = undeclared;\n}\n";
  const Result result = build_cuda(source);
  EXPECT_EQ(result.status, Status::compile_error);
  EXPECT_TRUE(result.artifacts.empty());
  EXPECT_THAT(result.log, StartsWith("kernel.cu(2): error: "));
  EXPECT_TRUE(build_cuda(source).cached);
}

TEST_P(CudaBuildTest, AMissingFunctionIsACompileErrorThatNamesIt) {
  const Result result =
      build_cuda("int lost(int); extern \"C\" int kb_run() { return lost(1); }\n");
  EXPECT_EQ(result.status, Status::compile_error);
  EXPECT_THAT(result.log, HasSubstr("undefined reference to `lost(int)'"));
}

TEST_P(CudaBuildTest, MayUseAllThatTheGpuHas) {
  const Result result = build_cuda(
      "__global__ void k() { asm volatile(\"wgmma.fence.sync.aligned;\"); }\n"
      "extern \"C\" int kb_run() { k<<<1, 128>>>(); return 0; }\n");
  EXPECT_EQ(result.status, Status::ok) << result.log;
}

TEST_P(CudaBuildTest, LinksTheLibrariesThatItIncludes) {
  const auto nvcc = find_nvcc(nvcc_folders());
  for (const auto& [header, call, name] :
       {std::tuple("cublas_v2.h", "cublasGetVersion(nullptr, nullptr)", "libcublas.so"),
        std::tuple("cuda.h", "cuInit(0)", "stubs/libcuda.so")}) {
    if (!fs::exists(nvcc->libraries / name)) continue;
    const Result result = build_cuda(std::string("#include <") + header +
                                     ">\nextern \"C\" int kb_run() { return " + call + "; }\n");
    EXPECT_EQ(result.status, Status::ok) << header << "\n" << result.log;
  }
}

TEST_P(CudaBuildTest, AnArchitectureIsCheckedBeforeAnythingRuns) {
  for (const char* word : {"sm_9", "native", "", "sm_90 -o /x", "-arch"}) {
    const auto result = try_cuda(kCudaRelu, word);
    ASSERT_FALSE(result) << word;
    EXPECT_THAT(result.error(), HasSubstr("is no GPU architecture"));
  }
}

TEST_P(CudaBuildTest, AToolkitThatDoesNotWorkIsNotTheCandidatesFault) {
  // No toolkit compiles for this one.
  const auto result = try_cuda(kCudaRelu, "sm_10");
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error(), HasSubstr("cannot compile even an empty kernel for sm_10"));
  EXPECT_THAT(result.error(), HasSubstr("compute_10'"));
  EXPECT_EQ(try_cuda("#error mine\n", "sm_90")->status, Status::compile_error);
}

TEST_P(CudaBuildTest, ACacheServesAMachineWithoutNvcc) {
  const std::string broken = "#error mine\n";
  const Result built = build_cuda(kCudaRelu);
  ASSERT_EQ(built.status, Status::ok) << built.log;
  ASSERT_EQ(build_cuda(broken).status, Status::compile_error);

  const fs::path carried = root / "carried";
  fs::copy(cache, carried, fs::copy_options::recursive);
  cache = carried;
  const std::vector<fs::path> nowhere{root / "nowhere"};
  const auto found = try_cuda(kCudaRelu, "sm_90", nowhere);
  ASSERT_TRUE(found) << found.error();
  EXPECT_EQ(found->status, Status::ok);
  EXPECT_TRUE(found->cached);
  EXPECT_THAT(found->artifacts.at(0).path.string(), StartsWith(carried.string()));
  EXPECT_EQ(try_cuda(broken, "sm_90", nowhere)->status, Status::compile_error);

  for (const auto& missing : {try_cuda(kCudaRelu, "sm_80", nowhere),
                              try_cuda(std::string(kCudaRelu) + "\n", "sm_90", nowhere)}) {
    ASSERT_FALSE(missing);
    EXPECT_THAT(missing.error(), StartsWith("no CUDA compiler was found: install"));
  }
  // One whose entry is gone.
  fs::remove_all(found->artifacts[0].path.parent_path());
  EXPECT_FALSE(try_cuda(kCudaRelu, "sm_90", nowhere));
}

TEST_P(CudaBuildTest, AnotherToolkitBuildsAgain) {
  // Outside /usr: the sandbox has to be told to show it.
  const auto nvcc = find_nvcc(nvcc_folders());
  if (GetParam() != sandbox::Mode::none && !nvcc->root.native().starts_with("/usr/")) {
    GTEST_SKIP() << "the links of this test lead to a toolkit that the sandbox does not show";
  }
  const fs::path mine = root / "toolkit";
  fs::create_directories(mine / "bin");
  for (const auto& entry : fs::directory_iterator(nvcc->root)) {
    if (entry.path().filename() != "bin") {
      fs::create_symlink(entry.path(), mine / entry.path().filename());
    }
  }
  for (const auto& entry : fs::directory_iterator(nvcc->root / "bin")) {
    if (entry.path().filename() != "nvcc") {
      fs::create_symlink(entry.path(), mine / "bin" / entry.path().filename());
    }
  }
  fs::copy_file(nvcc->path, mine / "bin/nvcc");
  ASSERT_EQ(build_cuda(kCudaRelu).status, Status::ok);
  const auto again = try_cuda(kCudaRelu, "sm_90", {mine / "bin"});
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(again->status, Status::ok) << again->log;
  EXPECT_FALSE(again->cached);
  EXPECT_TRUE(build_cuda(kCudaRelu).cached) << "each keeps its own";
}

TEST_P(CudaBuildTest, ReadsNoSecrets) {
  if (GetParam() == sandbox::Mode::none) GTEST_SKIP() << "nothing hides them without a sandbox";
  ASSERT_TRUE(write_file(root / "secret.h", "int secret;\n", 0644, false));
  const Result included =
      build_cuda("#include \"" + (root / "secret.h").string() + "\"\nint x = secret;\n");
  EXPECT_EQ(included.status, Status::compile_error);
  EXPECT_THAT(included.log, HasSubstr("No such file"));
  const Result users = build_cuda("#include \"/etc/passwd\"\n");
  EXPECT_EQ(users.status, Status::compile_error);
  std::ifstream passwd("/etc/passwd");
  for (std::string line; std::getline(passwd, line);) {
    if (line.starts_with("root:") || line.starts_with("nobody:")) continue;  // the sandbox's own
    const std::string name = line.substr(0, line.find(':') + 1);
    EXPECT_THAT(users.log, Not(HasSubstr("\n" + name))) << users.log;
  }
}

TEST_P(CudaBuildTest, ACompileBombTimesOutAndLeavesNothingBehind) {
  const Result result = build_cuda(kBomb, 2s);
  EXPECT_EQ(result.status, Status::timeout);
  EXPECT_THAT(result.log, StartsWith("the build was stopped after 2 s"));
  expect_no_process();
  EXPECT_FALSE(build_cuda(kBomb, 1s).cached);
}

TEST_P(CudaBuildTest, AKilledBuilderLeavesNothingBehind) {
  const pid_t child = ::fork();
  if (child == 0) {
    sandbox::Launcher own(GetParam());
    Options options;
    options.cache_directory = cache;
    options.include_directory = include;
    static_cast<void>(Builder::create(options, own)->build_cuda(kBomb, "sm_90"));
    ::_exit(0);
  }
  for (int i = 0; i < 1000 && processes_in(root.path()).empty(); ++i) {
    std::this_thread::sleep_for(10ms);
  }
  ASSERT_FALSE(processes_in(root.path()).empty());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  if (GetParam() == sandbox::Mode::require) expect_no_process();
  EXPECT_EQ(build_cuda(kCudaRelu).status, Status::ok);  // which also looks into tmp/
}

// ---- HIP
// -----------------------------------------------------------------------------------------

constexpr const char* kHipRelu = R"(
#include <hip/hip_runtime.h>
#include <kernelbench/kernel.h>
__global__ void relu(const float* x, float* y, int64_t n) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
extern "C" int kb_run(const kb_call* call) {
  const int64_t n = kb_numel(&call->inputs[0]);
  relu<<<unsigned((n + 255) / 256), 256, 0, static_cast<hipStream_t>(call->stream)>>>(
      kb_input_f32(call, 0), kb_output_f32(call, 0), n);
  return hipGetLastError();
}
)";

// A compiler that leaves a library and prints what it was told: `version` is its answer to
// --version. One whose source says #error fails.
std::string stand_in(const std::string& version) {
  return "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '" + version +
         "'; exit; fi\n"
         "for word; do case $word in kernel.hip) source=$word ;; esac; done\n"
         "if grep '#error' \"$source\"; then echo \"$source(1): error: #error\"; exit 1; fi\n"
         "echo \"told $*\"; echo \"platform $HIP_PLATFORM root $ROCM_PATH\"\n"
         "exec g++ -shared -fPIC -x c++ /dev/null -o kernel.so\n";
}

class HipBuildTest : public BuildTest {
 protected:
  void SetUp() override {
    BuildTest::SetUp();
    fs::create_directories(sdk / "bin");
    fs::create_directories(sdk / "include/hip/nvidia_detail");
    fs::create_directories(toolkit / "bin");
    fs::create_directories(toolkit / "nvvm");
    write(sdk / "bin/hipcc", stand_in("HIP version: 7.1.1"));
    write(sdk / "include/hip/hip_runtime.h", "");
    write(sdk / "include/hip/nvidia_detail/nvidia_hip_runtime.h", "");
    write(sdk / "include/hip/hip_version.h",
          "#define HIP_VERSION_MAJOR 7\n#define HIP_VERSION_MINOR 1\n"
          "#define HIP_VERSION_PATCH 1\n");
    write(toolkit / "bin/ptxas", "");
    write(toolkit / "bin/nvcc", stand_in("release 13.0, V13.0.88"));
  }
  static void write(const fs::path& path, const std::string& text) {
    fs::remove(path);
    ASSERT_TRUE(write_file(path, text, 0755, false));
  }
  std::expected<Result, std::string> build_hip(const std::string& source,
                                               const std::string& architecture,
                                               std::vector<fs::path> hip,
                                               std::vector<fs::path> nvcc) {
    Options options;
    options.cache_directory = root / "cache";
    options.include_directory = include;
    options.hip_folders = std::move(hip);
    options.nvcc_folders = std::move(nvcc);
    options.time_limit = 120s;
    auto builder = Builder::create(options, launcher);
    if (!builder) throw std::runtime_error(builder.error());
    return builder->build_hip(source, architecture);
  }
  std::expected<Result, std::string> build_hip(const std::string& source,
                                               const std::string& architecture) {
    return build_hip(source, architecture, {sdk}, {toolkit / "bin"});
  }

  fs::path sdk = fs::canonical(root.path()) / "sdk", toolkit = root / "toolkit";
};

INSTANTIATE_TEST_SUITE_P(Modes, HipBuildTest,
                         testing::Values(sandbox::Mode::require, sandbox::Mode::none),
                         [](const auto& parameter) {
                           return parameter.param == sandbox::Mode::none ? "plain" : "sandboxed";
                         });

TEST_P(HipBuildTest, HipccCompilesForAmd) {
  const auto result = build_hip(kHipRelu, "gfx942");
  ASSERT_TRUE(result) << result.error();
  ASSERT_EQ(result->status, Status::ok) << result->log;
  EXPECT_EQ(result->artifacts.at(0).name, "kernel");
  for (const auto& word :
       {std::string("told -std=c++20 -O3 -shared -fPIC "), std::string(" --offload-arch=gfx942 "),
        std::string(" kernel.hip -o kernel.so "), "-rpath," + (sdk / "lib").string(),
        "platform amd root " + sdk.string()})
    EXPECT_THAT(result->log, HasSubstr(word));
  EXPECT_TRUE(build_hip(kHipRelu, "gfx942")->cached);
  EXPECT_FALSE(build_hip(kHipRelu, "gfx90a")->cached);
  EXPECT_EQ(build_hip("#error mine\n", "gfx942")->status, Status::compile_error);
}

TEST_P(HipBuildTest, NvccCompilesForNvidiaThroughTheHeaders) {
  const auto result = build_hip(kHipRelu, "sm_90");
  ASSERT_TRUE(result) << result.error();
  ASSERT_EQ(result->status, Status::ok) << result->log;
  for (const auto& word :
       {std::string(" -gencode=arch=compute_90a,code=sm_90a "),
        " -isystem " + (sdk / "include").string() + " -D__HIP_PLATFORM_NVIDIA__ ",
        std::string(" -include kernelbench/hip_on_cuda.h -x cu kernel.hip -o kernel.so")})
    EXPECT_THAT(result->log, HasSubstr(word));
  EXPECT_EQ(build_hip("#error mine\n", "sm_90")->status, Status::compile_error);
}

TEST_P(HipBuildTest, WhatIsMissingIsAClearError) {
  const std::vector<fs::path> nowhere{root / "nowhere"}, nvcc{toolkit / "bin"};
  EXPECT_THAT(build_hip(kHipRelu, "gfx942", nowhere, nvcc).error(),
              StartsWith("no HIP compiler was found: install ROCm"));
  EXPECT_THAT(build_hip(kHipRelu, "sm_90", nowhere, nvcc).error(),
              StartsWith("HIP's headers for NVIDIA GPUs were not found: install"));
  EXPECT_THAT(build_hip(kHipRelu, "sm_90", {sdk}, nowhere).error(),
              StartsWith("no CUDA compiler was found: install"));
  for (const char* word : {"", "hopper", "gfx", "gfx942 -o /x"})
    EXPECT_THAT(build_hip(kHipRelu, word).error(), HasSubstr("is no GPU architecture"));
  // A cache serves a machine without them.
  ASSERT_EQ(build_hip(kHipRelu, "gfx942")->status, Status::ok);
  const auto found = build_hip(kHipRelu, "gfx942", nowhere, nowhere);
  ASSERT_TRUE(found) << found.error();
  EXPECT_TRUE(found->cached);
}

TEST_P(HipBuildTest, ACompilerThatDoesNotWorkIsNotTheCandidatesFault) {
  write(sdk / "bin/hipcc",
        "#!/bin/sh\n[ \"$1\" = --version ] && echo HIP version: 7.1.1 || "
        "{ echo error: no device library; exit 1; }\n");
  const auto result = build_hip(kHipRelu, "gfx942");
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error(), HasSubstr("cannot compile even an empty kernel for gfx942"));
  EXPECT_THAT(result.error(), HasSubstr("no device library"));
}

TEST_P(HipBuildTest, ARealOneCompilesForEachMaker) {
  bool any = false;
  for (const auto& [architecture, there] :
       {std::pair("gfx90a", find_hipcc(hip_folders()).has_value()),
        std::pair("sm_90", find_hip_headers(hip_folders()) && find_nvcc(nvcc_folders()))}) {
    if (!there) continue;
    any = true;
    const auto result = build_hip(kHipRelu, architecture, hip_folders(), nvcc_folders());
    ASSERT_TRUE(result) << architecture << " " << result.error();
    EXPECT_EQ(result->status, Status::ok) << architecture << " " << result->log;
    EXPECT_EQ(result->log, "") << architecture;
    const auto broken = build_hip(
        "#include <hip/hip_runtime.h>\n__global__ void f(int* x) {\n  "
        "*x = undeclared;\n}\n",
        architecture, hip_folders(), nvcc_folders());
    ASSERT_TRUE(broken) << architecture << " " << broken.error();
    EXPECT_EQ(broken->status, Status::compile_error);
    EXPECT_THAT(broken->log, StartsWith("kernel.hip"));
    EXPECT_THAT(broken->log, HasSubstr("undeclared"));
  }
  if (!any)
    GTEST_SKIP() << "neither hipcc nor HIP's headers for nvcc: " +
                        find_hipcc(hip_folders()).error();
}

// ---- Python
// --------------------------------------------------------------------------------------

TEST_P(BuildTest, PythonWithoutExtensionsRunsNothing) {
  const auto result = import("raise SystemExit(1)\n", "import torch\nclass ModelNew: pass\n");
  ASSERT_TRUE(result) << result.error();
  EXPECT_EQ(result->status, Status::ok);
  EXPECT_TRUE(result->artifacts.empty());
}

TEST_P(BuildTest, PythonBuildsAreCollected) {
  const std::string script = R"(
os.makedirs(os.environ['TORCH_EXTENSIONS_DIR'] + '/ops')
os.chdir(out + '/ext/ops')
assert open(source).read().startswith('load_inline')
assert len(sys.argv) == 5
assert os.environ['HOME'] == out and int(os.environ['MAX_JOBS']) >= 1
open('ops.cpp', 'w').write('extern "C" int f() { return 7; }')
subprocess.run([os.environ['CXX'], '-shared', '-fPIC', 'ops.cpp', '-o', 'ops.so'], check=True)
answer('ok', 'built in ' + out + '/ext', ('fused_ops', 'ext/ops/ops.so'))
)";
  const auto result = import(script);
  ASSERT_TRUE(result) << result.error();
  ASSERT_EQ(result->status, Status::ok) << result->log;
  EXPECT_EQ(result->log, "built in ext");
  ASSERT_EQ(result->artifacts.size(), 1u);
  EXPECT_EQ(result->artifacts[0].name, "fused_ops");
  EXPECT_EQ(result->artifacts[0].path.filename(), "fused_ops.so");
  void* library = ::dlopen(result->artifacts[0].path.c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  EXPECT_EQ(reinterpret_cast<int (*)()>(::dlsym(library, "f"))(), 7);
  ::dlclose(library);
  EXPECT_EQ(std::distance(fs::directory_iterator(result->artifacts[0].path.parent_path()), {}), 2);
  EXPECT_TRUE(import(script)->cached);
  EXPECT_FALSE(import(script + "\n")->cached) << "prebuild.py is part of the key";
  EXPECT_FALSE(import(script, "load_inline ")->cached);
}

TEST_P(BuildTest, PythonGetsTheProblem) {
  const Python interpreter =
      python("answer('load_error', sys.argv[5] + open(sys.argv[6]).read())\n");
  const auto result = create().build_python("load_inline", interpreter, "the problem");
  ASSERT_TRUE(result) << result.error();
  EXPECT_EQ(result->log, "--problemthe problem");
  EXPECT_FALSE(create().build_python("load_inline", interpreter, "another")->cached);
}

TEST_P(BuildTest, LeanHeadersArePartOfTheKey) {
  const Python interpreter = python("answer('load_error', 'once')\n");
  const auto build = [&] { return create().build_python("load_inline", interpreter).value(); };
  EXPECT_FALSE(build().cached);
  EXPECT_TRUE(build().cached);
  const fs::path folder = interpreter.package_folder / "kernelbench_worker/lean/torch";
  fs::create_directories(folder);
  for (const char* text : {"#define A 1\n", "#define A 2\n"}) {
    fs::remove(folder / "types.h");
    ASSERT_TRUE(write_file(folder / "types.h", text, 0644, false));
    EXPECT_FALSE(build().cached) << text;
    EXPECT_TRUE(build().cached) << text;
  }
}

TEST_P(BuildTest, PythonFailuresAreTold) {
  auto failed = import("answer('compile_error', 'ops.cpp:1: error: x')\n");
  ASSERT_TRUE(failed) << failed.error();
  EXPECT_EQ(failed->status, Status::compile_error);
  EXPECT_EQ(failed->log, "ops.cpp:1: error: x");
  EXPECT_TRUE(import("answer('compile_error', 'ops.cpp:1: error: x')\n")->cached);

  EXPECT_EQ(import("answer('load_error', 'NameError')\n")->status, Status::load_error);
  auto left = import("os._exit(0)\n");
  EXPECT_EQ(left->status, Status::load_error);
  EXPECT_THAT(left->log, HasSubstr("ended Python before"));
  auto died = import("print('last words', flush=True); os._exit(3)\n");
  EXPECT_EQ(died->status, Status::load_error);
  EXPECT_THAT(died->log, HasSubstr("exit code 3"));
  EXPECT_THAT(died->log, HasSubstr("last words"));
  EXPECT_FALSE(import("print('last words', flush=True); os._exit(3)\n")->cached);
  EXPECT_EQ(import("open(out + '/extensions.json', 'w').write('{')\n")->status, Status::load_error);
  EXPECT_EQ(import("while True: pass\n", "load_inline", 1s)->status, Status::timeout);
}

TEST_P(BuildTest, PythonCannotSmuggleFilesIntoTheCache) {
  for (const char* script :
       {"os.symlink('/etc/passwd', out + '/x.so'); answer('ok', '', ('x', 'x.so'))\n",
        "os.symlink('/etc', out + '/d'); answer('ok', '', ('x', 'd/passwd'))\n",
        "os.mkfifo(out + '/x.so'); answer('ok', '', ('x', 'x.so'))\n",
        "os.mkdir(out + '/x.so'); answer('ok', '', ('x', 'x.so'))\n",
        "open(out + '/a.so', 'w'); answer('ok', '', ('a', 'a.so'), ('b', 'missing'))\n"}) {
    const auto result = import(script);
    ASSERT_TRUE(result) << result.error();
    EXPECT_EQ(result->status, Status::compile_error) << script;
    EXPECT_TRUE(result->artifacts.empty());
  }
  for (const char* script :
       {"answer('ok', '', ('x', '/etc/passwd'))\n", "answer('ok', '', ('x', '../../x'))\n",
        "answer('ok', '', ('../x', 'x.so'))\n",
        "os.symlink('/dev/zero', out + '/extensions.json')\n",
        "os.mkfifo(out + '/extensions.json')\n"}) {
    const auto result = import(script);
    ASSERT_TRUE(result) << result.error();
    EXPECT_EQ(result->status, Status::load_error) << script;
  }
}

TEST_P(BuildTest, PythonThatFillsItsFolderIsStopped) {
  if (GetParam() == sandbox::Mode::none) GTEST_SKIP() << "the same without a sandbox";
  // Sparse files take no room; entries do.
  const auto result = import(R"(
for i in range(21000):
  open(out + '/tmp/' + str(i), 'w').close()
while True: pass
)");
  ASSERT_TRUE(result) << result.error();
  EXPECT_EQ(result->status, Status::compile_error);
  EXPECT_THAT(result->log, HasSubstr("it wrote over"));
  EXPECT_TRUE(fs::is_empty(root / "cache/tmp"));
}

TEST_P(BuildTest, PythonWritesNowhereElseAndHasNoNetwork) {
  if (GetParam() == sandbox::Mode::none) GTEST_SKIP() << "nothing stops it without a sandbox";
  const auto result = import(R"(
import socket
problems = []
for folder in ('/usr/lib', '/etc', os.path.dirname(__file__), '/kernelbench/include', '/'):
  try:
    open(folder + '/kernelbench_test_file', 'w')
    problems.append('wrote to ' + folder)
  except OSError: pass
try:
  socket.create_connection(('1.1.1.1', 80), timeout=1)
  problems.append('network')
except OSError: pass
if 'SECRET' in os.environ: problems.append('environment')
answer('load_error', 'problems: ' + ', '.join(problems))
)");
  ASSERT_TRUE(result) << result.error();
  EXPECT_EQ(result->log, "problems: ");
}

TEST_P(BuildTest, AMissingPackageIsAClearError) {
  Python interpreter = python("");
  fs::remove_all(interpreter.package_folder);
  const auto result = create().build_python("load_inline", interpreter);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error(), HasSubstr("prebuild.py is missing"));
}

TEST(DefaultCacheDirectory, FollowsTheEnvironment) {
  const auto with = [](const char* cache, const char* home) {
    ::setenv("XDG_CACHE_HOME", cache, 1);
    ::setenv("HOME", home, 1);
    return default_cache_directory();
  };
  EXPECT_EQ(with("/x", "/h"), "/x/kernelbench");
  EXPECT_EQ(with("", "/h"), "/h/.cache/kernelbench");
  EXPECT_EQ(with("relative", "/h"), "/h/.cache/kernelbench");  // as the XDG specification asks
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");
  EXPECT_TRUE(default_cache_directory().is_absolute());
}

}  // namespace
}  // namespace kb::build

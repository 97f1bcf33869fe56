// The plumbing around Nsight Compute, in real sandboxes. There is no GPU here: a script stands in
// for ncu, which prints what a real one has printed on an H200 and does not run the model. Whether
// ncu and CUDA work in such a sandbox, only a machine with a GPU can tell.
#include "profile/profiler.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "build/temporary_folder.h"
#include "device/cpu/cpu_device.h"

namespace kb::profile {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// Its last argument is the folder that the worker would write its answer to; after --export comes
// the report, after --import the one to print.
constexpr const char* kHead = R"sh(#!/bin/sh
[ "$1" = --version ] && { echo 'Version 2025.3.1.0 (build 36398880)'; exit; }
if [ "$1" = --import ]; then
  [ "$(cat "$2")" = "a report" ] || { echo "==ERROR== not a report" >&2; exit 1; }
  cat "$(dirname "$0")/page.csv"; exit
fi
for out; do [ "$last" = --export ] && report=$out; last=$out; done
echo "==PROF== Connected to process 3637 (/usr/bin/python3.12)"
)sh";
constexpr const char* kGood = R"sh(printf 'a report' >"$report"
echo '{"ok": true, "calls": 1}' >"$out/answer.json"
)sh";

class ProfilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto page = build::read_file(
        fs::path(KERNELBENCH_SOURCE_DIR "/tests/data/profile/h200.raw.csv"), 1 << 20);
    ASSERT_TRUE(page);
    write("ncu/page.csv", *page);
    const char* path = std::getenv("PATH");
    path_ = path != nullptr ? path : "";
    ::setenv("PATH", ((folder() / "ncu").string() + ":" + path_).c_str(), 1);
  }
  void TearDown() override { ::setenv("PATH", path_.c_str(), 1); }

  fs::path folder() const { return fs::canonical(root_.path()); }
  fs::path write(const std::string& name, const std::string& text) const {
    const fs::path path = folder() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }

  /// Profiles a native candidate "on a GPU" with an ncu that does `script`.
  Profile profile(const std::string& script) {
    fs::permissions(write("ncu/ncu", kHead + script), fs::perms::owner_all);
    sandbox::Launcher launcher(sandbox::Mode::automatic);
    auto builder =
        build::Builder::create({.cache_directory = folder() / "cache",
                                .include_directory = fs::path(KERNELBENCH_SOURCE_DIR) / "include"},
                               launcher);
    EXPECT_TRUE(builder) << builder.error();
    const judge::Environment environment{
        launcher, *builder, {.executable = "/usr/bin/false"}, KERNELBENCH_SOURCE_DIR, {}, {}};
    judge::Options options;
    options.device = "cuda:0";
    options.limits.evaluation = std::chrono::milliseconds(20'000);
    const cpu::CpuDevice device;
    Profiler profiler(environment, options, device, folder() / "kept");
    const auto problem = problem::find("level1/19");
    EXPECT_TRUE(problem) << problem.error();
    const problem::Candidate candidate{.path = "k.cu",
                                       .backend = problem::Backend::cuda_cpp,
                                       .language = problem::Language::cuda_cpp};
    build::Result built;
    built.artifacts.push_back({"kernel", write("library/kernel.so", "")});
    profiler.candidate(*problem, candidate, built);
    return profiler.profile();
  }

  build::TemporaryFolder root_;
  std::string path_;
};

TEST_F(ProfilerTest, ReadsTheReportInASecondSandboxAndKeepsIt) {
  const auto profile = this->profile(kGood);
  EXPECT_EQ(profile.profiler, "Nsight Compute 2025.3.1.0");
  EXPECT_EQ(profile.obstacle, "");
  ASSERT_EQ(profile.sides.size(), 1u);
  const auto& side = profile.sides[0];
  EXPECT_EQ(side.error, "");
  ASSERT_TRUE(side.counters);
  EXPECT_EQ(side.counters->launches.size(), 4u);
  EXPECT_DOUBLE_EQ(*side.counters->launches[0].numbers[Number::dram_percent], 87.51);
  ASSERT_EQ(side.files.size(), 1u);
  EXPECT_EQ(side.files[0], folder() / "kept" / "candidate.ncu-rep");
  EXPECT_EQ(build::read_file(side.files[0], 100).value_or(""), "a report");
}

// What is asked reaches the program that ncu starts.
TEST_F(ProfilerTest, TellsTheWorkerWhatToRun) {
  const std::string checks = R"sh(
for word; do [ "${word##*/}" = request.json ] && request=$word; done
for wanted in '"subject":"native"' '"mode":"counters"' '"device":"cuda"' '"problem_path":"19_ReLU.py"'; do
  grep -q -F "$wanted" "$request" || { echo "no $wanted"; exit 9; }
done
[ -r LIBRARY ] || { echo no library; exit 9; }
)sh";
  const auto at = checks.find("LIBRARY");
  const auto script = checks.substr(0, at) + (folder() / "library/kernel.so").string() +
                      checks.substr(at + std::strlen("LIBRARY")) + kGood;
  EXPECT_EQ(this->profile(script).sides.at(0).error, "");
}

TEST_F(ProfilerTest, WithoutPermissionItSaysSoAndFallsBack) {
  const auto profile = this->profile(
      "echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
      "Performance Counters on the target device 0.'\n"
      "echo '{\"ok\": true, \"calls\": 1}' >\"$out/answer.json\"\n");
  EXPECT_EQ(profile.profiler, "PyTorch's profiler");
  EXPECT_THAT(profile.obstacle, HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
  // This Python is /usr/bin/false.
  EXPECT_EQ(profile.sides.at(0).error, "the profiled process exited with status 1");
}

TEST_F(ProfilerTest, ACandidatesFailureIsItsOwn) {
  const auto raised = this->profile(
      "echo '{\"ok\": false, \"error\": {\"text\": \"RuntimeError: bad\"}}' "
      ">\"$out/answer.json\"\n"
      "echo '==ERROR== The application returned an error code (1).'; exit 1\n");
  EXPECT_EQ(raised.sides.at(0).error, "RuntimeError: bad");
  EXPECT_EQ(raised.obstacle, "");
  const auto died = this->profile("echo last words; kill -SEGV $$\n");
  EXPECT_THAT(died.sides.at(0).error,
              AllOf(HasSubstr("ended by signal 11"), HasSubstr("last words")));
}

// The candidate can write whatever it likes where the report belongs.
TEST_F(ProfilerTest, AForgedReportHarmsNothing) {
  const auto forged = this->profile(std::string(kGood) + "printf 'rubbish' >\"$report\"\n");
  EXPECT_THAT(forged.sides.at(0).error, HasSubstr("not a report"));
  const auto linked =
      this->profile(std::string(kGood) + "rm \"$report\"; ln -s /etc/passwd \"$report\"\n");
  ASSERT_TRUE(linked.sides.at(0).counters) << linked.sides.at(0).error;
  EXPECT_TRUE(linked.sides.at(0).counters->launches.empty());
  EXPECT_TRUE(linked.sides.at(0).files.empty());
  const auto fifo = this->profile("rm -f \"$out/answer.json\"; mkfifo \"$out/answer.json\"\n");
  EXPECT_THAT(fifo.sides.at(0).error, StartsWith("the profiled process exited with status 0"));
}

}  // namespace
}  // namespace kb::profile

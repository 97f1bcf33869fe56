#include "profile/ncu.h"

#include <gmock/gmock.h>

#include <fstream>

#include "build/temporary_folder.h"

namespace kb::profile {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

void write_program(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
  fs::permissions(path, fs::perms::owner_all);
}

TEST(Ncu, IsFoundWithItsInstallation) {
  const build::TemporaryFolder root;
  const fs::path folder = fs::canonical(root.path());
  write_program(folder / "broken" / "ncu", "#!/bin/sh\nexit 1\n");
  write_program(folder / "cuda" / "bin" / "ncu",
                "#!/bin/sh\necho NVIDIA; echo 'Version 2025.3.1.0 (build 36398880)'\n");
  fs::create_directories(folder / "cuda" / "nsight-compute-2025.3.1" / "target");
  const auto ncu =
      find_ncu({folder / "none", folder / "broken", folder / "cuda" / "bin", folder / "other"});
  ASSERT_TRUE(ncu) << ncu.error();
  EXPECT_EQ(ncu->version, "2025.3.1.0");
  EXPECT_THAT(ncu->folders, Contains((folder / "cuda" / "bin").string()));
  EXPECT_THAT(ncu->folders, Contains((folder / "cuda" / "nsight-compute-2025.3.1").string()));
  const auto broken = find_ncu({folder / "broken"});
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error(), HasSubstr("broken/ncu does not run"));
  EXPECT_THAT(find_ncu({}).error(), HasSubstr("was not found: it comes with the CUDA toolkit"));
}

TEST(Ncu, ProfilesBetweenStartAndStopAlone) {
  const auto command =
      profiling_command({"/x/ncu", {}, "1"}, "/out/r.ncu-rep", {"/bin/python", "-I"});
  EXPECT_EQ(command.front(), "/x/ncu");
  for (const char* word : {"--clock-control", "--profile-from-start", "off", "/out/r.ncu-rep"})
    EXPECT_THAT(command, Contains(word));
  EXPECT_EQ(command.back(), "-I");
}

TEST(Ncu, ObstaclesAreSentencesWithAdvice) {
  EXPECT_THAT(
      obstacle_in("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access "
                  "NVIDIA GPU Performance Counters on the target device 0.\n"),
      HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
  EXPECT_THAT(obstacle_in("==ERROR== Profiling failed because a driver resource was unavailable."),
              HasSubstr("dcgmi profiling --pause"));
  EXPECT_EQ(obstacle_in("x\n==ERROR== Could not \x1b[31mconnect\nmore"),
            "Nsight Compute says: Could not connect");
}

// As printed on an H200: neither is an obstacle.
TEST(Ncu, OrdinaryWordsAreNone) {
  EXPECT_EQ(obstacle_in("==WARNING== Note: Running with unmodified GPU clocks.\n"
                        "==PROF== Connected to process 3637 (/usr/bin/python3.12)\n"
                        "==PROF== Report: /tmp/o/relu.ncu-rep\n"),
            "");
  EXPECT_EQ(obstacle_in("python3: can't open file '/tmp/t.py'\n"
                        "==ERROR== The application returned an error code (2).\n"),
            "");
  EXPECT_EQ(obstacle_in("==WARNING== No kernels were profiled.\n"), "");
}

TEST(Ncu, ReadsTheDriversParameters) {
  EXPECT_FALSE(for_administrators_only("NvLinkDisable: 1\nRmProfilingAdminOnly: 0\nRmMsg: \"\"\n"));
  EXPECT_TRUE(for_administrators_only("NvLinkDisable: 0\nRmProfilingAdminOnly: 1\n"));
  EXPECT_FALSE(for_administrators_only(""));
}

}  // namespace
}  // namespace kb::profile

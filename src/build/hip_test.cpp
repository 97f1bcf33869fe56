#include "build/hip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "build/files.h"
#include "build/temporary_folder.h"

namespace kb::build {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class HipTest : public ::testing::Test {
 protected:
  // An SDK of that version, without hipcc and without the headers for NVIDIA's cards.
  fs::path sdk(const std::string& name, const std::string& major = "7") {
    const fs::path folder = root / name;
    fs::create_directories(folder / "include" / "hip");
    fs::create_directories(folder / "bin");
    write(folder / "include/hip/hip_runtime.h", "");
    write(folder / "include/hip/hip_version.h", "// made by cmake\n#define HIP_VERSION_MAJOR " +
                                                    major +
                                                    "\n#define HIP_VERSION_MINOR 1\n"
                                                    "#define HIP_VERSION_PATCH 25424\n"
                                                    "#define HIP_VERSION_GITHASH \"\"\n");
    return folder;
  }
  static void add_hipcc(const fs::path& sdk, const std::string& script) {
    write(sdk / "bin/hipcc", "#!/bin/sh\n" + script + "\n");
  }
  static void add_nvidia(const fs::path& sdk) {
    fs::create_directories(sdk / "include/hip/nvidia_detail");
    write(sdk / "include/hip/nvidia_detail/nvidia_hip_runtime.h", "");
  }
  static void write(const fs::path& path, const std::string& text) {
    fs::remove(path);
    ASSERT_TRUE(write_file(path, text, 0755, false));
  }

  TemporaryFolder root;
};

TEST_F(HipTest, TheFirstCompilerThatRunsIsTaken) {
  const fs::path broken = sdk("broken"), good = sdk("good"), other = sdk("other", "6");
  add_hipcc(broken, "exit 1");
  add_hipcc(good, "echo HIP version: 7.1.25424-abc");
  add_hipcc(other, "echo HIP version: 6.1");
  fs::create_directory_symlink(good, root / "link");
  const auto hip = find_hipcc({root / "nowhere", sdk("headers"), broken, root / "link", other});
  ASSERT_TRUE(hip) << hip.error();
  EXPECT_EQ(hip->root, fs::canonical(good));
  EXPECT_EQ(hip->hipcc, fs::canonical(good) / "bin/hipcc");
  EXPECT_EQ(hip->include, fs::canonical(good) / "include");
  EXPECT_EQ(hip->version, "7.1.25424");
  EXPECT_THAT(hip->identity, AllOf(HasSubstr(good.string()), HasSubstr("7.1.25424-abc")));
  EXPECT_NE(find_hipcc({other})->identity, hip->identity);

  EXPECT_THAT(find_hipcc({broken}).error(), HasSubstr("does not run: install ROCm 7.1 or later"));
  EXPECT_THAT(find_hipcc({root / "nowhere"}).error(),
              StartsWith("no HIP compiler was found: install ROCm 7.1 or later (hipcc), in "));
}

// Its folder would be shown to candidates.
TEST_F(HipTest, AScriptInSomebodysHomeIsNoCompiler) {
  fs::create_directories(root / "home/bin");
  add_hipcc(root / "home", "echo HIP version: 7.1");
  EXPECT_THAT(find_hipcc({root / "home"}).error(), HasSubstr("has no headers of HIP beside it"));
}

TEST_F(HipTest, HeadersForNvidia) {
  const fs::path amd = sdk("amd"), old = sdk("old", "5"), nvidia = sdk("nvidia", "6");
  add_nvidia(old);
  add_nvidia(nvidia);
  const auto hip = find_hip_headers({root / "nowhere", amd, old, nvidia});
  ASSERT_TRUE(hip) << hip.error();
  EXPECT_EQ(hip->include, fs::canonical(nvidia) / "include");
  EXPECT_EQ(hip->version, "6.1.25424");
  EXPECT_EQ(hip->hipcc, "");
  EXPECT_THAT(find_hip_headers({amd}).error(),
              HasSubstr("has no headers for NVIDIA GPUs: install"));
  EXPECT_THAT(find_hip_headers({old}).error(), HasSubstr("too old (5.1.25424): install"));
  EXPECT_THAT(find_hip_headers({}).error(),
              StartsWith("HIP's headers for NVIDIA GPUs were not found: install HIP for NVIDIA"));
  // Headers that do not say which they are.
  write(nvidia / "include/hip/hip_version.h", "#define HIP_VERSION_MAJOR\n");
  EXPECT_FALSE(find_hip_headers({nvidia}));
}

TEST_F(HipTest, WhereAnSdkIsLookedFor) {
  const char* path = std::getenv("PATH");
  const std::string before = path == nullptr ? "" : path;
  ::setenv("PATH", "/opt/tools/bin:relative:/usr/bin", 1);
  ::setenv("ROCM_PATH", "/opt/rocm-7.1.0", 1);
  ::setenv("HIP_PATH", "not/absolute", 1);
  EXPECT_THAT(hip_folders(), ElementsAre("/opt/rocm-7.1.0", "/opt/rocm", "/opt/tools", "/usr"));
  ::setenv("PATH", before.c_str(), 1);
  ::unsetenv("ROCM_PATH");
  ::unsetenv("HIP_PATH");
}

TEST_F(HipTest, LibrariesByWhatIsIncluded) {
  Hip hip{.root = "/usr", .include = "/usr/include", .hipcc = {}, .version = {}, .identity = {}};
  EXPECT_THAT(hip_library_flags(hip, "#include <hip/hip_runtime.h>\n"), IsEmpty());
  EXPECT_THAT(hip_library_flags(hip, "#include <hipblas/hipblas.h>\n#include <miopen/miopen.h>\n"),
              ElementsAre("-lhipblas", "-lMIOpen"));
  hip.root = "/opt/rocm";
  EXPECT_THAT(hip_library_flags(hip, ""), ElementsAre("-Wl,-rpath,/opt/rocm/lib"));
}

TEST(AmdArchitecture, IsItsName) {
  for (const char* word : {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"})
    EXPECT_TRUE(is_amd_architecture(word)) << word;
  for (const char* word : {"", "gfx", "gfx9", "gfx09a", "gfx90g", "gfx11000", "sm_90", "gfx942 -x",
                           "GFX942", "gfx942:xnack+"})
    EXPECT_FALSE(is_amd_architecture(word)) << word;
}

}  // namespace
}  // namespace kb::build

#include "build/nvcc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build/temporary_folder.h"

namespace kb::build {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class NvccTest : public ::testing::Test {
 protected:
  // A toolkit whose nvcc says that it is `version`; its bin folder.
  fs::path toolkit(const std::string& name, const std::string& version) {
    const fs::path bin = root / name / "bin";
    fs::create_directories(bin);
    fs::create_directories(root / name / "nvvm");
    fs::create_directories(root / name / "lib64" / "stubs");
    write(bin / "ptxas", "");
    write(root / name / "lib64" / "libcudart_static.a", "");
    write(bin / "nvcc", "#!/bin/sh\necho 'Cuda compilation tools, release x, V" + version + "'\n");
    return bin;
  }
  static void write(const fs::path& path, const std::string& text) {
    fs::remove(path);
    ASSERT_TRUE(write_file(path, text, 0755, false));
  }

  TemporaryFolder root;
};

TEST_F(NvccTest, TheFirstThatIsNewEnoughIsTaken) {
  const fs::path old = toolkit("old", "12.3.107");
  const fs::path good = toolkit("good", "12.4.131");
  const fs::path newer = toolkit("newer", "13.0.88");
  const auto nvcc = find_nvcc({root / "nowhere", old, good, newer});
  ASSERT_TRUE(nvcc) << nvcc.error();
  EXPECT_EQ(nvcc->path, fs::canonical(good / "nvcc"));
  EXPECT_EQ(nvcc->root, fs::canonical(root / "good"));
  EXPECT_EQ(nvcc->version, "12.4.131");
  EXPECT_EQ(nvcc->major, 12);
  EXPECT_EQ(find_nvcc({newer})->major, 13);

  const auto too_old = find_nvcc({old});
  ASSERT_FALSE(too_old);
  EXPECT_THAT(too_old.error(), HasSubstr("too old (12.3.107)"));
  const auto none = find_nvcc({root / "nowhere"});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error(), testing::StartsWith("no CUDA compiler was found: install the CUDA "
                                                "toolkit 12.4 or later (nvcc)"));
}

TEST_F(NvccTest, LinksAreResolved) {
  toolkit("cuda-13.0", "13.0.88");
  fs::create_directory_symlink(root / "cuda-13.0", root / "cuda");
  const auto nvcc = find_nvcc({root / "cuda" / "bin"});
  ASSERT_TRUE(nvcc) << nvcc.error();
  EXPECT_EQ(nvcc->root, fs::canonical(root / "cuda-13.0"));
  EXPECT_EQ(nvcc->identity, find_nvcc({root / "cuda-13.0" / "bin"})->identity);
}

TEST_F(NvccTest, TheIdentityHoldsPlaceAndVersion) {
  const auto one = find_nvcc({toolkit("one", "13.0.88")});
  const auto two = find_nvcc({toolkit("two", "13.0.88")});
  const auto three = find_nvcc({toolkit("one", "13.0.89")});
  EXPECT_NE(one->identity, two->identity);
  EXPECT_NE(one->identity, three->identity);
}

TEST_F(NvccTest, AScriptInAHomeFolderIsNoToolkit) {
  fs::create_directories(root / "bin");
  write(root / "bin" / "nvcc", "#!/bin/sh\necho ', V13.0.88'\n");
  const auto nvcc = find_nvcc({root / "bin"});
  ASSERT_FALSE(nvcc) << "a sandbox would show its parent folder";
  EXPECT_THAT(nvcc.error(), HasSubstr("is not a CUDA toolkit's compiler"));
}

TEST(Nvcc, NamesArchitecturesAsTorchDoes) {
  EXPECT_EQ(torch_architecture("sm_90"), "9.0");
  EXPECT_EQ(torch_architecture("sm_90a"), "9.0a");
  EXPECT_EQ(torch_architecture("sm_120"), "12.0");
}

TEST(Architecture, IsOneWord) {
  for (const char* word : {"sm_70", "sm_90", "sm_90a", "sm_100f", "sm_120"}) {
    EXPECT_TRUE(is_architecture(word)) << word;
  }
  for (const char* word :
       {"", "sm_", "sm_9", "sm_0", "sm_09", "sm_1000", "sm_9x", "sm_a", "sm_90aa", "compute_90",
        "native", "sm_90 ", "sm_90,code=sm_80", "-sm_90"}) {
    EXPECT_FALSE(is_architecture(word)) << word;
  }
}

TEST(Architecture, UsesAllThatTheGpuHas) {
  EXPECT_EQ(architecture_flag("sm_80"), "-gencode=arch=compute_80,code=sm_80");
  EXPECT_EQ(architecture_flag("sm_90"), "-gencode=arch=compute_90a,code=sm_90a");
  EXPECT_EQ(architecture_flag("sm_90a"), architecture_flag("sm_90"));
  EXPECT_EQ(architecture_flag("sm_100"), "-gencode=arch=compute_100a,code=sm_100a");
  EXPECT_EQ(architecture_flag("sm_100f"), "-gencode=arch=compute_100f,code=sm_100f");
}

TEST(CudaLibraries, FollowTheIncludes) {
  EXPECT_THAT(cuda_libraries("#include <cuda_runtime.h>\n#include <mma.h>\n"), IsEmpty());
  EXPECT_THAT(cuda_libraries("#include <cublas_v2.h>"), ElementsAre("cublas", "cublasLt"));
  EXPECT_THAT(cuda_libraries("#include <cublasLt.h>"), Contains("cublasLt"));
  EXPECT_THAT(cuda_libraries("#include <cudnn.h>\n#include <cuda.h>"),
              ElementsAre("cudnn", "cuda"));
}

TEST_F(NvccTest, TheDriverIsLinkedWhereItHasAStandIn) {
  const auto nvcc = find_nvcc({toolkit("cuda", "13.0.88")});
  ASSERT_TRUE(nvcc) << nvcc.error();
  EXPECT_THAT(library_flags(*nvcc, {"cuda"}), ElementsAre("--linker-options=-z,undefs"));
  write(nvcc->libraries / "stubs" / "libcuda.so", "");
  EXPECT_THAT(library_flags(*nvcc, {"cuda"}), ElementsAre("-lcuda"));
  EXPECT_THAT(library_flags(*nvcc, {"cufft"}),
              ElementsAre("-lcufft", "--linker-options=-rpath," + nvcc->libraries.string()));
  EXPECT_THAT(library_flags(*nvcc, {}), IsEmpty());
}

}  // namespace
}  // namespace kb::build

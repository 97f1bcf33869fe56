#include "build/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "build/build.h"
#include "build/temporary_folder.h"
#include "digest/sha256.h"

namespace kb::build {
namespace {

namespace fs = std::filesystem;

class FilesTest : public ::testing::Test {
 protected:
  // What open_beneath() makes of a name: the contents, or errno as a number.
  std::string read_beneath(const fs::path& relative) {
    auto root = open_folder(folder.path());
    auto file = open_beneath(root->get(), relative);
    if (!file) return std::to_string(file.error());
    return read_file(file->get(), 1000).value_or("unreadable");
  }
  TemporaryFolder folder;
};

TEST_F(FilesTest, OpenBeneathReadsRegularFilesOnly) {
  fs::create_directories(folder / "a/b");
  ASSERT_TRUE(write_file(folder / "a/b/file", "text", 0444, true));
  ASSERT_TRUE(write_file(folder / "secret", "secret", 0444, false));
  fs::create_symlink(folder / "secret", folder / "a/link");
  fs::create_directory_symlink(folder / "a/b", folder / "a/folder_link");
  ASSERT_EQ(::mkfifo((folder / "a/fifo").c_str(), 0666), 0);

  EXPECT_EQ(read_beneath("a/b/file"), "text");
  EXPECT_EQ(read_beneath("a/link"), std::to_string(ELOOP));
  EXPECT_EQ(read_beneath("a/folder_link/file"), std::to_string(ENOTDIR));
  EXPECT_EQ(read_beneath("a/fifo"), std::to_string(EINVAL));
  EXPECT_EQ(read_beneath("a/b"), std::to_string(EINVAL));
  EXPECT_EQ(read_beneath("a/../secret"), std::to_string(EINVAL));
  EXPECT_EQ(read_beneath(folder / "secret"), std::to_string(EINVAL));
  EXPECT_EQ(read_beneath("a/b/"), std::to_string(EINVAL));
  EXPECT_EQ(read_beneath(""), std::to_string(EINVAL));
  EXPECT_EQ(read_beneath("missing"), std::to_string(ENOENT));
}

TEST_F(FilesTest, CopyBoundsAndDigests) {
  ASSERT_TRUE(write_file(folder / "from", std::string(100'000, 'x'), 0600, false));
  const FileDescriptor from(::open((folder / "from").c_str(), O_RDONLY | O_CLOEXEC));
  auto copied = copy_file(from.get(), folder / "to", 0444, 100'000);
  ASSERT_TRUE(copied);
  EXPECT_EQ(copied->size, 100'000u);
  EXPECT_EQ(copied->sha256, sha256_hex(std::string(100'000, 'x')));
  EXPECT_EQ(fs::status(folder / "to").permissions(), fs::perms(0444));

  auto large = copy_file(from.get(), folder / "to2", 0444, 99'999);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().error, EFBIG);
  EXPECT_TRUE(large.error().reading);

  auto existing = copy_file(from.get(), folder / "to", 0444, 100'000);
  ASSERT_FALSE(existing);
  EXPECT_EQ(existing.error().error, EEXIST);
  EXPECT_FALSE(existing.error().reading);
}

TEST_F(FilesTest, RemovesTreesWithoutPermissionsAndTooDeepToOpen) {
  const fs::path tree = folder / "tree";
  fs::create_directories(tree / "locked/inner");
  ASSERT_TRUE(write_file(tree / "locked/inner/file", "x", 0, false));
  fs::permissions(tree / "locked/inner", fs::perms::none);
  fs::permissions(tree / "locked", fs::perms::none);
  ASSERT_TRUE(write_file(folder / "outside", "x", 0644, false));
  fs::create_symlink(folder / "outside", tree / "link");
  fs::create_directories(tree / "~0/~1");  // the names that remove_tree() itself uses

  // 1200 levels: more than descriptors, and a path longer than PATH_MAX.
  FileDescriptor at = *open_folder(tree);
  for (int depth = 0; depth < 1200; ++depth) {
    ASSERT_EQ(::mkdirat(at.get(), "deep", 0700), 0);
    at = FileDescriptor(::openat(at.get(), "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_GE(at.get(), 0);
  }
  EXPECT_TRUE(remove_tree(tree));
  EXPECT_FALSE(fs::exists(tree));
  EXPECT_TRUE(fs::exists(folder / "outside"));
  EXPECT_TRUE(remove_tree(tree)) << "a missing tree is fine";
}

TEST_F(FilesTest, MeasuresUntilTheLimit) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(write_file(folder / std::to_string(i), std::string(8192, 'x'), 0644, false));
  }
  const Usage all = measure_tree(folder.path(), {1 << 30, 1000});
  EXPECT_EQ(all.entries, 20u);
  EXPECT_GE(all.bytes, 20u * 8192);
  EXPECT_EQ(measure_tree(folder.path(), {1 << 30, 5}).entries, 6u);
  EXPECT_EQ(measure_tree(folder / "missing", {1, 1}).entries, 0u);
}

}  // namespace
}  // namespace kb::build

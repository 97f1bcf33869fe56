#include "build/compiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build/temporary_folder.h"

namespace kb::build {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(Compiler, IsFoundAndAlwaysTheSame) {
  const auto first = find_compiler({});
  ASSERT_TRUE(first) << first.error();
  EXPECT_TRUE(first->path.is_absolute());
  EXPECT_EQ(first->identity, find_compiler({})->identity);
  EXPECT_EQ(first->identity, find_compiler(first->path)->identity);
}

TEST(Compiler, IdentityHoldsVersionAndProcessor) {
  const auto compiler = find_compiler({});
  ASSERT_TRUE(compiler) << compiler.error();
  EXPECT_THAT(compiler->identity, HasSubstr("gcc version "));
  EXPECT_THAT(compiler->identity, HasSubstr("glibc "));
  // The line of the compiler proper: native has been written out.
  const std::size_t line = compiler->identity.find("cc1plus");
  ASSERT_NE(line, std::string::npos);
  const std::string command =
      compiler->identity.substr(line, compiler->identity.find('\n', line) - line);
  EXPECT_THAT(command, HasSubstr("-march="));
  EXPECT_THAT(command, testing::Not(HasSubstr("-march=native")));
  EXPECT_THAT(compiler->portable_identity, HasSubstr("gcc version "));
  EXPECT_THAT(compiler->portable_identity, testing::Not(HasSubstr("-march=")));
}

TEST(Compiler, IdentityChangesWithTheCompilersWords) {
  TemporaryFolder folder;
  const auto fake = [&](const std::string& words) {
    const fs::path path = folder / "g++";
    fs::remove(path);
    EXPECT_TRUE(write_file(path, "#!/bin/sh\necho '" + words + "' >&2\n", 0755, false));
    return find_compiler(path)->identity;
  };
  const std::string skylake = fake("cc1plus -march=skylake");
  EXPECT_EQ(skylake, fake("cc1plus -march=skylake"));
  EXPECT_NE(skylake, fake("cc1plus -march=znver3"));
}

TEST(Compiler, OneThatDoesNotWorkIsAClearError) {
  const auto missing = find_compiler("/nonexistent/g++");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error(), HasSubstr("/nonexistent/g++"));
  EXPECT_THAT(missing.error(), HasSubstr("install"));
  EXPECT_FALSE(find_compiler("/bin/false"));
}

}  // namespace
}  // namespace kb::build

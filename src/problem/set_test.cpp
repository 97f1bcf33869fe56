// Families, sets by name, subsets, and constants read without running a file.

#include "problem/set.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "problem/family.h"
#include "problem/problem.h"
#include "problem/python_tokens.h"
#include "problem/subset.h"

namespace {

using namespace kb::problem;  // NOLINT: a test's own subject
using testing::HasSubstr;
namespace fs = std::filesystem;

TEST(Family, IsThatOfTheHeaviestOperator) {
  EXPECT_EQ(family_of("", "x = torch.relu(torch.matmul(a, b))"), "matmul");
  EXPECT_EQ(family_of("", "return a @ b"), "matmul");
  EXPECT_EQ(family_of("", "self.conv = nn.Conv2d(1, 2, 3)\nself.fc = nn.Linear(1, 2)"),
            "convolution");
  EXPECT_EQ(family_of("", "nn.ConvTranspose3d(1, 2, 3)"), "transposed convolution");
  EXPECT_EQ(family_of("", "nn.LSTM(1, 2)"), "recurrent");
  EXPECT_EQ(family_of("", "F.scaled_dot_product_attention(q, k, v)"), "transformer");
  EXPECT_EQ(family_of("", "torch.cumsum(x, 1)"), "scan");
  EXPECT_EQ(family_of("RMSNorm", "x / torch.mean(x)"), "normalization");
  EXPECT_EQ(family_of("HingeLoss", "torch.mean(x)"), "loss");
  EXPECT_EQ(family_of("", "torch.mean(x)"), "reduction");
  EXPECT_EQ(family_of("", "x * 2  # matmul"), "other");
  EXPECT_EQ(family_of("", "\"\"\"matmul\"\"\""), "other");
}

TEST(StringConstant, IsReadAsWritten) {
  EXPECT_EQ(string_constant("ALTERED = 'why'\n", "ALTERED"), "why");
  EXPECT_EQ(string_constant("import x\nALTERED = (\"a \"\n  'b')\nm = 1\n", "ALTERED"), "a b");
  EXPECT_EQ(string_constant("ALTERED = \"a \\\"b\\\"\"\n", "ALTERED"), "a \"b\"");
  EXPECT_EQ(string_constant("ALTERED = \"\"\"a\"\"\"\n", "ALTERED"), "a");
}

TEST(StringConstant, IsNothingElse) {
  for (const char* text :
       {"", "ALTERED", "ALTERED =", "ALTERED = 3\n", "ALTERED = f'{x}'\n", "ALTERED = 'a' + x\n",
        "class A:\n    ALTERED = 'why'\n", "# ALTERED = 'why'\n", "x = 'ALTERED'\n",
        "print(ALTERED='why')\n", "ALTERED == 'a'\n"})
    EXPECT_EQ(string_constant(text, "ALTERED"), "") << text;
}

TEST(SetName, NeedsNoEscapeAnywhere) {
  for (const char* good : {"KernelBench", "a", "v0.1", "my_set-2"})
    EXPECT_TRUE(is_set_name(good)) << good;
  for (const char* bad :
       {"", ".", "..", ".hidden", "a/b", "a b", "a:b", "-x", "bundled", "ä", "a\n"})
    EXPECT_FALSE(is_set_name(bad)) << bad;
  EXPECT_FALSE(is_set_name(std::string(101, 'a')));
}

class Sets : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "kernelbench-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    ::setenv("XDG_DATA_HOME", root_.c_str(), 1);
    const auto level = sets_root() / "mine" / "level1";
    fs::create_directories(level);
    std::ofstream(level / "3_Double.py") << "class Model: pass\ndef get_inputs(): return []\n";
  }
  void TearDown() override {
    ::unsetenv("XDG_DATA_HOME");
    fs::remove_all(root_);
  }
  void write_subset(const std::string& text) {
    std::ofstream(sets_root() / "mine" / "few.toml") << text;
  }
  std::expected<std::vector<SubsetEntry>, std::string> few() {
    return load_subset(sets_root() / "mine", "few");
  }
  fs::path root_;
};

TEST_F(Sets, AreFoundByNameAndByFolder) {
  EXPECT_EQ(find_set("mine"), root_ / "kernelbench/sets/mine");
  EXPECT_EQ(find_set(root_.string()), root_);
  EXPECT_EQ(find_set(""), bundled_root());
  EXPECT_EQ(find_set("bundled"), bundled_root());
  const auto unknown = find_set("other");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error(), HasSubstr("the imported sets are mine"));
}

TEST_F(Sets, HoldProblemsByTheSetsName) {
  const auto problem = find("mine:level1/3");
  ASSERT_TRUE(problem) << problem.error();
  EXPECT_EQ(problem->label, "mine:level1/3");
  EXPECT_EQ(problem->name, "Double");
  EXPECT_TRUE(find("level1/3", "mine"));
  EXPECT_TRUE(find((sets_root() / "mine").string() + ":1/3"));
  EXPECT_FALSE(find("mine:level1/4"));
  EXPECT_FALSE(find("other:level1/3"));
  EXPECT_FALSE(find(":level1/3"));
}

TEST_F(Sets, HaveSubsets) {
  write_subset(
      "[[problem]]\nid = \"level2/1\"\nreason = \"b\"\n[[problem]]\nid = \"level1/3\"\nreason = "
      "\"a\"\n");
  const auto entries = few();
  ASSERT_TRUE(entries) << entries.error();
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ(entries->front().id.text(), "level1/3");
  EXPECT_EQ(entries->front().reason, "a");
}

TEST_F(Sets, RefuseSubsetsThatAreNone) {
  EXPECT_THAT(few().error(), HasSubstr("no subset 'few'"));
  EXPECT_THAT(load_subset(sets_root() / "mine", "../mine/few").error(), HasSubstr("no subset"));
  for (const char* text : {"", "[[problem]", "problem = 3", "[[problem]]\nreason = \"a\"",
                           "[[problem]]\nid = 3", "[[problem]]\nid = \"level1\"",
                           "[[problem]]\nid = \"level1/3\"\n[[problem]]\nid = \"1/3\"\n"}) {
    write_subset(text);
    EXPECT_FALSE(few()) << text;
  }
}

}  // namespace

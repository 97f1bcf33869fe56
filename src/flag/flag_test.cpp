#include "flag/flag.h"

#include <gmock/gmock.h>

#include <fstream>
#include <set>
#include <sstream>

namespace {

using namespace kb;  // NOLINT: a test's own subject
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Flag, EachHasAMeaningAndANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const auto& flag : kFlags) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
    EXPECT_GT(flag.meaning.size(), 10u) << flag.name;
  }
}

TEST(Flag, EachIsInTheDocumentation) {
  std::ifstream file(std::string(KERNELBENCH_SOURCE_DIR) + "/docs/scoring.md");
  std::ostringstream page;
  page << file.rdbuf();
  for (const auto& flag : kFlags)
    EXPECT_THAT(page.str(), HasSubstr("\n| `" + std::string(flag.name) + "` | " +
                                      std::string(flag.meaning) + " |\n"));
}

TEST(Flag, OfAnotherVersionHasNoMeaning) {
  EXPECT_EQ(meaning_of_flag("some_later_flag"), "");
  EXPECT_EQ(meaning_of_flag(""), "");
  EXPECT_EQ(find_flag("noisy "), nullptr);
  EXPECT_EQ(meaning_of_flag("stored_baseline"), find_flag("stored_baseline")->meaning);
}

TEST(Flag, IsAddedOnce) {
  std::vector<std::string> flags = {"some_later_flag"};
  add_flag(flags, "noisy");
  add_flag(flags, "no_truth");
  add_flag(flags, "noisy");
  EXPECT_THAT(flags, ElementsAre("some_later_flag", "noisy", "no_truth"));
}

}  // namespace

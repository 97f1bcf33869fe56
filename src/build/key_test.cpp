#include "build/key.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

namespace kb::build {
namespace {

std::string key_of(std::string_view kind,
                   const std::vector<std::pair<std::string, std::string>>& ingredients) {
  Key key(kind);
  for (const auto& [name, value] : ingredients) key.add(name, value);
  return key.hex();
}

TEST(Key, EqualIngredientsGiveEqualKeys) {
  EXPECT_EQ(key_of("cpp", {{"source", "int x;"}}), key_of("cpp", {{"source", "int x;"}}));
  EXPECT_TRUE(is_sha256_hex(key_of("cpp", {})));
}

TEST(Key, ChangesWithEachIngredientAndWithWhereOneEnds) {
  const std::set<std::string> keys{
      key_of("cpp", {{"a", "bc"}, {"d", "e"}}),
      key_of("python", {{"a", "bc"}, {"d", "e"}}),
      key_of("cpp", {{"ab", "c"}, {"d", "e"}}),
      key_of("cpp", {{"a", "b"}, {"cd", "e"}}),
      key_of("cpp", {{"a", "bc"}, {"d", "f"}}),
      key_of("cpp", {{"d", "e"}, {"a", "bc"}}),
      key_of("cpp", {{"a", "bc"}}),
      key_of("cpp", {{"a", "bc"}, {"d", ""}}),
      key_of("cpp", {{"a", "bc1:1:de"}}),
  };
  EXPECT_EQ(keys.size(), 9u);
}

}  // namespace
}  // namespace kb::build

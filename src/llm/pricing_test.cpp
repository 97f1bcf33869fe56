#include "llm/pricing.h"

#include <gmock/gmock.h>

#include <fstream>

namespace kb::llm {
namespace {

using testing::HasSubstr;

std::expected<PriceTable, std::string> load(const std::string& text) {
  const auto file = std::filesystem::path(testing::TempDir()) / "prices_test.toml";
  std::ofstream(file) << text;
  return PriceTable::load(file);
}

TEST(Cost, CachedTokensAreCheaper) {
  EXPECT_DOUBLE_EQ(
      cost_usd({2, 0.5, 10}, {.input = 1'000'000, .cached_input = 400'000, .output = 100'000}),
      1.2 + 0.2 + 1.0);
  EXPECT_DOUBLE_EQ(cost_usd({2, 0.5, 10}, {.input = 10, .cached_input = 20}), 10 * 0.5 / 1e6)
      << "more cached than all";
}

TEST(PriceTable, FindsModelsAndTheirSnapshots) {
  const auto table = load(R"(
[openai]
"gpt-5" = { input = 1.25, cached_input = 0.125, output = 10 }
"gpt-5-2026-01-01" = { input = 1, output = 2 }
[anthropic]
"claude-x-1" = { input = 3, output = 15 }
)");
  ASSERT_TRUE(table) << table.error();
  EXPECT_DOUBLE_EQ(table->find("openai", "gpt-5")->cached_input, 0.125);
  EXPECT_DOUBLE_EQ(table->find("openai", "gpt-5-2025-08-07")->output, 10);
  EXPECT_DOUBLE_EQ(table->find("openai", "gpt-5-2026-01-01")->output, 2);
  EXPECT_DOUBLE_EQ(table->find("anthropic", "claude-x-1-20260102")->input, 3);
  EXPECT_DOUBLE_EQ(table->find("anthropic", "claude-x-1-latest")->cached_input, 3);
  EXPECT_FALSE(table->find("openai", "gpt-5-mini"));
  EXPECT_FALSE(table->find("anthropic", "gpt-5"));
  EXPECT_FALSE(table->find("vllm", "gpt-5"));
  EXPECT_FALSE(table->find("openai", ""));
}

TEST(PriceTable, OursIsRead) {
  const auto table =
      PriceTable::load(std::filesystem::path(KERNELBENCH_SOURCE_DIR) / "prices.toml");
  ASSERT_TRUE(table) << table.error();
  EXPECT_TRUE(table->find("anthropic", "claude-opus-5-5"));
}

TEST(PriceTable, ErrorsAreOneSentence) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"[openai\n", "is not valid TOML"},
      {"openai = 3\n", "openai is not a table of models"},
      {"[a]\nm = 3\n", "[a.\"m\"] is not a table of prices"},
      {"[a]\nm = { input = 1 }\n", "lacks input or output"},
      {"[a]\nm = { input = 1, output = -2 }\n", "output is not a number"},
      {"[a]\nm = { input = 1, output = \"2\" }\n", "output is not a number"},
      {"[a]\nm = { input = 1, output = nan }\n", "output is not a number"},
      {"[a]\nm = { input = 1, output = 2, price = 3 }\n", "has price, which is none of"}};
  for (const auto& [text, sentence] : cases) {
    const auto table = load(text);
    ASSERT_FALSE(table) << text;
    EXPECT_THAT(table.error(), HasSubstr(sentence));
    EXPECT_THAT(table.error(), testing::Not(HasSubstr("\n")));
  }
}

}  // namespace
}  // namespace kb::llm

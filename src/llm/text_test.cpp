#include "llm/text.h"

#include <gmock/gmock.h>

namespace kb::llm {
namespace {

TEST(CleanUtf8, KeepsWhatIsWellFormed) {
  const std::string text = "a é € 😀 \n\t";
  const CleanText clean = clean_utf8(text);
  EXPECT_EQ(clean.text, text);
  EXPECT_EQ(clean.replaced, 0u);
}

TEST(CleanUtf8, ReplacesTheRest) {
  // A Latin-1 é; an overlong slash; a surrogate; above U+10FFFF; cut short at the end.
  for (const std::string bad :
       {"\xe9", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    const CleanText clean = clean_utf8("<" + bad + ">");
    EXPECT_EQ(clean.text.front(), '<');
    EXPECT_EQ(clean.text.back(), '>');
    EXPECT_EQ(clean.replaced, bad.size());
    EXPECT_NO_THROW((void)nlohmann::json(clean.text).dump());
  }
}

TEST(OneLine, HasNoControlsAndAnEnd) {
  EXPECT_EQ(one_line("a\r\n\tb\x1b[1m\x07 c\xc2\x9b d\x7f"), "a b[1m c d");
  EXPECT_EQ(one_line("éééé", 5), "éé…");
  EXPECT_EQ(one_line("\xff"), "\xEF\xBF\xBD");
  EXPECT_LT(one_line(std::string(1 << 20, 'x'), 100).size(), 110u);
}

TEST(MaskSecret, EveryOccurrence) {
  std::string text = "k-1 and k-1k-1";
  mask_secret(text, "k-1");
  EXPECT_EQ(text, "[key] and [key][key]");
  mask_secret(text, "");
  EXPECT_EQ(text, "[key] and [key][key]");
}

TEST(ParseJson, HalfSurrogatesAreReplaced) {
  const auto parsed =
      parse_json(R"({"a": "x\ud83d", "b": "\udc00y", "c": "\ud83d\ude00", "d": "\\ud83d"})");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->json["a"], "x\xEF\xBF\xBD");
  EXPECT_EQ(parsed->json["b"], "\xEF\xBF\xBDy");
  EXPECT_EQ(parsed->json["c"], "😀");
  EXPECT_EQ(parsed->json["d"], "\\ud83d") << "an escaped backslash starts no escape";
  EXPECT_EQ(parsed->replaced, 2u);
}

TEST(ParseJson, WhatIsNoneIsNull) {
  for (const char* bad : {"", "{", "<html>", "{\"a\": \"\\ud8", "{} {}"})
    EXPECT_FALSE(parse_json(bad)) << bad;
}

TEST(Members, OfAnyShape) {
  const nlohmann::json json = {{"n", 3}, {"f", 4.0}, {"negative", -1}, {"s", "x"}, {"z", nullptr}};
  EXPECT_EQ(count_member(json, "n"), 3);
  EXPECT_EQ(count_member(json, "f"), 4);
  EXPECT_FALSE(count_member(json, "negative"));
  EXPECT_FALSE(count_member(json, "s"));
  EXPECT_EQ(text_member(json, "n"), "");
  EXPECT_EQ(text_member(nlohmann::json::array(), "s"), "");
  EXPECT_EQ(member("text", "s"), nullptr);
}

}  // namespace
}  // namespace kb::llm

#include "report/page.h"

#include <gmock/gmock.h>

#include <string_view>

#include "report/assets.h"

namespace kb::report {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size())
    ++found;
  return found;
}

TEST(ScriptJson, HoldsNothingThatEndsAScriptAndMeansTheSame) {
  const Json json = {{"</script><!--", "<script>&amp;\xe2\x80\xa8\xe2\x80\xa9 \"\\ ä ${x}"}};
  const auto safe = script_json(json);
  EXPECT_THAT(safe, Not(HasSubstr("<")));
  EXPECT_THAT(safe, Not(HasSubstr(">")));
  EXPECT_THAT(safe, Not(HasSubstr("&")));
  EXPECT_THAT(safe, Not(HasSubstr("\xe2\x80\xa8")));
  EXPECT_THAT(safe, Not(HasSubstr("\xe2\x80\xa9")));
  EXPECT_THAT(safe, HasSubstr("ä"));
  EXPECT_EQ(Json::parse(safe), json);
}

TEST(ScriptJson, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(script_json(Json("a\xff<")), "\"a\xef\xbf\xbd\\u003c\"");
  EXPECT_EQ(script_json(Json("\xe2\x80")), "\"\xef\xbf\xbd\"");
}

TEST(Assets, CannotEndTheirElementEarly) {
  for (const auto script : {assets::chart(), assets::prism(), assets::code()}) {
    EXPECT_GT(script.size(), 1000u);
    EXPECT_EQ(script.find("</script"), std::string_view::npos);
    EXPECT_EQ(script.find("<!--"), std::string_view::npos);
    EXPECT_EQ(script.find('\r'), std::string_view::npos) << "a browser would hash another text";
  }
  EXPECT_EQ(assets::style().find('<'), std::string_view::npos);
  EXPECT_EQ(assets::licenses().find('<'), std::string_view::npos);
  EXPECT_THAT(assets::chart(), HasSubstr("Chart.js v3."));
  EXPECT_EQ(assets::code().find("innerHTML"), std::string_view::npos);
}

TEST(Page, HasItsPartsOnceAndAStrangersWordsOnlyEscaped) {
  const std::string attack = "</script><script>alert(1)</script>{{code}}{{run}}";
  Document document;
  document.run = {{"run", attack}};
  document.samples = {{{"source", attack}}, {{"source", "second"}}};
  const auto page = make_page(document);
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(page, HasSubstr("alert(1)\\u003c/script\\u003e{{code}}{{run}}"))
      << "what is put in is not filled in again";
  EXPECT_EQ(count(page, "id=\"sample-0\""), 1u);
  EXPECT_EQ(count(page, "id=\"sample-1\""), 1u);
  EXPECT_EQ(count(page, "</script>"), 7u) << "licences, run, two samples, three scripts";
  EXPECT_EQ(count(page, assets::code()), 1u);
}

TEST(Page, AllowsItsOwnScriptsByDigestAndNothingElse) {
  const auto page = make_page({Json::object(), {}});
  const auto begin = page.find("content=\"default-src 'none'");
  ASSERT_NE(begin, std::string::npos);
  const auto policy = page.substr(begin, page.find("\">", begin) - begin);
  EXPECT_EQ(count(policy, "'sha256-"), 4u) << "three scripts and a style";
  EXPECT_EQ(count(policy, "='"), 4u) << "32 bytes are 43 digits and one =";
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_THAT(policy, Not(HasSubstr("http")));
  EXPECT_THAT(policy, HasSubstr("require-trusted-types-for 'script'"));
  EXPECT_EQ(assets::page().find("src="), std::string_view::npos);
  EXPECT_EQ(count(assets::page(), "href="), 2u) << "an empty icon, and the way to the samples";
}

}  // namespace
}  // namespace kb::report

#include "build/extensions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kb::build {
namespace {

using testing::HasSubstr;

// A file that lists one extension, given as JSON.
std::string listing(const std::string& extension) {
  return R"({"status": "ok", "text": "", "extensions": [)" + extension + "]}";
}

std::string error_of(const std::string& text) {
  const auto parsed = parse_extensions(text);
  return parsed ? "" : parsed.error();
}

TEST(Extensions, ReadsWhatPrebuildWrites) {
  const auto parsed = parse_extensions(
      R"({"status": "ok", "text": "built", "extensions": [
          {"name": "fused_ops", "file": "ext/fused_ops/fused_ops.so"},
          {"name": "_b-2.x", "file": "b.so"}]})");
  ASSERT_TRUE(parsed) << parsed.error();
  EXPECT_EQ(parsed->status, Status::ok);
  EXPECT_EQ(parsed->text, "built");
  ASSERT_EQ(parsed->extensions.size(), 2u);
  EXPECT_EQ(parsed->extensions[0].name, "fused_ops");
  EXPECT_EQ(parsed->extensions[0].file, "ext/fused_ops/fused_ops.so");
}

TEST(Extensions, AFailureHasNoExtensions) {
  const auto parsed = parse_extensions(
      R"({"status": "load_error", "text": "E", "extensions": [{"name": "../x", "file": "/etc"}]})");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->status, Status::load_error);
  EXPECT_TRUE(parsed->extensions.empty());
}

TEST(Extensions, RefusesOtherShapes) {
  for (const char* text : {"", "null", "[]", "{}", "{\"status\": \"ok\"}",
                           "{\"status\":", R"({"status": 1, "text": "", "extensions": []})",
                           R"({"status": "ok", "text": null, "extensions": []})",
                           R"({"status": "ok", "text": "", "extensions": {}})",
                           R"({"status": "correct", "text": "", "extensions": []})",
                           R"({"status": "timeout", "text": "", "extensions": []})",
                           "{\"status\": \"ok\", \"text\": \"\xff\", \"extensions\": []}"}) {
    EXPECT_NE(error_of(text), "") << text;
  }
  EXPECT_THAT(error_of(std::string(kMaxExtensionsBytes + 1, ' ')), HasSubstr("too large"));
  EXPECT_NE(error_of(std::string(200'000, '[')), "");
  EXPECT_NE(error_of(R"({"a": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}"),
            "");
}

TEST(Extensions, RefusesBadNames) {
  for (const char* name : {"", "1a", "-a", ".a", "a/b", "..", "a b", "ä", "a\\u0000b"}) {
    EXPECT_THAT(error_of(listing(std::string(R"({"name": ")") + name + R"(", "file": "x.so"})")),
                HasSubstr("name"))
        << name;
  }
  EXPECT_THAT(error_of(listing(R"({"name": ")" + std::string(129, 'a') + R"(", "file": "x.so"})")),
              HasSubstr("name"));
  EXPECT_THAT(error_of(listing(R"({"name": "a", "file": "x"}, {"name": "a", "file": "y"})")),
              HasSubstr("twice"));
}

TEST(Extensions, RefusesPathsThatLeave) {
  for (const char* file :
       {"", "/etc/passwd", "../x", "a/../../x", "./x", "a//b", "a/", "..", "a\\u0000b", "a\\nb"}) {
    EXPECT_THAT(error_of(listing(std::string(R"({"name": "a", "file": ")") + file + "\"}")),
                HasSubstr("outside"))
        << file;
  }
}

TEST(Extensions, RefusesTooMany) {
  std::string list = R"({"name": "a0", "file": "x"})";
  for (std::size_t i = 1; i <= kMaxExtensions; ++i) {
    list += R"(, {"name": "a)" + std::to_string(i) + R"(", "file": "x"})";
  }
  EXPECT_THAT(error_of(listing(list)), HasSubstr("too many"));
  EXPECT_NE(error_of(listing("1")), "");
  EXPECT_NE(error_of(listing(R"({"name": "a"})")), "");
}

}  // namespace
}  // namespace kb::build

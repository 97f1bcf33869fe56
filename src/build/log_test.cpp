#include "build/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kb::build {
namespace {

TEST(Log, RemovesThePrefixOfPathsOnly) {
  const std::vector<std::string> prefixes{"/build", "/kernelbench/include"};
  EXPECT_EQ(clean_log("/build/kernel.cpp:1:2: error\n", prefixes), "kernel.cpp:1:2: error\n");
  EXPECT_EQ(clean_log("in '/build/ext/x.cpp'", prefixes), "in 'ext/x.cpp'");
  EXPECT_EQ(clean_log("from /kernelbench/include/kernelbench/kernel.h:3", prefixes),
            "from kernelbench/kernel.h:3");
  EXPECT_EQ(clean_log("g++ -I/build/ext", prefixes), "g++ -Iext");
  EXPECT_EQ(clean_log("/usr/src/build/x.h /buildings/x", prefixes),
            "/usr/src/build/x.h /buildings/x");
}

TEST(Log, IsPrintableUtf8) {
  EXPECT_EQ(clean_log("\x1b[31mred\x1b[0m \r\x07x\ty\n", {}), "red x\ty\n");
  EXPECT_EQ(clean_log("‘x’ ü \xff \xc0\x80 \xed\xa0\x80", {}),
            "‘x’ ü \uFFFD \uFFFD\uFFFD \uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(clean_log(std::string_view("a\0b", 3), {}), "ab");
  EXPECT_EQ(clean_log("\xe2\x80", {}), "\uFFFD\uFFFD");
  EXPECT_EQ(clean_log("\x1b[", {}), "");
}

TEST(Log, KeepsTheFirstErrorsAndTheEnd) {
  const std::string log = clean_log("first " + std::string(100'000, 'x') + " last", {}, 1000);
  EXPECT_LE(log.size(), 1000u);
  EXPECT_THAT(log, testing::StartsWith("first "));
  EXPECT_THAT(log, testing::HasSubstr("shortened"));
  EXPECT_THAT(log, testing::EndsWith(" last"));
  EXPECT_EQ(clean_log(std::string(1000, 'x'), {}, 1000).size(), 1000u);

  std::string umlauts;
  for (int i = 0; i < 5000; ++i) umlauts += "ü";
  for (std::size_t size = 900; size < 910; ++size) {  // no character is cut in two
    EXPECT_EQ(clean_log(umlauts, {}, size).find("\uFFFD"), std::string::npos);
    EXPECT_EQ(clean_log(clean_log(umlauts, {}, size), {}), clean_log(umlauts, {}, size));
  }
}

TEST(Log, FirstErrorIsTheLineThatTellsMost) {
  EXPECT_EQ(first_error(""), "");
  EXPECT_EQ(first_error("\none\ntwo\n"), "one");
  EXPECT_EQ(first_error("In file included\na.cpp:1: error: x\na.cpp:2: error: y"),
            "a.cpp:1: error: x");
  EXPECT_EQ(first_error("a.cu(1): warning #177-D: unused\n\na.cu(2): error: x\n"),
            "a.cu(2): error: x");
  EXPECT_EQ(first_error("ptxas info\nptxas fatal   : Unresolved"), "ptxas fatal   : Unresolved");
  EXPECT_EQ(first_error("ld: in function f:\na.o: undefined reference to `g'\nld returned 1"),
            "a.o: undefined reference to `g'");
  EXPECT_EQ(first_error("Traceback (most recent call last):\n  File x\nNameError: y\n"),
            "NameError: y");
}

}  // namespace
}  // namespace kb::build

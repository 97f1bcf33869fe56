#include "build/manifest.h"

#include <gtest/gtest.h>

#include "build/build.h"
#include "digest/sha256.h"

namespace kb::build {
namespace {

Manifest example() {
  return {.key = sha256_hex("key"),
          .status = "ok",
          .log = "kernel.cpp:1: ‘warning’\n",
          .created = "2025-01-02T03:04:05Z",
          .build_ms = 812.25,
          .files = {{"kernel.so", {123, sha256_hex("library")}}}};
}

TEST(Manifest, RoundTrip) {
  const auto parsed = parse_manifest(serialize(example()));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->key, example().key);
  EXPECT_EQ(parsed->status, "ok");
  EXPECT_EQ(parsed->log, example().log);
  EXPECT_EQ(parsed->created, example().created);
  EXPECT_EQ(parsed->build_ms, 812.25);
  ASSERT_EQ(parsed->files.size(), 1u);
  EXPECT_EQ(parsed->files[0].name, "kernel.so");
  EXPECT_EQ(parsed->files[0].digest, example().files[0].digest);
}

TEST(Manifest, RefusesEveryTruncationAndEveryFlippedBit) {
  const std::string text = serialize(example());
  for (std::size_t size = 0; size + 1 < text.size(); ++size) {  // the last byte is a line's end
    EXPECT_FALSE(parse_manifest(std::string_view(text).substr(0, size))) << size;
  }
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    std::string flipped = text;
    flipped[i] ^= 1;
    if (flipped[i] == ' ' || text[i] == ' ' || text[i] == '\n') continue;  // layout, maybe
    EXPECT_FALSE(parse_manifest(flipped)) << i;
  }
}

TEST(Manifest, RefusesNamesThatLeaveTheEntry) {
  for (const char* name : {"", "../x", "a/b", ".", "..", ".hidden"}) {
    Manifest manifest = example();
    manifest.files[0].name = name;
    EXPECT_FALSE(parse_manifest(serialize(manifest))) << name;
  }
}

}  // namespace
}  // namespace kb::build

#include "device/oldest_driver.h"

#include <gtest/gtest.h>

namespace kb {
namespace {

TEST(OldestDriver, IsTheSameForEveryMinorVersion) {
  EXPECT_EQ(oldest_driver(12), "525.60.13");
  EXPECT_EQ(oldest_driver(13), "580");
}

TEST(OldestDriver, IsComparedNumberByNumber) {
  for (const char* enough : {"525.60.13", "525.60.14", "525.105.17", "550.54", "1000.1"})
    EXPECT_TRUE(is_driver_as_new(enough, "525.60.13")) << enough;
  for (const char* older : {"525.60.11", "525.60", "525", "470.256.02", "99.99.99", ""})
    EXPECT_FALSE(is_driver_as_new(older, "525.60.13")) << older;
  EXPECT_TRUE(is_driver_as_new("580.65.06", "580"));
  EXPECT_FALSE(is_driver_as_new("579.99", "580"));
}

}  // namespace
}  // namespace kb

#include "sandbox/output_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

namespace kb::sandbox {
namespace {

TEST(HeadAndTail, KeepsAllThatFits) {
  HeadAndTail kept;
  EXPECT_EQ(kept.text(), "");
  std::string all;
  for (int i = 0; i < 64; ++i) {
    const std::string line(1024, static_cast<char>('0' + i));
    kept.append(line);
    all += line;
  }
  EXPECT_EQ(kept.text(), all);
  EXPECT_EQ(kept.total_bytes(), 64u * 1024);
}

TEST(HeadAndTail, SaysHowMuchItLeftOut) {
  for (const std::size_t piece : {1ul, 1000ul, 100'000ul, 1'000'000ul}) {
    HeadAndTail kept;
    std::string all;
    for (std::size_t at = 0; at < 1'000'000; at += piece) {
      std::string next(std::min(piece, 1'000'000 - at), static_cast<char>('a' + at / piece % 26));
      kept.append(next);
      all += next;
    }
    const std::size_t left_out = all.size() - 64 * 1024;
    EXPECT_EQ(kept.text(), all.substr(0, 16 * 1024) + "\n[... " + std::to_string(left_out) +
                               " bytes left out ...]\n" + all.substr(all.size() - 48 * 1024));
  }
}

TEST(OutputBuffer, ReadsWhatWasWrittenBeforeTheCall) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  OutputBuffer buffer{UniqueFd(ends[0])};
  EXPECT_EQ(buffer.text(), "");
  ASSERT_EQ(::write(ends[1], "one ", 4), 4);
  EXPECT_EQ(buffer.text(), "one ");
  ASSERT_EQ(::write(ends[1], "two", 3), 3);
  ::close(ends[1]);
  EXPECT_EQ(buffer.drain(), OutputBuffer::State::ended);
  EXPECT_EQ(buffer.text(), "one two");
}

}  // namespace
}  // namespace kb::sandbox

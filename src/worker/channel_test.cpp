#include "worker/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <thread>

namespace kb::worker {
namespace {

using std::chrono::milliseconds;

class Channel : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    a = FileDescriptor(ends[0]);
    b = FileDescriptor(ends[1]);
  }
  void raw(std::string_view bytes) {
    ASSERT_EQ(::send(a.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  static std::string length_word(std::uint32_t length) {
    return std::string(reinterpret_cast<const char*>(&length), 4);
  }
  FileDescriptor a, b;
};

TEST_F(Channel, CarriesAnObjectAndItsDescriptors) {
  FileDescriptor file(::memfd_create("test", 0));
  ASSERT_EQ(::write(file.get(), "hello", 5), 5);
  const int fd = file.get();
  ASSERT_TRUE(
      send_frame(a.get(), {{"op", "attach"}, {"n", 3}}, std::span(&fd, 1), milliseconds(100)));
  auto frame = receive_frame(b.get(), 1000, milliseconds(100));
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->body["op"], "attach");
  ASSERT_EQ(frame->fds.size(), 1u);
  char text[6] = {};
  ASSERT_EQ(::pread(frame->fds[0].get(), text, 5, 0), 5);
  EXPECT_STREQ(text, "hello");
}

TEST_F(Channel, CarriesAFrameLargerThanTheSocketBuffer) {
  const std::string big(3'000'000, 'x');
  std::jthread sender([&] {
    EXPECT_TRUE(send_frame(a.get(), {{"text", big}}, {}, milliseconds(5000)));
  });
  auto frame = receive_frame(b.get(), kMaxFrameFromWorker, milliseconds(5000));
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->body["text"].get_ref<const std::string&>().size(), big.size());
}

TEST_F(Channel, TimesOutOnSilenceAndOnHalfAFrame) {
  EXPECT_EQ(receive_frame(b.get(), 1000, milliseconds(20)).error(), ChannelError::timeout);
  raw(length_word(10) + "{\"a\"");
  EXPECT_EQ(receive_frame(b.get(), 1000, milliseconds(20)).error(), ChannelError::timeout);
}

TEST_F(Channel, ReportsTheEnd) {
  a.reset();
  EXPECT_EQ(receive_frame(b.get(), 1000, milliseconds(100)).error(), ChannelError::closed);
}

TEST_F(Channel, RefusesAFrameThatIsTooLongBeforeReadingIt) {
  raw(length_word(5000));
  EXPECT_EQ(receive_frame(b.get(), 1000, milliseconds(100)).error(), ChannelError::malformed);
}

TEST_F(Channel, RefusesWhatIsNoObject) {
  for (const std::string text : {"[1]", "3", "", "{\"a\":", "\xff\xfe", "{}x"}) {
    raw(length_word(static_cast<std::uint32_t>(text.size())) + text);
    EXPECT_EQ(receive_frame(b.get(), 1000, milliseconds(100)).error(), ChannelError::malformed)
        << text;
  }
}

TEST(ParseFrame, RefusesDeepNesting) {
  const std::string deep = "{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  EXPECT_EQ(parse_frame(deep).error(), ChannelError::malformed);
  EXPECT_TRUE(parse_frame("{\"a\":[[[1]]]}"));
}

}  // namespace
}  // namespace kb::worker

#include "llm/stream.h"

#include <gmock/gmock.h>

#include <utility>
#include <vector>

namespace kb::llm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Events = std::vector<std::pair<std::string, std::string>>;

// The events in `text` when it arrives in pieces of `size` bytes.
Events events_in(std::string_view text, std::size_t size) {
  Events events;
  EventStream stream(1000);
  const auto sink = [&](std::string_view event, std::string_view data) {
    events.emplace_back(event, data);
    return true;
  };
  for (std::size_t i = 0; i < text.size(); i += size)
    EXPECT_EQ(stream.feed(text.substr(i, size), sink), EventStream::Result::more);
  EXPECT_EQ(stream.finish(sink), EventStream::Result::more);
  return events;
}

TEST(EventStream, HoweverItIsCut) {
  for (const std::string_view text :
       {std::string_view(
            "event: a\ndata: 1\n\n: comment\n\ndata:2\ndata: 3\nid: 7\n\nevent: none\n\n"),
        std::string_view("event: a\r\ndata: 1\r\n\r\n: comment\r\n\r\ndata:2\r\ndata: 3\r\n\r\n"),
        std::string_view("event: a\rdata: 1\r\r: comment\r\rdata:2\rdata: 3\r\r")})
    for (std::size_t size = 1; size <= text.size(); ++size)
      ASSERT_THAT(events_in(text, size), ElementsAre(Pair("a", "1"), Pair("", "2\n3"))) << size;
}

TEST(EventStream, TheLastBlankLineMayLack) {
  EXPECT_THAT(events_in("data: 1\n", 3), ElementsAre(Pair("", "1")));
  EXPECT_THAT(events_in("data: 1", 3), ElementsAre(Pair("", "1")));
  EXPECT_THAT(events_in("", 1), IsEmpty());
  EXPECT_THAT(events_in("data\n\n", 1), ElementsAre(Pair("", ""))) << "a field without a colon";
}

TEST(EventStream, EndsWhenItIsToldTo) {
  EventStream stream(1000);
  int count = 0;
  const auto sink = [&](auto, auto) { return ++count < 2; };
  EXPECT_EQ(stream.feed("data: 1\n\ndata: 2\n\ndata: 3\n\n", sink),
            EventStream::Result::ended_by_sink);
  EXPECT_EQ(count, 2);
}

TEST(EventStream, NeitherLinesNorEventsGrowForever) {
  const auto sink = [](auto, auto) { return true; };
  EventStream line(100), event(100);
  auto result = EventStream::Result::more;
  for (int i = 0; i < 200 && result == EventStream::Result::more; ++i)
    result = line.feed("x", sink);
  EXPECT_EQ(result, EventStream::Result::event_too_large);
  result = EventStream::Result::more;
  for (int i = 0; i < 200 && result == EventStream::Result::more; ++i)
    result = event.feed("data: x\n", sink);
  EXPECT_EQ(result, EventStream::Result::event_too_large);
}

}  // namespace
}  // namespace kb::llm

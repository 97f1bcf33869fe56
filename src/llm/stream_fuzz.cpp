// Any bytes, cut anywhere, give the same events as in one piece, and no crash in any dialect.

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "llm/dialect.h"
#include "llm/stream.h"
#include "llm/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kb::llm;  // NOLINT: a program's only file
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto read = [&](std::size_t piece) {
    std::vector<std::pair<std::string, std::string>> events;
    EventStream stream(1 << 16);
    const auto sink = [&](std::string_view event, std::string_view text) {
      events.emplace_back(event, text);
      return true;
    };
    for (std::size_t i = 0; i < size; i += piece) stream.feed(bytes.substr(i, piece), sink);
    stream.finish(sink);
    return events;
  };
  const auto events = read(size + 1);
  if (events != read(3)) std::abort();
  for (const Api api : {Api::openai, Api::anthropic, Api::google}) {
    Reading reading;
    for (const auto& [event, text] : events)
      if (const auto parsed = parse_json(text)) {
        dialect_of(api).read_event(event, parsed->json, reading);
        dialect_of(api).read_whole(parsed->json, reading);
        if (reading.error) classify(200, *reading.error);
      }
  }
  (void)one_line(bytes, 50);
  return 0;
}

#include "llm/stream.h"

#include <algorithm>
#include <utility>

namespace kb::llm {

EventStream::Result EventStream::take_line(const Sink& sink) {
  const std::string line = std::exchange(line_, {});
  if (line.empty()) {
    const std::string event = std::exchange(event_, {});
    const std::string data = std::exchange(data_, {});
    if (!std::exchange(has_data_, false)) return Result::more;
    return sink(event, data) ? Result::more : Result::ended_by_sink;
  }
  // A line that starts with a colon is a comment: servers send them to keep a connection open.
  const std::size_t colon = std::min(line.find(':'), line.size());
  const std::string_view field = std::string_view(line).substr(0, colon);
  std::string_view value = std::string_view(line).substr(std::min(colon + 1, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "event") {
    event_ = value;
  } else if (field == "data") {
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
    if (data_.size() > max_event_bytes_) return Result::event_too_large;
  }
  return Result::more;
}

EventStream::Result EventStream::feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    if (std::exchange(after_cr_, false) && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      continue;
    }
    const std::size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    line_ += bytes.substr(0, end);
    if (line_.size() > max_event_bytes_) return Result::event_too_large;
    if (end == bytes.size()) break;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    if (const Result result = take_line(sink); result != Result::more) return result;
  }
  return Result::more;
}

EventStream::Result EventStream::finish(const Sink& sink) {
  if (!line_.empty())
    if (const Result result = take_line(sink); result != Result::more) return result;
  return take_line(sink);
}

}  // namespace kb::llm

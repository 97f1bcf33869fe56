// Server-sent events, as all three forms of streaming answer come in: lines `event: …` and
// `data: …`, a blank line after each event.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace kb::llm {

class EventStream {
 public:
  /// `event` is empty where the server names none. False ends the parsing.
  using Sink = std::function<bool(std::string_view event, std::string_view data)>;

  /// `max_event_bytes`: of one line and of one event's data.
  explicit EventStream(std::size_t max_event_bytes) : max_event_bytes_(max_event_bytes) {}

  enum class Result { more, ended_by_sink, event_too_large };
  /// Takes bytes as they arrive, however they are cut, and calls `sink` for each event that they
  /// complete. Lines end in LF, CR LF or CR.
  Result feed(std::string_view bytes, const Sink& sink);
  /// The connection has ended: an event that lacks only its blank line counts.
  Result finish(const Sink& sink);

 private:
  Result take_line(const Sink& sink);

  std::size_t max_event_bytes_;
  std::string line_, event_, data_;
  bool has_data_ = false;
  bool after_cr_ = false;
};

}  // namespace kb::llm

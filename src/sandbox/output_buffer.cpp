#include "sandbox/output_buffer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace kb::sandbox {

void HeadAndTail::append(std::string_view text) {
  total_bytes_ += text.size();
  const std::size_t to_head = std::min(text.size(), head_bytes - head_.size());
  head_ += text.substr(0, to_head);
  text.remove_prefix(to_head);
  if (text.size() > tail_bytes) text.remove_prefix(text.size() - tail_bytes);
  tail_ += text;
  if (tail_.size() >= 2 * tail_bytes) tail_.erase(0, tail_.size() - tail_bytes);
}

std::string HeadAndTail::text() const {
  std::string_view tail = tail_;
  if (tail.size() > tail_bytes) tail.remove_prefix(tail.size() - tail_bytes);
  const std::uint64_t left_out = total_bytes_ - head_.size() - tail.size();
  if (left_out == 0) return fmt::format("{}{}", head_, tail);
  return fmt::format("{}\n[... {} bytes left out ...]\n{}", head_, left_out, tail);
}

OutputBuffer::OutputBuffer(UniqueFd pipe) : pipe_(std::move(pipe)) {
  (void)::fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);
}

OutputBuffer::State OutputBuffer::drain() {
  constexpr std::uint64_t much = 1 << 20;
  std::array<char, 16 * 1024> buffer;
  const std::lock_guard lock(mutex_);
  for (int round = 0; !ended_ && round < 16; ++round) {
    const ssize_t got = ::read(pipe_.get(), buffer.data(), buffer.size());
    if (got > 0) {
      kept_.append({buffer.data(), static_cast<std::size_t>(got)});
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return State::quiet;
    ended_ = true;
  }
  if (ended_) return State::ended;
  return kept_.total_bytes() > much ? State::flooding : State::quiet;
}

std::string OutputBuffer::text() {
  (void)drain();
  const std::lock_guard lock(mutex_);
  return kept_.text();
}

}  // namespace kb::sandbox

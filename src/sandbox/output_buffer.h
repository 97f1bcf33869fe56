// The beginning and the end of what a program prints, however much that is.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "sandbox/unique_fd.h"

namespace kb::sandbox {

/// Keeps the first 16 and the last 48 KiB of a stream.
class HeadAndTail {
 public:
  static constexpr std::size_t head_bytes = 16 * 1024;
  static constexpr std::size_t tail_bytes = 48 * 1024;

  void append(std::string_view text);
  /// What was kept; one line stands for what was left out.
  std::string text() const;
  std::uint64_t total_bytes() const { return total_bytes_; }

 private:
  std::string head_;
  std::string tail_;  ///< up to twice tail_bytes, so that it is cut rarely
  std::uint64_t total_bytes_ = 0;
};

/// The judge's end of a pipe that a program writes to. Thread-safe.
class OutputBuffer {
 public:
  /// `pipe` is the reading end, without O_NONBLOCK shared with the writer.
  explicit OutputBuffer(UniqueFd pipe);

  int fd() const { return pipe_.get(); }
  enum class State { quiet, flooding, ended };
  /// Takes what the pipe holds, at most some hundred KiB. `flooding` when there may be more and
  /// there has been a great deal already; `ended` when all writers have gone.
  State drain();
  /// drain() first, so that nothing written before the call is missed.
  std::string text();

 private:
  std::mutex mutex_;
  UniqueFd pipe_;
  HeadAndTail kept_;
  bool ended_ = false;
};

}  // namespace kb::sandbox

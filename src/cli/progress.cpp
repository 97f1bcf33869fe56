#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace kb::cli {

Progress::Progress(std::string what, std::size_t total)
    : what_(std::move(what)), total_(total), terminal_(::isatty(STDOUT_FILENO) != 0) {
  draw();
}

Progress::~Progress() {
  if (terminal_) fmt::print("\r\x1b[K");
  std::fflush(stdout);
}

void Progress::working_on(const std::string& item) {
  item_ = item;
  draw();
}

void Progress::done(const std::string& line) {
  ++done_;
  if (terminal_) fmt::print("\r\x1b[K");
  if (!line.empty()) fmt::print("{}\n", line);
  draw();
  std::fflush(stdout);
}

void Progress::spare(std::size_t number) {
  total_ -= number;
  draw();
}

void Progress::draw() {
  if (!terminal_ || total_ == 0) return;
  constexpr std::size_t kWidth = 24;
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const std::size_t filled = kWidth * done_ / total_;
  std::string pace;
  if (done_ > 0 && done_ < total_) {
    const double left = elapsed / static_cast<double>(done_) * static_cast<double>(total_ - done_);
    pace = fmt::format("  {:.1f}/min  {:.0f} s left",
                       60.0 * static_cast<double>(done_) / std::max(elapsed, 1e-3), left);
  }
  fmt::print("\r\x1b[K[{}{}] {}/{} {}{}  {}", std::string(filled, '#'),
             std::string(kWidth - filled, '.'), done_, total_, what_, pace, item_);
  std::fflush(stdout);
}

std::string printable(const std::string& text, bool lines) {
  std::string clean;
  clean.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == '\n' && lines)
      clean += c;
    else if (byte == '\n' || byte == '\t')
      clean += ' ';
    else if (byte >= 0x80 && byte < 0xA0 && clean.ends_with('\xC2'))
      clean.pop_back();  // U+0080 to U+009F, which some terminals obey
    else if (byte >= 0x20 && byte != 0x7F)
      clean += c;
  }
  return clean;
}

}  // namespace kb::cli

// Progress of a long command: a bar with rate and time left on a terminal, plain lines when piped.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace kb::cli {

class Progress {
 public:
  /// `what`: "compiled", "judged".
  Progress(std::string what, std::size_t total);
  ~Progress();  ///< ends the bar's line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows what is being worked on (terminal only).
  void working_on(const std::string& item);
  /// One more is done; `line` is printed above the bar, or as it is when piped.
  void done(const std::string& line);
  /// So many of the total will not come.
  void spare(std::size_t number);

 private:
  void draw();

  std::string what_, item_;
  std::size_t total_, done_ = 0;
  bool terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// `text` without control characters (a kernel's or compiler's words must not drive the terminal),
/// line feeds kept if `lines`.
std::string printable(const std::string& text, bool lines);

}  // namespace kb::cli

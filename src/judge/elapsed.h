// How long something has taken, in milliseconds.
#pragma once

#include <chrono>

namespace kb::judge {

inline double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

/// Adds its life time to a total.
class Timed {
 public:
  explicit Timed(double& total_ms) : total_ms_(total_ms) {}
  ~Timed() { total_ms_ += ms_since(start_); }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  double& total_ms_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace kb::judge

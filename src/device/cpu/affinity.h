// Which CPUs a thread may run on.
#pragma once

#include <sys/types.h>

#include <span>
#include <vector>

namespace kb::cpu {

/// The CPUs that a thread (0: the calling one) may run on, in ascending order; a container or
/// taskset may allow fewer than the machine has. Empty where that cannot be read, as on machines of
/// more than 1024 CPUs, whose mask is longer.
std::vector<int> cpus_of(pid_t thread);
/// From here on the thread, and those that it starts, run on these CPUs alone. False: they do not.
bool bind_to_cpus(pid_t thread, std::span<const int> cpus);

/// Binds the thread that makes it as long as it lives, whichever thread ends it.
class StayOn {
 public:
  explicit StayOn(std::span<const int> cpus);
  ~StayOn();
  StayOn(const StayOn&) = delete;
  StayOn& operator=(const StayOn&) = delete;
  /// Is it bound? Not to no CPUs, nor to ones that it may not use.
  explicit operator bool() const { return bound_; }

 private:
  pid_t thread_;
  std::vector<int> before_;
  bool bound_;
};

}  // namespace kb::cpu

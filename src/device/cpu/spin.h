// For loops that wait without sleeping.
#pragma once

namespace kb::cpu {

/// Lets the other thread of a core, and the core's clock, have the moment between two looks.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace kb::cpu

// The system calls that a candidate is refused, as programs for the kernel's seccomp filter.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <vector>

namespace kb::sandbox {

/// The filter of every sandbox, an array of `struct sock_filter`: what reaches other processes,
/// other namespaces, devices, the network or the kernel's rarely used parts fails with EPERM
/// (clone3 with ENOSYS, since its flags cannot be looked at: C libraries then fall back to clone).
/// Starting threads and programs is allowed. Error: libseccomp's own, in one sentence.
std::expected<std::vector<std::byte>, std::string> sandbox_filter();

}  // namespace kb::sandbox

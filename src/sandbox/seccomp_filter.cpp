// A list of refusals, not of permissions: Python, PyTorch and the CUDA driver use several hundred
// system calls, which differ with every version. What matters is that the namespaces hold, so the
// list takes away the means to leave or change them, to look into other processes, and the large
// rarely used parts of the kernel where its bugs are found.
#include "sandbox/seccomp_filter.h"

#include <fmt/format.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "sandbox/sandbox.h"
#include "sandbox/unique_fd.h"

namespace kb::sandbox {
namespace {

struct Refusal {
  const char* name;
  /// For calls newer than libseccomp 2.5; the number is the same on every architecture from 424 up.
  int number = -1;
};

constexpr Refusal refused[] = {
    // Other processes' memory and descriptors.
    {"ptrace"},
    {"process_vm_readv"},
    {"process_vm_writev"},
    {"pidfd_getfd", 438},
    {"kcmp"},
    // Namespaces and mounts.
    {"unshare"},
    {"setns"},
    {"mount"},
    {"umount"},
    {"umount2"},
    {"pivot_root"},
    {"chroot"},
    {"open_tree", 428},
    {"open_tree_attr", 467},
    {"move_mount", 429},
    {"fsopen", 430},
    {"fsconfig", 431},
    {"fsmount", 432},
    {"fspick", 433},
    {"mount_setattr", 442},
    {"name_to_handle_at"},
    {"open_by_handle_at"},
    // Parts of the kernel that a kernel benchmark has no use for.
    {"keyctl"},
    {"add_key"},
    {"request_key"},
    {"bpf"},
    {"perf_event_open"},
    {"userfaultfd"},
    // Timers go on firing, in interrupts, while their owner is frozen: tens of thousands of them
    // slow a neighbour's turn down.
    {"timer_create"},
    {"timerfd_create"},
    {"io_setup"},
    {"io_uring_setup", 425},
    {"io_uring_enter", 426},
    {"io_uring_register", 427},
    {"fanotify_init"},
    {"lookup_dcookie"},
    {"modify_ldt"},
    {"vm86"},
    {"vm86old"},
    {"uselib"},
    {"nfsservctl"},
    {"sysfs"},
    {"_sysctl"},
    {"mlockall"},
    // The machine.
    {"kexec_load"},
    {"kexec_file_load"},
    {"reboot"},
    {"swapon"},
    {"swapoff"},
    {"init_module"},
    {"finit_module"},
    {"delete_module"},
    {"create_module"},
    {"quotactl"},
    {"quotactl_fd", 443},
    {"acct"},
    {"settimeofday"},
    {"stime"},
    {"clock_settime"},
    {"clock_settime64"},
    {"clock_adjtime"},
    {"clock_adjtime64"},
    {"adjtimex"},
    {"syslog"},
    {"iopl"},
    {"ioperm"},
    {"vhangup"},
    {"sethostname"},
    {"setdomainname"},
};

constexpr std::array<std::uint64_t, 7> namespace_flags = {
    CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
    CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};

using Context = std::unique_ptr<void, decltype(&seccomp_release)>;

/// Adds `action` for the call `name` under `conditions`; a call that this architecture lacks is no
/// error.
int add(const Context& context, std::uint32_t action, const Refusal& call,
        std::initializer_list<scmp_arg_cmp> conditions = {}) {
  int number = seccomp_syscall_resolve_name(call.name);
  if (number == __NR_SCMP_ERROR) number = call.number;
  if (number < 0) return 0;  // unknown here, or known and absent from this architecture
  return seccomp_rule_add_array(context.get(), action, number,
                                static_cast<unsigned>(conditions.size()), conditions.begin());
}

Context make_context() {
  Context context(seccomp_init(SCMP_ACT_ALLOW), &seccomp_release);
  if (context) {
    // A binary tree, so that the price of a system call does not grow with the list.
    (void)seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
    // 32-bit and x32 system calls would go round every rule.
    (void)seccomp_attr_set(context.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  }
  return context;
}

std::expected<std::vector<std::byte>, std::string> compile(const Context& context) {
  UniqueFd file(::memfd_create("seccomp", MFD_CLOEXEC));
  if (!file) return std::unexpected(fmt::format("memfd_create failed: {}", std::strerror(errno)));
  if (int rc = seccomp_export_bpf(context.get(), file.get()); rc != 0) {
    return std::unexpected(
        fmt::format("libseccomp could not compile the filter: {}", std::strerror(-rc)));
  }
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  std::vector<std::byte> program(size > 0 ? static_cast<std::size_t>(size) : 0);
  if (::pread(file.get(), program.data(), program.size(), 0) != size || program.empty()) {
    return std::unexpected(std::string("the compiled filter could not be read back"));
  }
  return program;
}

}  // namespace

std::expected<std::vector<std::byte>, std::string> sandbox_filter() {
  const Context context = make_context();
  if (!context) return std::unexpected(std::string("libseccomp could not be initialised"));

  constexpr std::uint32_t deny = SCMP_ACT_ERRNO(EPERM);
  int rc = 0;
  const auto rule = [&](std::uint32_t action, const Refusal& call,
                        std::initializer_list<scmp_arg_cmp> conditions = {}) {
    if (rc == 0) rc = add(context, action, call, conditions);
  };

  for (const Refusal& call : refused) rule(deny, call);
  rule(SCMP_ACT_ERRNO(ENOSYS), {"clone3", 435});
  for (std::uint64_t flag : namespace_flags) {
    rule(deny, {"clone"}, {SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag)});
  }
  // Only the low half counts, as in the kernel: a caller may leave anything in the high half.
  constexpr std::uint64_t low_half = 0xffffffff;
  rule(deny, {"socket"}, {SCMP_A0(SCMP_CMP_NE, AF_UNIX)});
  rule(deny, {"personality"}, {SCMP_A0(SCMP_CMP_NE, low_half)});
  rule(deny, {"ioctl"}, {SCMP_A1(SCMP_CMP_MASKED_EQ, low_half, TIOCSTI)});
  rule(deny, {"ioctl"}, {SCMP_A1(SCMP_CMP_MASKED_EQ, low_half, TIOCLINUX)});
  if (rc != 0) {
    return std::unexpected(fmt::format("libseccomp refused a rule: {}", std::strerror(-rc)));
  }
  return compile(context);
}

std::vector<std::byte> no_new_process_filter() {
  const Context context = make_context();
  if (!context) return {};
  constexpr std::uint32_t deny = SCMP_ACT_ERRNO(EPERM);
  int rc = 0;
  for (const char* name : {"fork", "vfork", "execve", "execveat"}) {
    if (rc == 0) rc = add(context, deny, {name});
  }
  if (rc == 0) {
    rc = add(context, deny, {"clone"}, {SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0)});
  }
  if (rc == 0) rc = add(context, SCMP_ACT_ERRNO(ENOSYS), {"clone3", 435});
  if (rc != 0) return {};
  return compile(context).value_or(std::vector<std::byte>{});
}

}  // namespace kb::sandbox

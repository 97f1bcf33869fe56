// The native worker: a small process that loads one compiled candidate and runs it when the
// doorbell rings. It lives inside the sandbox, and shares its address space with the candidate:
// nothing that it says or stores is believed by the judge. See docs/protocol.md.

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "worker/channel.h"
#include "worker/doorbell.h"
#include "worker/native/candidate.h"

namespace {

using namespace kb::worker;  // NOLINT: a program's only file
using kb::worker::native::CallTable;
using kb::worker::native::Candidate;

constexpr auto kForever = std::chrono::hours(24 * 365);
constexpr auto kSendLimit = std::chrono::seconds(60);

nlohmann::json error_reply(const Fault& fault) {
  const char* kind = "protocol";
  switch (fault.kind) {
    case FaultKind::load: kind = "load"; break;
    case FaultKind::runtime: kind = "runtime"; break;
    case FaultKind::out_of_memory: kind = "out_of_memory"; break;
    default: break;
  }
  return {{"ok", false}, {"error", {{"kind", kind}, {"text", fault.text.substr(0, 16u << 10)}}}};
}

// Installs the filter for every thread. False where the kernel refuses.
bool install_lock(std::vector<std::byte>& program) {
  sock_fprog filter{static_cast<unsigned short>(program.size() / sizeof(sock_filter)),
                    reinterpret_cast<sock_filter*>(program.data())};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

class NativeWorker {
 public:
  explicit NativeWorker(int socket) : socket_(socket) {}

  int serve() {
    send({{"hello", "native"}, {"protocol", 1}, {"pid", ::getpid()}});
    for (;;) {
      auto frame = receive_frame(socket_, kMaxFrameToWorker, kForever);
      if (!frame) return frame.error() == ChannelError::closed ? 0 : 1;
      const std::string op = frame->body.value("op", std::string());
      if (op == "exit") return 0;
      try {
        if (auto done = handle(op, *frame); !done) send(error_reply(done.error()));
      } catch (const nlohmann::json::exception& error) {
        send(error_reply({FaultKind::protocol, error.what()}));
      }
    }
  }

 private:
  std::expected<void, Fault> handle(const std::string& op, Frame& frame) {
    if (op == "attach") return attach(frame);
    if (op == "load_native") return load(frame);
    if (op == "turns") return turns(frame);
    return std::unexpected(Fault{FaultKind::protocol, "unknown op " + op});
  }

  std::expected<void, Fault> attach(Frame& frame) {
    if (frame.fds.size() != 1)
      return std::unexpected(Fault{FaultKind::protocol, "attach takes one descriptor"});
    const auto& layout = frame.body.at("layout");
    const auto size = layout.at("size").get<std::size_t>();
    struct stat info {};
    if (::fstat(frame.fds[0].get(), &info) != 0 || static_cast<std::size_t>(info.st_size) < size)
      return std::unexpected(Fault{FaultKind::protocol, "the arena is smaller than its layout"});
    void* base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, frame.fds[0].get(), 0);
    if (base == MAP_FAILED)
      return std::unexpected(Fault{FaultKind::out_of_memory, "the arena cannot be mapped"});
    arena_ = static_cast<std::byte*>(base);
    auto table = CallTable::parse(layout, arena_, size);
    if (!table) return std::unexpected(Fault{FaultKind::protocol, table.error()});
    table_ = std::move(*table);
    send({{"ok", true}});
    return {};
  }

  std::expected<void, Fault> load(Frame& frame) {
    if (!table_) return std::unexpected(Fault{FaultKind::protocol, "load_native before attach"});
    if (frame.body.value("stub", false)) {
      candidate_ = Candidate::stub();
    } else {
      if (frame.fds.size() != 1)
        return std::unexpected(Fault{FaultKind::protocol, "load_native takes one descriptor"});
      auto candidate = Candidate::load(frame.fds[0].get(), *table_);
      if (!candidate) return std::unexpected(candidate.error());
      candidate_ = std::move(*candidate);
    }
    send({{"ok", true}, {"has_create", candidate_->has_create()}});
    return {};
  }

  std::expected<void, Fault> turns(Frame& frame) {
    if (!candidate_) return std::unexpected(Fault{FaultKind::protocol, "turns before load_native"});
    std::vector<std::byte> lock;
    if (!frame.fds.empty()) {
      lock.resize(64 * 1024);
      const ssize_t got = ::pread(frame.fds[0].get(), lock.data(), lock.size(), 0);
      lock.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    }
    auto& bell = *reinterpret_cast<Doorbell*>(arena_);
    std::uint32_t seen = bell.go.load(std::memory_order_acquire);
    send({{"ok", true}});
    for (;;) {
      std::uint32_t now;
      while ((now = bell.go.load(std::memory_order_acquire)) == seen)
        futex_wait(&bell.go, seen, -1);
      seen = now;
      std::expected<void, Fault> outcome;
      const auto command = static_cast<Command>(bell.command);
      if (command == Command::run) {
        const std::uint32_t calls = bell.num_calls;
        for (std::uint32_t i = 0; i < calls && i < kMaxCalls && outcome; ++i) {
          const std::uint32_t slot = bell.slot[i];
          if (slot >= table_->slots()) {
            outcome = std::unexpected(Fault{FaultKind::protocol, "no such slot"});
            break;
          }
          outcome = candidate_->run(*table_, slot);
        }
      } else if (command == Command::lock && !lock.empty() && !install_lock(lock)) {
        outcome = std::unexpected(
            Fault{FaultKind::protocol,
                  std::string("the process filter was refused: ") + std::strerror(errno)});
      }
      bell.status = outcome ? 0 : 1;
      bell.done.store(seen, std::memory_order_release);
      futex_wake(&bell.done);
      if (!outcome) return outcome;
      if (command == Command::leave) {
        send({{"ok", true}});
        return {};
      }
    }
  }

  void send(const nlohmann::json& body) { (void)send_frame(socket_, body, {}, kSendLimit); }

  int socket_;
  std::byte* arena_ = nullptr;
  std::optional<CallTable> table_;
  std::optional<Candidate> candidate_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], "--fd") != 0) {
    std::fputs("kernelbench-native-worker is started by kernelbench, not by hand\n", stderr);
    return 2;
  }
  return NativeWorker(std::atoi(argv[2])).serve();
}

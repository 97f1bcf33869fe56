// The native worker: a small process that loads one compiled candidate and runs it when the
// doorbell rings. It lives inside the sandbox, and shares its address space with the candidate:
// nothing that it says or stores is believed by the judge. See docs/protocol.md.

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/channel.h"
#include "worker/doorbell.h"
#include "worker/native/candidate.h"
#include "worker/native/device.h"
#include "worker/native/timing.h"

namespace {

using namespace kb::worker;  // NOLINT: a program's only file
using kb::worker::native::CallTable;
using kb::worker::native::Candidate;
using kb::worker::native::Device;

constexpr auto kForever = std::chrono::hours(24 * 365);
constexpr auto kSendLimit = std::chrono::seconds(60);

nlohmann::json error_reply(const Fault& fault) {
  const char* kind = "protocol";
  switch (fault.kind) {
    case FaultKind::load: kind = "load"; break;
    case FaultKind::runtime: kind = "runtime"; break;
    case FaultKind::out_of_memory: kind = "out_of_memory"; break;
    case FaultKind::unsupported: kind = "unsupported"; break;
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
    if (op == "time") return time(frame);
    return std::unexpected(Fault{FaultKind::protocol, "unknown op " + op});
  }

  std::expected<void, Fault> attach(Frame& frame) {
    if (table_) return std::unexpected(Fault{FaultKind::protocol, "attach comes once"});
    if (frame.fds.size() != 2)
      return std::unexpected(
          Fault{FaultKind::protocol, "attach takes the descriptors of control and data"});
    const auto& layout = frame.body.at("layout");
    const auto control_size = layout.at("control_size").get<std::size_t>();
    if (control_size < sizeof(Doorbell))
      return std::unexpected(Fault{FaultKind::protocol, "control has no room for the doorbell"});
    auto control = kb::worker::native::map_shared(frame.fds[0].get(), control_size);
    if (!control) return std::unexpected(control.error());
    bell_ = reinterpret_cast<Doorbell*>(*control);
    auto device = kb::worker::native::open_device(layout.at("device").get<std::string>());
    if (!device) return std::unexpected(device.error());
    device_ = std::move(*device);
    const auto size = layout.at("size").get<std::size_t>();
    auto data = device_->map(frame.fds[1].get(), size);
    if (!data) return std::unexpected(data.error());
    auto table = CallTable::parse(layout, {*data, size, device_->dl_device()}, device_->stream());
    if (!table) return std::unexpected(Fault{FaultKind::protocol, table.error()});
    table_ = std::move(*table);
    send({{"ok", true}});
    return {};
  }

  std::expected<void, Fault> load(Frame& frame) {
    if (!table_) return std::unexpected(Fault{FaultKind::protocol, "load_native before attach"});
    if (frame.body.value("stub", false)) {
      candidate_ = Candidate::stub();
      // Compiled now, not in the first turn.
      if (auto launched = device_->launch_nothing(); !launched)
        return std::unexpected(launched.error());
    } else {
      if (frame.fds.empty())
        return std::unexpected(Fault{FaultKind::protocol, "load_native takes a descriptor"});
      auto candidate = Candidate::load(frame.fds, *table_);
      if (!candidate) return std::unexpected(candidate.error());
      candidate_ = std::move(*candidate);
    }
    if (auto done = device_->synchronize(); !done)
      return std::unexpected(Fault{done.error().kind, "after kb_create: " + done.error().text});
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
    auto& bell = *bell_;
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
        outcome = run(bell);
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

  std::expected<void, Fault> time(Frame& frame) {
    if (!candidate_) return std::unexpected(Fault{FaultKind::protocol, "time before load_native"});
    const auto slots = frame.body.at("slots").get<std::vector<std::size_t>>();
    if (slots.empty() || std::ranges::any_of(slots, [&](auto s) { return s >= table_->slots(); }))
      return std::unexpected(Fault{FaultKind::protocol, "no such slot"});
    std::size_t calls = 0;
    const auto times = kb::worker::native::time_calls(
        *device_, frame.body.at("mode").get<std::string>(), frame.body.at("warmup").get<int>(),
        frame.body.at("reps").get<int>(),
        [&] { return candidate_->run(*table_, slots[calls++ % slots.size()]); });
    if (!times) return std::unexpected(times.error());
    send({{"ok", true}, {"times_us", *times}});
    return {};
  }

  std::expected<void, Fault> run(const Doorbell& bell) {
    std::expected<void, Fault> outcome;
    const std::uint32_t calls = bell.num_calls;
    for (std::uint32_t i = 0; i < calls && i < kMaxCalls && outcome; ++i) {
      const std::uint32_t slot = bell.slot[i];
      if (slot >= table_->slots())
        return std::unexpected(Fault{FaultKind::protocol, "no such slot"});
      outcome = candidate_->run(*table_, slot);
    }
    if (outcome && candidate_->is_stub()) outcome = device_->launch_nothing();
    if (auto done = device_->synchronize(); !done) {
      if (outcome) return done;
      outcome.error().text += "; the device reports " + done.error().text;
    }
    return outcome;
  }

  void send(const nlohmann::json& body) { (void)send_frame(socket_, body, {}, kSendLimit); }

  // The candidate is the last of them: it is destroyed first.
  int socket_;
  Doorbell* bell_ = nullptr;
  std::unique_ptr<Device> device_;
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

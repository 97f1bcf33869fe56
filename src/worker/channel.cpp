#include "worker/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace kb::worker {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMaxFds = 64;
constexpr int kMaxDepth = 64;

std::expected<void, ChannelError> wait_for(int socket, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return std::unexpected(ChannelError::timeout);
    pollfd entry{socket, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min<std::int64_t>(left, 1 << 30)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return std::unexpected(ChannelError::system);
  }
}

ChannelError error_of_errno() {
  return errno == EPIPE || errno == ECONNRESET ? ChannelError::closed : ChannelError::system;
}

// Reads exactly `into.size()` bytes, collecting descriptors on the way.
std::expected<void, ChannelError> read_exactly(int socket, std::span<std::byte> into,
                                               std::vector<FileDescriptor>& fds,
                                               Clock::time_point deadline) {
  std::size_t have = 0;
  while (have < into.size()) {
    if (auto ready = wait_for(socket, POLLIN, deadline); !ready) return ready;
    iovec part{into.data() + have, into.size() - have};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return std::unexpected(error_of_errno());
    }
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
        fds.emplace_back(fd);
      }
    }
    if (got == 0) return std::unexpected(ChannelError::closed);
    if (fds.size() > kMaxFds) return std::unexpected(ChannelError::malformed);
    have += static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace

std::expected<nlohmann::json, ChannelError> parse_frame(std::string_view bytes) {
  // Depth is bounded by the callback, because the parser's own recursion-free stack would let a
  // hostile frame build a value whose destructor recurses.
  bool too_deep = false;
  const auto guard = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (depth > kMaxDepth) too_deep = true;
    return !too_deep;
  };
  auto body = nlohmann::json::parse(bytes, guard, /*allow_exceptions=*/false);
  if (too_deep || body.is_discarded() || !body.is_object())
    return std::unexpected(ChannelError::malformed);
  return body;
}

std::expected<void, ChannelError> send_frame(int socket, const nlohmann::json& body,
                                             std::span<const int> fds,
                                             std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  const std::string text = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes += text;

  std::size_t sent = 0;
  while (sent < bytes.size()) {
    if (auto ready = wait_for(socket, POLLOUT, deadline); !ready) return ready;
    iovec part{bytes.data() + sent, bytes.size() - sent};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (sent == 0 && !fds.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(fds.size_bytes());
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(fds.size_bytes());
      std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
    }
    const ssize_t put = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return std::unexpected(error_of_errno());
    }
    sent += static_cast<std::size_t>(put);
  }
  return {};
}

std::expected<Frame, ChannelError> receive_frame(int socket, std::size_t max_bytes,
                                                 std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  Frame frame;
  std::uint32_t length = 0;
  if (auto got =
          read_exactly(socket, std::as_writable_bytes(std::span(&length, 1)), frame.fds, deadline);
      !got)
    return std::unexpected(got.error());
  if (length > max_bytes) return std::unexpected(ChannelError::malformed);
  std::string text(length, '\0');
  if (auto got = read_exactly(socket, std::as_writable_bytes(std::span(text)), frame.fds, deadline);
      !got)
    return std::unexpected(got.error());
  auto body = parse_frame(text);
  if (!body) return std::unexpected(body.error());
  frame.body = std::move(*body);
  return frame;
}

}  // namespace kb::worker

// The control socket of the worker protocol (docs/protocol.md): length-prefixed JSON with file
// descriptors.
#pragma once

#include <chrono>
#include <expected>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "worker/file_descriptor.h"

namespace kb::worker {

inline constexpr std::size_t kMaxFrameToWorker = 64u << 20;
inline constexpr std::size_t kMaxFrameFromWorker = 4u << 20;

/// A received frame: the object and the descriptors that came with it.
struct Frame {
  nlohmann::json body;
  std::vector<FileDescriptor> fds;
};

enum class ChannelError { closed, timeout, malformed, system };

/// Parses a frame's bytes: must be one JSON object, nested at most 64 deep. Never throws.
std::expected<nlohmann::json, ChannelError> parse_frame(std::string_view bytes);

/// Sends one frame; blocks at most `limit`.
std::expected<void, ChannelError> send_frame(int socket, const nlohmann::json& body,
                                             std::span<const int> fds,
                                             std::chrono::milliseconds limit);
/// Receives one frame of at most `max_bytes`.
std::expected<Frame, ChannelError> receive_frame(int socket, std::size_t max_bytes,
                                                 std::chrono::milliseconds limit);

}  // namespace kb::worker

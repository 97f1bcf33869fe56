// Reads a source file that a stranger may have written, and says in one sentence why it cannot.
#pragma once

#include <cstddef>
#include <expected>
#include <filesystem>
#include <string>
#include <string_view>

namespace kb::problem {

/// The largest source that is read. The largest public problem file has 0.02 MiB, but a generated
/// kernel may carry tables.
inline constexpr std::size_t kMaxSourceBytes = std::size_t{4} << 20;

/// The text of a regular file. Never blocks on a FIFO or a device. Error: one sentence (missing, a
/// directory, not a regular file, no permission, over kMaxSourceBytes, not UTF-8, a NUL byte).
std::expected<std::string, std::string> read_text_file(const std::filesystem::path& path);

/// True for well-formed UTF-8: no overlong form, no surrogate, nothing above U+10FFFF.
bool is_utf8(std::string_view bytes);

/// `text` without control characters, for a message: a path may hold a line break or an escape
/// sequence.
std::string printable(std::string_view text);

}  // namespace kb::problem

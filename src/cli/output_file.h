// The files that a user names for a command's output.
#pragma once

#include <string>

namespace kb::cli {

/// Writes a file by one rename; into a device or a pipe, which no file may take the place of.
/// UsageError when it cannot be written.
void write_output_file(const std::string& path, const std::string& bytes);
/// UsageError where a folder admits no file: before work that is only written there in the end.
void expect_output_folder(const std::string& path);

}  // namespace kb::cli

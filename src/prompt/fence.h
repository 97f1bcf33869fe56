// Fences that nothing inside can end: how a stranger's text goes into a prompt.
#pragma once

#include <string>
#include <string_view>

namespace kb::prompt {

/// `text` in a fenced block labelled `label`; the fence is longer than any run of backticks inside.
/// The text stands as it is, less blank lines at its end. No line feed behind the closing fence.
std::string fenced(std::string_view label, std::string_view text);

}  // namespace kb::prompt

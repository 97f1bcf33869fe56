#include "prompt/fence.h"

#include <algorithm>

namespace kb::prompt {

std::string fenced(std::string_view label, std::string_view text) {
  std::size_t longest = 2, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(longest + 1, '`');
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::string result = fence;
  result.append(label).append("\n").append(text);
  if (!text.empty()) result += '\n';
  return result + fence;
}

}  // namespace kb::prompt

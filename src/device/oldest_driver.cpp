#include "device/oldest_driver.h"

#include <algorithm>
#include <charconv>

namespace kb {
namespace {

// The first number of a version, taken off it; 0 when there is none.
int take_number(std::string_view& version) {
  const std::string_view word = version.substr(0, version.find('.'));
  int number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
  version.remove_prefix(std::min(word.size() + 1, version.size()));
  return number;
}

}  // namespace

std::string_view oldest_driver(int cuda_major) {
  return cuda_major <= 12 ? "525.60.13" : "580";
}

bool is_driver_as_new(std::string_view version, std::string_view oldest) {
  while (!oldest.empty()) {
    const int has = take_number(version), needs = take_number(oldest);
    if (has != needs) return has > needs;
  }
  return true;
}

}  // namespace kb

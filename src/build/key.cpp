#include "build/key.h"

#include <fmt/format.h>

namespace kb::build {

namespace {

// Raise this when the meaning or the form of an entry changes: older entries are then never found
// again and age out.
constexpr std::string_view kFormat = "1";

}  // namespace

Key::Key(std::string_view kind) {
  add("format", kFormat);
  add("kind", kind);
}

void Key::add(std::string_view name, std::string_view value) {
  digest_.update(fmt::format("{}:{}:", name.size(), value.size()));
  digest_.update(name);
  digest_.update(value);
}

}  // namespace kb::build

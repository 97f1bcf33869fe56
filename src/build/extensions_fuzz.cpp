// parse_extensions() against arbitrary bytes: no crash, and nothing outside its bounds gets
// through.
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "build/extensions.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = kb::build::parse_extensions(text);
  if (!parsed) {
    if (parsed.error().empty()) std::abort();
    return 0;
  }
  if (parsed->extensions.size() > kb::build::kMaxExtensions) std::abort();
  for (const auto& extension : parsed->extensions) {
    if (extension.name.empty() || extension.name.find('/') != std::string::npos) std::abort();
    const std::filesystem::path file = extension.file;
    if (file.empty() || file.is_absolute()) std::abort();
    for (const auto& part : file) {
      if (part.empty() || part == ".." || part == ".") std::abort();
    }
  }
  return 0;
}

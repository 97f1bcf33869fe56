#include "build/extensions.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace kb::build {

namespace {

using nlohmann::json;

constexpr int kMaxDepth = 8;

std::optional<Status> parse_status(const std::string& word) {
  if (word == "ok") return Status::ok;
  if (word == "compile_error") return Status::compile_error;
  if (word == "load_error") return Status::load_error;
  return std::nullopt;
}

bool is_module_name(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  // A library without a Python module may have a name that is no identifier.
  return !name.empty() && name.size() <= 128 && letter(name[0]) &&
         std::ranges::all_of(name, [&](char c) {
           return letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '.';
         });
}

bool is_inner_path(std::string_view path) {
  if (path.empty() || path.size() > 1024) return false;
  if (std::ranges::any_of(path, [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; })) {
    return false;
  }
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

// The member `name` if it is a string.
const std::string* string_member(const json& object, const char* name) {
  const auto member = object.find(name);
  return member == object.end() ? nullptr : member->get_ptr<const std::string*>();
}

}  // namespace

std::expected<Extensions, std::string> parse_extensions(std::string_view text) {
  if (text.size() > kMaxExtensionsBytes) return std::unexpected("is too large");
  bool too_deep = false;
  const auto limit_depth = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  const json value = json::parse(text, limit_depth, false);
  if (too_deep || !value.is_object()) return std::unexpected("is not a JSON object");

  Extensions result;
  const std::string* status = string_member(value, "status");
  const std::string* words = string_member(value, "text");
  const auto list = value.find("extensions");
  if (status == nullptr || words == nullptr || list == value.end() || !list->is_array()) {
    return std::unexpected("lacks \"status\", \"text\" or \"extensions\"");
  }
  const auto parsed = parse_status(*status);
  if (!parsed) return std::unexpected("has an unknown status");
  result.status = *parsed;
  result.text = *words;
  if (list->size() > kMaxExtensions) return std::unexpected("lists too many extensions");
  if (result.status != Status::ok) return result;

  std::set<std::string> names;
  for (const json& item : *list) {
    const std::string* name = item.is_object() ? string_member(item, "name") : nullptr;
    const std::string* file = item.is_object() ? string_member(item, "file") : nullptr;
    if (name == nullptr || file == nullptr) return std::unexpected("lists a malformed extension");
    if (!is_module_name(*name)) return std::unexpected("lists a name that no module can have");
    if (!is_inner_path(*file)) return std::unexpected("lists a file outside the build folder");
    if (!names.insert(*name).second) return std::unexpected("lists one name twice");
    result.extensions.push_back({*name, *file});
  }
  return result;
}

}  // namespace kb::build

#include "build/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "build/build.h"
#include "digest/sha256.h"

namespace kb::build {

namespace {

using nlohmann::json;

std::string dump(const json& value) {
  return value.dump(1, ' ', false, json::error_handler_t::replace);
}

// A name of a file directly in the entry.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name[0] != '.' &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

}  // namespace

std::string serialize(const Manifest& manifest) {
  json files = json::array();
  for (const Workplace::File& file : manifest.files) {
    files.push_back(
        {{"name", file.name}, {"size", file.digest.size}, {"sha256", file.digest.sha256}});
  }
  json value = {{"key", manifest.key},           {"status", manifest.status},
                {"log", manifest.log},           {"created", manifest.created},
                {"build_ms", manifest.build_ms}, {"files", std::move(files)}};
  value["digest"] = sha256_hex(dump(value));
  return dump(value) + "\n";
}

std::optional<Manifest> parse_manifest(std::string_view text) {
  json value = json::parse(text, nullptr, false);
  if (!value.is_object() || !value.contains("digest") || !value["digest"].is_string()) return {};
  const std::string digest = value["digest"];
  value.erase("digest");
  if (sha256_hex(dump(value)) != digest) return {};
  // Past here the text is one that serialize() made, unless somebody took pains.
  try {
    Manifest manifest;
    manifest.key = value.at("key").get<std::string>();
    manifest.status = value.at("status").get<std::string>();
    manifest.log = value.at("log").get<std::string>();
    manifest.created = value.at("created").get<std::string>();
    manifest.build_ms = value.at("build_ms").get<double>();
    for (const json& item : value.at("files")) {
      Workplace::File file;
      file.name = item.at("name").get<std::string>();
      file.digest.size = item.at("size").get<std::uint64_t>();
      file.digest.sha256 = item.at("sha256").get<std::string>();
      if (!is_plain_name(file.name) || !is_sha256_hex(file.digest.sha256)) return {};
      manifest.files.push_back(std::move(file));
    }
    return manifest;
  } catch (const json::exception&) {
    return {};
  }
}

}  // namespace kb::build

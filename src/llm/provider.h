// Who is asked: the providers known by name, and what a command line makes of them.
#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "llm/secrets.h"

namespace kb::llm {

/// The form of requests and replies.
enum class Api { openai, anthropic, google };
std::string_view name_of(Api api);
std::optional<Api> parse_api(std::string_view name);

/// Where one server's idea of OpenAI's form differs.
struct Quirks {
  bool max_completion_tokens = false;  ///< the name of max_tokens
  bool reasoning_object = false;       ///< {"reasoning": {"effort", "max_tokens"}}
};

struct Preset {
  std::string_view name;
  Api api = Api::openai;
  std::string_view base_url;
  std::string_view openai_base_url;             ///< with --api openai, where that differs
  std::vector<std::string_view> key_variables;  ///< the first that is set counts
  bool needs_key = true;
  Quirks quirks;
};
std::span<const Preset> presets();

/// The command line's words.
struct EndpointWish {
  std::string provider;  ///< of a preset; empty: whatever answers at base_url
  std::string base_url;  ///< instead of the preset's
  std::string api;       ///< instead of the preset's
  std::string key_variable;
  bool insecure_http = false;  ///< the key may travel unencrypted to another machine
};

struct Endpoint {
  std::string provider;
  Api api = Api::openai;
  std::string base_url;  ///< without a slash at its end
  std::string key;       ///< secret; empty: none is sent
  Quirks quirks;
};

/// Error: one sentence (unknown provider, no key, no address, a key over plain HTTP to another
/// machine …), which never holds a key.
std::expected<Endpoint, std::string> resolve(const EndpointWish& wish, const Secrets& secrets);

}  // namespace kb::llm

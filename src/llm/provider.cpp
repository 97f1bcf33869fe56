#include "llm/provider.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "llm/text.h"

namespace kb::llm {
namespace {

// A server of one's own may ask for a key or not.
const std::vector<Preset>& table() {
  static const std::vector<Preset> presets = {
      {"openai",
       Api::openai,
       "https://api.openai.com/v1",
       "",
       {"OPENAI_API_KEY"},
       true,
       {.max_completion_tokens = true}},
      {"anthropic",
       Api::anthropic,
       "https://api.anthropic.com",
       "https://api.anthropic.com/v1",
       {"ANTHROPIC_API_KEY"},
       true,
       {}},
      {"google",
       Api::google,
       "https://generativelanguage.googleapis.com/v1beta",
       "https://generativelanguage.googleapis.com/v1beta/openai",
       {"GEMINI_API_KEY", "GOOGLE_API_KEY"},
       true,
       {}},
      {"deepseek", Api::openai, "https://api.deepseek.com/v1", "", {"DEEPSEEK_API_KEY"}, true, {}},
      {"together", Api::openai, "https://api.together.xyz/v1", "", {"TOGETHER_API_KEY"}, true, {}},
      {"fireworks",
       Api::openai,
       "https://api.fireworks.ai/inference/v1",
       "",
       {"FIREWORKS_API_KEY"},
       true,
       {}},
      {"openrouter",
       Api::openai,
       "https://openrouter.ai/api/v1",
       "",
       {"OPENROUTER_API_KEY"},
       true,
       {.reasoning_object = true}},
      {"sambanova",
       Api::openai,
       "https://api.sambanova.ai/v1",
       "",
       {"SAMBANOVA_API_KEY"},
       true,
       {}},
      {"vllm", Api::openai, "http://localhost:8000/v1", "", {"VLLM_API_KEY"}, false, {}},
      {"sglang", Api::openai, "http://localhost:30000/v1", "", {"SGLANG_API_KEY"}, false, {}},
      {"ollama", Api::openai, "http://localhost:11434/v1", "", {"OLLAMA_API_KEY"}, false, {}},
      {"litellm", Api::openai, "http://localhost:4000/v1", "", {"LITELLM_API_KEY"}, false, {}},
  };
  return presets;
}

// Not any provider's variable: a key goes to the provider it is of, or where its owner says.
const Preset& custom() {
  static const Preset preset = {"custom", Api::openai, "", "", {"KERNELBENCH_API_KEY"}, false, {}};
  return preset;
}

struct Address {
  std::string url;  // trimmed
  bool encrypted = false;
  bool loopback = false;
};

std::expected<Address, std::string> parse_address(std::string url, Api api) {
  const auto bad = [](const char* what) { return std::unexpected(std::string(what)); };
  Address address;
  std::string_view rest = url;
  if (rest.starts_with("https://")) {
    address.encrypted = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return bad("--base-url begins with https:// or http://");
  }
  // What is quoted may hold a password, so nothing is.
  if (url.find_first_of("?#") != std::string::npos ||
      std::ranges::any_of(url, [](unsigned char c) { return c <= 0x20 || c >= 0x7F; }))
    return bad("--base-url is an address without spaces, ? and #, such as https://host/v1");
  const std::string_view authority = rest.substr(0, rest.find('/'));
  if (authority.find('@') != std::string_view::npos)
    return bad("--base-url holds a user name or password; keys come from the environment");
  std::string_view host = authority;
  if (host.starts_with('[')) {
    host = host.substr(1, host.find(']') - 1);
  } else {
    host = host.substr(0, host.find(':'));
  }
  if (host.empty()) return bad("--base-url names no host");
  address.loopback = host == "localhost" || host.starts_with("127.") || host == "::1";

  // People paste the whole path, or leave its version out where a form has one.
  const auto strip = [&url](std::string_view suffix) {
    if (url.ends_with(suffix)) url.resize(url.size() - suffix.size());
  };
  while (url.ends_with('/')) url.pop_back();
  switch (api) {
    case Api::openai: strip("/chat/completions"); break;
    case Api::anthropic:
      strip("/messages");
      strip("/v1");
      break;
    case Api::google:
      strip("/models");
      if (rest.find('/') == std::string_view::npos) url += "/v1beta";
      break;
  }
  address.url = std::move(url);
  return address;
}

}  // namespace

std::string_view name_of(Api api) {
  switch (api) {
    case Api::openai: return "openai";
    case Api::anthropic: return "anthropic";
    case Api::google: return "google";
  }
  std::abort();
}

std::optional<Api> parse_api(std::string_view name) {
  for (const Api api : {Api::openai, Api::anthropic, Api::google})
    if (name == name_of(api)) return api;
  return std::nullopt;
}

std::span<const Preset> presets() {
  return table();
}

std::expected<Endpoint, std::string> resolve(const EndpointWish& wish, const Secrets& secrets) {
  const Preset* preset = &custom();
  if (!wish.provider.empty() && wish.provider != custom().name) {
    const auto found = std::ranges::find(table(), wish.provider, &Preset::name);
    if (found == table().end()) {
      std::vector<std::string_view> names;
      for (const auto& one : table()) names.push_back(one.name);
      return std::unexpected(
          fmt::format("there is no provider {}: choose one of {}, replay:FOLDER, or give the "
                      "--base-url of any server that speaks OpenAI's form",
                      one_line(wish.provider, 40), fmt::join(names, ", ")));
    }
    preset = &*found;
  } else if (wish.base_url.empty()) {
    return std::unexpected(
        "which model server? give --provider (openai, anthropic, google, vllm …) or --base-url");
  }
  Endpoint endpoint;
  endpoint.provider = preset->name;
  endpoint.quirks = preset->quirks;
  endpoint.api = preset->api;
  if (!wish.api.empty()) {
    const auto api = parse_api(wish.api);
    if (!api) return std::unexpected("--api is one of openai, anthropic, google");
    endpoint.api = *api;
  }
  std::string url = wish.base_url;
  if (url.empty())
    url = endpoint.api == Api::openai && !preset->openai_base_url.empty() ? preset->openai_base_url
                                                                          : preset->base_url;
  auto address = parse_address(std::move(url), endpoint.api);
  if (!address) return std::unexpected(address.error());
  endpoint.base_url = std::move(address->url);

  std::vector<std::string> variables(preset->key_variables.begin(), preset->key_variables.end());
  if (!wish.key_variable.empty()) variables = {wish.key_variable};
  auto key = secrets.find(variables);
  if (!key) return std::unexpected(key.error());
  endpoint.key = std::move(*key);
  if (endpoint.key.empty() && (preset->needs_key || !wish.key_variable.empty()))
    return std::unexpected(
        fmt::format("no key: set {} in the environment, or write a line {}=… into the file .env of "
                    "the current folder",
                    fmt::join(variables, " or "), variables.front()));
  if (!endpoint.key.empty() && !address->encrypted && !address->loopback && !wish.insecure_http)
    return std::unexpected(
        "the key would travel unencrypted to another machine: use an https:// address, or say "
        "--insecure-http if the network between is your own");
  return endpoint;
}

}  // namespace kb::llm

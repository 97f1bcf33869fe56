#include "llm/secrets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "problem/text_file.h"

namespace kb::llm {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

bool is_name(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::ranges::all_of(text,
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

}  // namespace

std::expected<std::map<std::string, std::string>, std::string> parse_dotenv(std::string_view text) {
  std::map<std::string, std::string> values;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    if (line.starts_with("export ")) line = trimmed(line.substr(7));
    const std::size_t equals = line.find('=');
    const std::string_view name = trimmed(line.substr(0, std::min(equals, line.size())));
    if (equals == std::string_view::npos || !is_name(name))
      return std::unexpected(fmt::format(".env: line {} is not of the form KEY=VALUE", number));
    std::string_view value = trimmed(line.substr(equals + 1));
    if (!value.empty() && (value.front() == '"' || value.front() == '\'')) {
      const std::size_t closing = value.find(value.front(), 1);
      if (closing == std::string_view::npos)
        return std::unexpected(fmt::format(".env: line {} has no closing quote", number));
      value = value.substr(1, closing - 1);
    } else if (const std::size_t comment = value.find(" #"); comment != std::string_view::npos) {
      value = trimmed(value.substr(0, comment));
    }
    values[std::string(name)] = value;
  }
  return values;
}

std::expected<Secrets, std::string> Secrets::load(const std::filesystem::path& folder,
                                                  Environment environment) {
  std::error_code error;
  const auto path = folder / ".env";
  if (!std::filesystem::is_regular_file(path, error)) return Secrets(std::move(environment), {});
  const auto text = problem::read_text_file(path);
  if (!text) return std::unexpected(text.error());
  auto values = parse_dotenv(*text);
  if (!values) return std::unexpected(values.error());
  return Secrets(std::move(environment), std::move(*values));
}

std::expected<std::string, std::string> Secrets::find(std::span<const std::string> names) const {
  for (const auto& name : names) {
    const char* set = environment_(name.c_str());
    std::string value = set == nullptr ? "" : std::string(trimmed(set));
    if (value.empty())
      if (const auto found = file_.find(name); found != file_.end()) value = found->second;
    if (value.empty()) continue;
    if (std::ranges::any_of(value, [](unsigned char c) { return c <= 0x20 || c >= 0x7F; }))
      return std::unexpected(
          fmt::format("{} is not a key: it holds white space or characters that no key has", name));
    return value;
  }
  return std::string();
}

}  // namespace kb::llm

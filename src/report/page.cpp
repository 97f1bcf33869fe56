#include "report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "digest/sha256.h"
#include "report/assets.h"

namespace kb::report {
namespace {

// The digest of `text` as a Content-Security-Policy names it.
std::string csp_source(std::string_view text) {
  const std::string hex = sha256_hex(text);
  const auto digit = [&](std::size_t i) {
    return static_cast<unsigned>(hex[i] <= '9' ? hex[i] - '0' : hex[i] - 'a' + 10);
  };
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string base64;
  // Six hex digits are four of base 64; of the 64 hex digits four are left over.
  for (std::size_t i = 0; i < hex.size(); i += 6) {
    unsigned bits = 0;
    for (std::size_t d = 0; d < 6; ++d) bits = bits << 4 | (i + d < hex.size() ? digit(i + d) : 0);
    for (const int shift : {18, 12, 6, 0}) base64 += kAlphabet[bits >> shift & 63];
  }
  base64.back() = '=';
  return fmt::format("'sha256-{}'", base64);
}

std::string sample_blocks(const Document& document) {
  std::string blocks;
  for (std::size_t i = 0; i < document.samples.size(); ++i) {
    blocks += fmt::format("<script type=\"application/json\" id=\"sample-{}\">", i);
    blocks += script_json(document.samples[i]);
    blocks += "</script>\n";
  }
  return blocks;
}

}  // namespace

std::string script_json(const nlohmann::json& json) {
  const std::string plain = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  // What is escaped occurs in strings alone, where an escape means the same.
  std::string safe;
  safe.reserve(plain.size() + plain.size() / 8);
  std::string_view rest = plain;
  while (true) {
    const std::size_t plainly = std::min(rest.find_first_of("<>&\xe2"), rest.size());
    safe += rest.substr(0, plainly);
    rest.remove_prefix(plainly);
    if (rest.empty()) return safe;
    std::size_t length = 1;
    if (rest.starts_with("\xe2\x80\xa8") || rest.starts_with("\xe2\x80\xa9")) {
      safe += rest[2] == '\xa8' ? "\\u2028" : "\\u2029";
      length = 3;
    } else if (rest.front() == '\xe2') {
      safe += rest.front();
    } else {
      safe += rest.front() == '<' ? "\\u003c" : rest.front() == '>' ? "\\u003e" : "\\u0026";
    }
    rest.remove_prefix(length);
  }
}

std::string make_page(const Document& document) {
  const std::string policy = fmt::format(
      "default-src 'none'; script-src {} {} {}; style-src {}; img-src data:; base-uri 'none'; "
      "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
      csp_source(assets::chart()), csp_source(assets::prism()), csp_source(assets::code()),
      csp_source(assets::style()));
  const std::string run = script_json(document.run);
  const std::string samples = sample_blocks(document);
  std::string page;
  page.reserve(run.size() + samples.size() + (std::size_t{1} << 20));
  // In one pass: what is put in is not looked at again.
  for (std::string_view rest = assets::page(); !rest.empty();) {
    const std::size_t begin = rest.find("{{");
    page += rest.substr(0, begin);
    if (begin == std::string_view::npos) break;
    const std::size_t end = rest.find("}}", begin);
    const std::string_view name = rest.substr(begin + 2, end - begin - 2);
    rest.remove_prefix(end + 2);
    if (name == "policy")
      page += policy;
    else if (name == "style")
      page += assets::style();
    else if (name == "licenses")
      page += assets::licenses();
    else if (name == "run")
      page += run;
    else if (name == "samples")
      page += samples;
    else if (name == "chart")
      page += assets::chart();
    else if (name == "prism")
      page += assets::prism();
    else if (name == "code")
      page += assets::code();
    else
      throw std::logic_error("page.html asks for what there is not: " + std::string(name));
  }
  return page;
}

}  // namespace kb::report

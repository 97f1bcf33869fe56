#include "llm/pricing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <sstream>
#include <toml.hpp>

#include "llm/text.h"
#include "problem/text_file.h"

namespace kb::llm {
namespace {

// `model` without "-latest", "-20260922" or "-2026-09-22" at its end; empty when it has none.
std::string_view without_snapshot(std::string_view model) {
  for (const std::string_view form : {"-latest", "-dddddddd", "-dddd-dd-dd"}) {
    if (model.size() <= form.size()) continue;
    const std::string_view end = model.substr(model.size() - form.size());
    const bool equal = std::ranges::equal(end, form, [](char c, char f) {
      return f == 'd' ? std::isdigit(static_cast<unsigned char>(c)) != 0 : c == f;
    });
    if (equal || end == "-latest") return model.substr(0, model.size() - form.size());
  }
  return {};
}

std::expected<double, std::string> amount(const toml::value& value) {
  double number = -1;
  if (value.is_floating()) number = value.as_floating();
  if (value.is_integer()) number = static_cast<double>(value.as_integer());
  if (!std::isfinite(number) || number < 0) return std::unexpected("is not a number of US dollars");
  return number;
}

std::expected<Price, std::string> read_price(const toml::value& entry) {
  if (!entry.is_table()) return std::unexpected("is not a table of prices");
  std::optional<double> input, cached, output;
  for (const auto& [name, value] : entry.as_table()) {
    auto* member = name == "input"          ? &input
                   : name == "cached_input" ? &cached
                   : name == "output"       ? &output
                                            : nullptr;
    if (member == nullptr)
      return std::unexpected(
          fmt::format("has {}, which is none of input, cached_input, output", one_line(name, 40)));
    const auto read = amount(value);
    if (!read) return std::unexpected(fmt::format("{} {}", name, read.error()));
    *member = *read;
  }
  if (!input || !output) return std::unexpected("lacks input or output");
  return Price{*input, cached.value_or(*input), *output};
}

}  // namespace

double cost_usd(const Price& price, const Usage& usage) {
  const auto cached = std::min(usage.cached_input, usage.input);
  return (static_cast<double>(usage.input - cached) * price.input +
          static_cast<double>(cached) * price.cached_input +
          static_cast<double>(usage.output) * price.output) /
         1e6;
}

std::expected<PriceTable, std::string> PriceTable::load(const std::filesystem::path& file) {
  const auto text = problem::read_text_file(file);
  if (!text) return std::unexpected(text.error());
  const std::string shown = one_line(file.string());
  PriceTable table;
  try {
    std::istringstream stream(*text);
    const toml::value root = toml::parse(stream, shown);
    for (const auto& [provider, models] : root.as_table()) {
      if (!models.is_table())
        return std::unexpected(
            fmt::format("{}: {} is not a table of models", shown, one_line(provider, 40)));
      for (const auto& [model, entry] : models.as_table()) {
        const auto price = read_price(entry);
        if (!price)
          return std::unexpected(fmt::format("{}: [{}.\"{}\"] {}", shown, one_line(provider, 40),
                                             one_line(model, 80), price.error()));
        table.prices_[provider + "/" + model] = *price;
      }
    }
  } catch (const std::exception& error) {
    // The library's text shows the place in several lines.
    return std::unexpected(
        fmt::format("{} is not valid TOML: {}", shown, one_line(error.what(), 200)));
  }
  return table;
}

std::optional<Price> PriceTable::find(std::string_view provider, std::string_view model) const {
  for (std::string_view name = model; !name.empty(); name = without_snapshot(name))
    if (const auto found = prices_.find(fmt::format("{}/{}", provider, name));
        found != prices_.end())
      return found->second;
  return std::nullopt;
}

}  // namespace kb::llm

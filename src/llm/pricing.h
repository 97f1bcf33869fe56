// What an answer cost: tokens times prices, from a TOML file that its users can correct.
#pragma once

#include <expected>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "llm/answer.h"

namespace kb::llm {

/// US dollars per million tokens.
struct Price {
  double input = 0;
  double cached_input = 0;  ///< the same as `input` where the file has none
  double output = 0;
};

double cost_usd(const Price& price, const Usage& usage);

class PriceTable {
 public:
  /// Error: one sentence that names the file and what is wrong in it.
  static std::expected<PriceTable, std::string> load(const std::filesystem::path& file);

  /// The price of a provider's model. Snapshots named by a date (-20260922, -2026-09-22) and
  /// -latest have their model's price, unless they have one of their own. Null: not known, which
  /// is not the same as nothing.
  std::optional<Price> find(std::string_view provider, std::string_view model) const;

 private:
  std::map<std::string, Price, std::less<>> prices_;  // by "provider/model"
};

}  // namespace kb::llm

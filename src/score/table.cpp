#include "score/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kb::score {
namespace {

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

// The number of characters, which for what we print is the number of columns.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string markdown_cell(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    // What would become a link by itself.
    if (text.substr(i).starts_with("://") || (c == '.' && text.substr(0, i).ends_with("www")))
      result += '\\';
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '\\':
      case '`':
      case '*':
      case '_':
      case '[':
      case ']':
      case '!':
      case '#':
      case '~':
      case '|':
      case '@':
        result += '\\';
        result += c;
        break;
      default: result += c;
    }
  }
  return result;
}

bool is_number(std::string_view text) {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789.eE+-") == std::string_view::npos &&
         text.front() >= '0' && text.front() <= '9';
}

std::string csv_cell(const std::string& text) {
  std::string cell = text;
  if (!cell.empty() && std::string_view("=+-@").contains(cell.front()) && !is_number(cell))
    cell.insert(0, 1, '\'');
  if (cell.find_first_of(",\"\n\r") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string clean(std::string_view text, std::size_t most) {
  std::string result;
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xc2 && lead < 0xe0 ? 2
                               : lead >= 0xe0 && lead < 0xf0 ? 3
                               : lead >= 0xf0 && lead < 0xf5 ? 4
                                                             : 0;
    std::size_t have = 1;
    while (have < length && i + have < text.size() && continues(text[i + have])) ++have;
    const std::string_view character = text.substr(i, have);
    i += have;
    if (characters == most) return result + "…";
    if (length != have) {
      result += '?';
    } else {
      const bool control = lead < 0x20 || lead == 0x7f ||
                           (lead == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0);
      // U+200E, U+200F, U+2028–U+202E and U+2066–U+2069, and U+061C.
      const bool direction = (character >= "\xe2\x80\x8e" && character <= "\xe2\x80\x8f") ||
                             (character >= "\xe2\x80\xa8" && character <= "\xe2\x80\xae") ||
                             (character >= "\xe2\x81\xa6" && character <= "\xe2\x81\xa9") ||
                             character == "\xd8\x9c";
      if (control || direction) continue;
      result += character;
    }
    ++characters;
  }
  return result;
}

Table::Table(std::vector<std::string> header, std::string alignment)
    : rows_{std::move(header)}, alignment_(std::move(alignment)) {}

void Table::add(std::vector<std::string> row) {
  rows_.push_back(std::move(row));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_[0].size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string result;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - width(row[i]), ' ');
      if (i > 0) line += "  ";
      line += alignment_[i] == 'l' ? row[i] + space : space + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  }
  return result;
}

std::string Table::markdown() const {
  std::string result;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    result += "|";
    for (const auto& cell : rows_[r]) result += " " + markdown_cell(cell) + " |";
    result += "\n";
    if (r > 0) continue;
    result += "|";
    for (const char side : alignment_) result += side == 'l' ? " --- |" : " ---: |";
    result += "\n";
  }
  return result;
}

std::string Table::csv() const {
  std::string result;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) result += (i > 0 ? "," : "") + csv_cell(row[i]);
    result += "\n";
  }
  return result;
}

void Report::add(std::string line) {
  if (!line.empty()) blocks_.emplace_back(std::move(line));
}

void Report::add(const Report& report) {
  blocks_.insert(blocks_.end(), report.blocks_.begin(), report.blocks_.end());
}

std::string Report::text() const {
  std::string result;
  for (const auto& block : blocks_) {
    if (!result.empty()) result += "\n";
    result += std::holds_alternative<Table>(block) ? std::get<Table>(block).text()
                                                   : std::get<std::string>(block) + "\n";
  }
  return result;
}

std::string Report::markdown() const {
  std::string result;
  for (const auto& block : blocks_) {
    if (!result.empty()) result += "\n";
    result += std::holds_alternative<Table>(block)
                  ? std::get<Table>(block).markdown()
                  : markdown_cell(std::get<std::string>(block)) + "\n";
  }
  return result;
}

std::string factor_text(double value) {
  return std::isfinite(value) ? fmt::format("{:.2f}x", value) : "-";
}

}  // namespace kb::score

// Tables and lines, as plain text, Markdown or CSV, whatever the strings in them hold.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kb::score {

/// A name longer than this would push a table off the screen.
inline constexpr std::size_t kMaxCell = 60;

/// A stranger's string, fit for a terminal: no control characters (C0, C1, DEL), none that turn the
/// direction of writing, no broken UTF-8, and cut after `most` characters with "…".
std::string clean(std::string_view text, std::size_t most = kMaxCell);

class Table {
 public:
  /// `alignment` has a letter a column: l or r.
  Table(std::vector<std::string> header, std::string alignment);
  /// As many cells as the header has, each clean().
  void add(std::vector<std::string> row);
  bool empty() const { return rows_.size() == 1; }

  /// Columns aligned by their widest cell, two spaces apart.
  std::string text() const;
  /// A pipe table; nothing in a cell is markup.
  std::string markdown() const;
  /// RFC 4180, with line feeds. A cell that a spreadsheet would take for a formula gets a ' in
  /// front.
  std::string csv() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the first is the header
  std::string alignment_;
};

/// What a command prints: tables and lines, in order.
class Report {
 public:
  void add(Table table) { blocks_.emplace_back(std::move(table)); }
  /// `line` is clean(). An empty one is left out.
  void add(std::string line);
  void add(const Report& report);  ///< its blocks
  std::string text() const;        ///< blocks with an empty line between
  std::string markdown() const;    ///< the same
 private:
  std::vector<std::variant<Table, std::string>> blocks_;
};

/// "2.00x"; "-" for none.
std::string factor_text(double value);

}  // namespace kb::score

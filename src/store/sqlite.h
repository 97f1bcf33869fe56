// SQLite's C interface as two move-only owners, so that no path forgets to close or finalize.
// Nothing here throws.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>

namespace kb::store {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

/// One prepared statement. It borrows the database, which must outlive it.
class Statement {
 public:
  /// Null inside when `sql` cannot be prepared: every other call then returns the error of that.
  Statement(sqlite3* database, std::string_view sql);
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  /// Binds parameter `index`, from 1. The text is borrowed until the statement is reset or
  /// destroyed.
  void bind(int index, std::string_view text);
  void bind(int index, int value);
  /// SQLITE_ROW, SQLITE_DONE or an error code. After an error, go on with reset() only.
  int step();
  void reset();

  /// A column of the current row, from 0; NULL reads as empty or 0.
  std::string text(int column) const;
  int integer(int column) const;

 private:
  sqlite3_stmt* statement_ = nullptr;
  int error_ = SQLITE_OK;  // the first one, of preparing or binding
};

/// Runs statements without results. SQLITE_OK or an error code.
int execute(sqlite3* database, const char* sql);

}  // namespace kb::store

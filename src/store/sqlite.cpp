#include "store/sqlite.h"

namespace kb::store {

Statement::Statement(sqlite3* database, std::string_view sql) {
  error_ =
      sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &statement_, nullptr);
}

void Statement::bind(int index, std::string_view text) {
  // An empty view may have a null pointer, which SQLite would take for NULL.
  const char* bytes = text.empty() ? "" : text.data();
  const int code =
      statement_ == nullptr
          ? SQLITE_OK
          : sqlite3_bind_text64(statement_, index, bytes, text.size(), SQLITE_STATIC, SQLITE_UTF8);
  if (error_ == SQLITE_OK) error_ = code;
}

void Statement::bind(int index, int value) {
  const int code = statement_ == nullptr ? SQLITE_OK : sqlite3_bind_int(statement_, index, value);
  if (error_ == SQLITE_OK) error_ = code;
}

int Statement::step() {
  return error_ != SQLITE_OK ? error_ : sqlite3_step(statement_);
}

void Statement::reset() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  if (statement_ != nullptr) error_ = SQLITE_OK;
}

std::string Statement::text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  const int size = sqlite3_column_bytes(statement_, column);
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(size));
}

int Statement::integer(int column) const {
  return sqlite3_column_int(statement_, column);
}

int execute(sqlite3* database, const char* sql) {
  return sqlite3_exec(database, sql, nullptr, nullptr, nullptr);
}

}  // namespace kb::store

// Durability: a write-ahead log with synchronous=FULL. A commit returns after its log has reached
// the disk, so that what put() acknowledged survives a kill -9 as well as a power cut or a lost
// virtual machine. NORMAL would survive the first only. The price is one fsync an evaluation,
// milliseconds beside its seconds.
//
// Damage: SQLite notices a bad page when it reads it, which may be hours into a run. quick_check at
// the start reads every page (tens of milliseconds for ten thousand evaluations).
#include "store/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <tuple>

#include "store/sqlite.h"

namespace kb::store {
namespace {

// "kben", so that `file` and we can tell our database from others.
constexpr int kApplicationId = 0x6b62656e;
constexpr int kSchemaVersion = 1;
// A writer holds the lock for milliseconds; longer than this means that something is stuck.
constexpr std::chrono::milliseconds kBusyTimeout{30'000};

constexpr const char* kSchema = R"sql(
  CREATE TABLE evaluations (
    id INTEGER PRIMARY KEY,  -- grows with every put: the newest row has the largest
    problem TEXT NOT NULL,
    sample INTEGER NOT NULL,
    problem_hash TEXT NOT NULL,
    candidate_hash TEXT NOT NULL,
    device TEXT NOT NULL,
    settings TEXT NOT NULL,
    verdict TEXT NOT NULL,
    result_json TEXT NOT NULL,
    finished_at TEXT NOT NULL,
    UNIQUE (problem, sample, problem_hash, candidate_hash, device, settings));
)sql";

constexpr std::string_view kColumns =
    "problem, sample, problem_hash, candidate_hash, device, settings, verdict, result_json, "
    "finished_at";

void bind_key(Statement& statement, const Key& key) {
  statement.bind(1, key.problem);
  statement.bind(2, key.sample);
  statement.bind(3, key.problem_hash);
  statement.bind(4, key.candidate_hash);
  statement.bind(5, key.device);
  statement.bind(6, key.settings);
}

Row read_row(const Statement& statement) {
  Row row;
  row.key.problem = statement.text(0);
  row.key.sample = statement.integer(1);
  row.key.problem_hash = statement.text(2);
  row.key.candidate_hash = statement.text(3);
  row.key.device = statement.text(4);
  row.key.settings = statement.text(5);
  row.verdict = statement.text(6);
  row.result_json = statement.text(7);
  row.finished_at = statement.text(8);
  return row;
}

// The sentence for an error code of SQLite. `database` may be null.
std::string sentence(const std::filesystem::path& file, sqlite3* database, int code) {
  const std::string name = file.string();
  const int primary = code & 0xff;
  const int system_error = database == nullptr ? 0 : sqlite3_system_errno(database);
  if (primary == SQLITE_FULL ||
      (primary == SQLITE_IOERR && (system_error == ENOSPC || system_error == EDQUOT))) {
    return fmt::format(
        "the disk is full and {} cannot be written; free some space and run the same command "
        "again, "
        "what was judged before is kept",
        name);
  }
  switch (primary) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return fmt::format(
          "{} is damaged or no database; move it away (with {}-wal, if there is one) and run the "
          "same command again",
          name, file.filename().string());
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return fmt::format(
          "{} cannot be written; check the permissions of the file and of its folder", name);
    case SQLITE_CANTOPEN:
      return fmt::format(
          "{} cannot be opened or created; check that its folder exists and may be written", name);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return fmt::format("{} is locked by another process; wait until that ends and try again",
                         name);
    default: break;
  }
  const char* reason = database == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database);
  return fmt::format("{} cannot be used: {}; check the disk and try again", name, reason);
}

// The one value of a PRAGMA; null when it fails, with the error in the database.
std::optional<int> read_pragma(sqlite3* database, std::string_view sql) {
  Statement statement(database, sql);
  if (statement.step() != SQLITE_ROW) return std::nullopt;
  return statement.integer(0);
}

// Orders "level1/2" before "level1/19": runs of digits by value, all else by bytes.
bool natural_less(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const auto run = [&](std::string_view text, std::size_t& at) {
        while (at < text.size() && text[at] == '0') ++at;
        const std::size_t begin = at;
        while (at < text.size() && is_digit(text[at])) ++at;
        return text.substr(begin, at - begin);
      };
      const std::string_view x = run(a, i);
      const std::string_view y = run(b, j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
    }
  }
  if ((i < a.size()) != (j < b.size())) return j < b.size();
  return a < b;
}

}  // namespace

struct Store::Impl {
  std::filesystem::path file;
  Database database;
  // A statement is bound, stepped and read in several calls: one thread at a time.
  std::mutex mutex;

  std::string error(int code) const { return sentence(file, database.get(), code); }
  int prepare_file();
  bool ends_in_part_of_a_page() const;
  std::string problem;  // set by prepare_file when no code says it
};

// Settings, version and schema. SQLITE_OK, or an error code, or SQLITE_ERROR with `problem` set.
int Store::Impl::prepare_file() {
  sqlite3* db = database.get();
  // Kept rather than demanded: file systems without shared memory stay with a rollback journal,
  // which is as safe and slower.
  Statement wal(db, "PRAGMA journal_mode=WAL");
  if (const int code = wal.step(); code != SQLITE_ROW) return code;
  wal.reset();
  if (const int code = execute(db, "PRAGMA synchronous=FULL"); code != SQLITE_OK) return code;

  // IMMEDIATE: of two processes that create one file, the second waits here and then finds the
  // schema.
  if (const int code = execute(db, "BEGIN IMMEDIATE"); code != SQLITE_OK) return code;
  const auto give_up = [&](int code) {
    execute(db, "ROLLBACK");
    return code;
  };
  const auto version = read_pragma(db, "PRAGMA user_version");
  const auto application = read_pragma(db, "PRAGMA application_id");
  const auto tables = read_pragma(db, "SELECT count(*) FROM sqlite_schema");
  if (!version || !application || !tables) return give_up(sqlite3_extended_errcode(db));
  if (*version == 0 && *application == 0 && *tables == 0) {
    const std::string header = fmt::format("PRAGMA application_id={}; PRAGMA user_version={};",
                                           kApplicationId, kSchemaVersion);
    for (const char* sql : {kSchema, header.c_str(), "COMMIT"}) {
      if (const int code = execute(db, sql); code != SQLITE_OK) return give_up(code);
    }
    return SQLITE_OK;
  }
  execute(db, "ROLLBACK");
  if (*application != kApplicationId) {
    problem =
        fmt::format("{} is the database of another program; choose another file", file.string());
    return SQLITE_ERROR;
  }
  if (*version > kSchemaVersion) {
    problem = fmt::format(
        "{} was made by a later version of kernelbench; update this one or choose another file",
        file.string());
    return SQLITE_ERROR;
  }
  if (ends_in_part_of_a_page()) {
    // A checkpoint that met a full disk leaves the same, and its log repairs it.
    execute(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    if (ends_in_part_of_a_page()) return SQLITE_CORRUPT;
  }
  Statement check(db, "PRAGMA quick_check(1)");
  if (const int code = check.step(); code != SQLITE_ROW) return code;
  return check.text(0) == "ok" ? SQLITE_OK : SQLITE_CORRUPT;
}

// True for a file that was cut in the middle of a page. SQLite would read zeros for what is gone,
// and quick_check looks at structure, not at text.
bool Store::Impl::ends_in_part_of_a_page() const {
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  const auto page_size = read_pragma(database.get(), "PRAGMA page_size");
  return !error && page_size && *page_size > 0 &&
         size % static_cast<std::uintmax_t>(*page_size) != 0;
}

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

std::expected<Store, std::string> Store::open(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    return std::unexpected(fmt::format("{} is a folder; the results need a file", file.string()));
  }
  auto impl = std::make_unique<Impl>();
  impl->file = file;
  sqlite3* raw = nullptr;
  // A path that begins with "file:" is a path, not a URI; SQLITE_OPEN_URI is off unless the library
  // was built otherwise.
  const std::string path = file.is_absolute() ? file.string() : "./" + file.string();
  const int code =
      sqlite3_open_v2(path.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  impl->database.reset(raw);
  if (code != SQLITE_OK) return std::unexpected(impl->error(code));
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, static_cast<int>(kBusyTimeout.count()));

  // SQLite does not wait for the lock when that could deadlock (two that change the journal mode at
  // once): try again here.
  const auto deadline = std::chrono::steady_clock::now() + kBusyTimeout;
  int ready = impl->prepare_file();
  while ((ready & 0xff) == SQLITE_BUSY && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ready = impl->prepare_file();
  }
  if (!impl->problem.empty()) return std::unexpected(impl->problem);
  if (ready != SQLITE_OK) return std::unexpected(impl->error(ready));
  return Store(std::move(impl));
}

std::expected<std::optional<Row>, std::string> Store::find(const Key& key) {
  const std::lock_guard lock(impl_->mutex);
  Statement statement(
      impl_->database.get(),
      fmt::format(
          "SELECT {} FROM evaluations WHERE problem=?1 AND sample=?2 AND problem_hash=?3 AND "
          "candidate_hash=?4 AND device=?5 AND settings=?6 AND verdict<>?7",
          kColumns));
  bind_key(statement, key);
  statement.bind(7, kInfrastructureError);
  const int code = statement.step();
  if (code == SQLITE_ROW) return read_row(statement);
  if (code == SQLITE_DONE) return std::nullopt;
  return std::unexpected(impl_->error(code));
}

std::expected<void, std::string> Store::put(const Row& row) {
  const std::lock_guard lock(impl_->mutex);
  // One statement is one transaction.
  Statement statement(
      impl_->database.get(),
      fmt::format(
          "INSERT OR REPLACE INTO evaluations ({}) "
          "SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, strftime('%Y-%m-%dT%H:%M:%SZ', 'now') "
          "WHERE ?7<>?9 OR NOT EXISTS (SELECT 1 FROM evaluations WHERE problem=?1 AND sample=?2 "
          "AND problem_hash=?3 AND candidate_hash=?4 AND device=?5 AND settings=?6 AND "
          "verdict<>?9)",
          kColumns));
  bind_key(statement, row.key);
  statement.bind(7, row.verdict);
  statement.bind(8, row.result_json);
  statement.bind(9, kInfrastructureError);
  const int code = statement.step();
  if (code != SQLITE_DONE) return std::unexpected(impl_->error(code));
  return {};
}

std::expected<std::vector<Row>, std::string> Store::rows() {
  const std::lock_guard lock(impl_->mutex);
  Statement statement(impl_->database.get(),
                      fmt::format("SELECT {} FROM evaluations WHERE id IN "
                                  "(SELECT max(id) FROM evaluations GROUP BY problem, sample)",
                                  kColumns));
  std::vector<Row> rows;
  int code = statement.step();
  for (; code == SQLITE_ROW; code = statement.step()) rows.push_back(read_row(statement));
  if (code != SQLITE_DONE) return std::unexpected(impl_->error(code));
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    if (a.key.problem != b.key.problem) return natural_less(a.key.problem, b.key.problem);
    return a.key.sample < b.key.sample;
  });
  return rows;
}

}  // namespace kb::store

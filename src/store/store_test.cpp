#include "store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "store/sqlite.h"

namespace kb::store {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

Row make_row(const std::string& problem, int sample, const std::string& verdict = "correct") {
  Row row;
  row.key = {problem, sample, "problem-hash", "candidate-hash", "cpu", "{}"};
  row.verdict = verdict;
  row.result_json = R"({"verdict":")" + verdict + "\"}";
  return row;
}

template <typename T>
std::string error_of(const std::expected<T, std::string>& result) {
  return result ? "no error" : result.error();
}

std::string read(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

// Runs `body` in a child and returns its exit status, or -1 when a signal ended it.
int in_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class StoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "kb_store_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    file_ = folder_ / "kernelbench.db";
  }
  void TearDown() override { fs::remove_all(folder_); }

  Store open() {
    auto store = Store::open(file_);
    EXPECT_TRUE(store) << error_of(store);
    return std::move(store).value();
  }
  // A closed store of `count` rows, some pages long.
  void fill(int count) {
    Store store = open();
    for (int i = 0; i < count; ++i) {
      Row row = make_row("level1/" + std::to_string(i + 1), 0);
      row.result_json = std::string(500, 'x');
      ASSERT_TRUE(store.put(row));
    }
  }
  fs::path folder_, file_;
};

TEST_F(StoreTest, KeepsWhatItWasGiven) {
  Row row = make_row("level1/19", 3, "wrong_value");
  row.result_json = std::string("{\"message\":\"a\0b '\xff\"}", 20);
  {
    Store store = open();
    ASSERT_TRUE(store.put(row));
  }
  Store store = open();
  const auto found = store.find(row.key).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->key.problem, "level1/19");
  EXPECT_EQ(found->key.sample, 3);
  EXPECT_EQ(found->key.settings, "{}");
  EXPECT_EQ(found->verdict, "wrong_value");
  EXPECT_EQ(found->result_json, row.result_json);
  EXPECT_THAT(found->finished_at,
              MatchesRegex("20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z"));
}

TEST_F(StoreTest, FindNeedsTheWholeKey) {
  Store store = open();
  const Row row = make_row("level1/19", 0);
  ASSERT_TRUE(store.put(row));
  for (const auto& change : std::vector<std::function<void(Key&)>>{
           [](Key& key) { key.problem = "level1/1"; }, [](Key& key) { key.sample = 1; },
           [](Key& key) { key.problem_hash = "x"; }, [](Key& key) { key.candidate_hash = "x"; },
           [](Key& key) { key.device = "cuda:0"; }, [](Key& key) { key.settings = ""; }}) {
    Key key = row.key;
    change(key);
    EXPECT_FALSE(store.find(key).value());
  }
  EXPECT_TRUE(store.find(row.key).value());
}

TEST_F(StoreTest, PutReplacesAnEqualKey) {
  Store store = open();
  ASSERT_TRUE(store.put(make_row("level1/19", 0, "timeout")));
  ASSERT_TRUE(store.put(make_row("level1/19", 0, "correct")));
  EXPECT_EQ(store.find(make_row("level1/19", 0).key).value()->verdict, "correct");
  EXPECT_EQ(store.rows().value().size(), 1u);
}

TEST_F(StoreTest, InfrastructureErrorsAreTriedAgain) {
  Store store = open();
  const Key key = make_row("level1/19", 0).key;
  ASSERT_TRUE(store.put(make_row("level1/19", 0, "infrastructure_error")));
  EXPECT_FALSE(store.find(key).value());
  EXPECT_EQ(store.rows().value().size(), 1u);
  ASSERT_TRUE(store.put(make_row("level1/19", 0, "correct")));
  // The result of another process stays when ours failed.
  ASSERT_TRUE(store.put(make_row("level1/19", 0, "infrastructure_error")));
  EXPECT_EQ(store.find(key).value()->verdict, "correct");
}

TEST_F(StoreTest, RowsAreTheNewestInNaturalOrder) {
  Store store = open();
  for (const auto& [problem, sample] :
       std::vector<std::pair<std::string, int>>{{"level1/19", 1},
                                                {"level10/1", 0},
                                                {"level2/1", 0},
                                                {"level1/19", 0},
                                                {"level1/2", 0},
                                                {"my/problem.py", 0}}) {
    ASSERT_TRUE(store.put(make_row(problem, sample, "timeout")));
  }
  Row again = make_row("level1/2", 0, "correct");
  again.key.candidate_hash = "changed";
  ASSERT_TRUE(store.put(again));
  std::vector<std::string> found;
  const auto rows = store.rows().value();
  for (const Row& row : rows)
    found.push_back(row.key.problem + "#" + std::to_string(row.key.sample) + " " + row.verdict);
  EXPECT_THAT(found,
              ElementsAre("level1/2#0 correct", "level1/19#0 timeout", "level1/19#1 timeout",
                          "level2/1#0 timeout", "level10/1#0 timeout", "my/problem.py#0 timeout"));
}

TEST_F(StoreTest, ServesThreads) {
  Store store = open();
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        const Row row = make_row("level1/" + std::to_string(i + 1), t);
        if (!store.put(row) || !store.find(row.key).value()) ++failures;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(store.rows().value().size(), 100u);
}

TEST_F(StoreTest, ServesTwoProcesses) {
  // All open and create the file at once.
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    const pid_t pid = fork();
    if (pid == 0) {
      auto store = Store::open(file_);
      if (!store) _exit(1);
      for (int i = 0; i < 25; ++i) {
        if (!store->put(make_row("level1/" + std::to_string(i + 1), c))) _exit(2);
      }
      _exit(0);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(open().rows().value().size(), 100u);
}

TEST_F(StoreTest, KillNineLosesNothingAcknowledged) {
  for (int round = 0; round < 5; ++round) {
    int pipe_fds[2];
    ASSERT_EQ(pipe(pipe_fds), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      auto store = Store::open(file_);
      if (!store) _exit(1);
      for (int i = 0;; ++i) {
        Row row = make_row("level1/" + std::to_string(i + 1), round);
        row.result_json = std::string(3000, 'x');
        if (!store->put(row)) _exit(2);
        // Acknowledged: the parent may count on it.
        if (::write(pipe_fds[1], &i, sizeof i) != sizeof i) _exit(3);
      }
    }
    close(pipe_fds[1]);
    int last = -1;
    for (int count = 0; count < 10 + 7 * round; ++count) {
      if (::read(pipe_fds[0], &last, sizeof last) != sizeof last) break;
    }
    kill(pid, SIGKILL);
    while (::read(pipe_fds[0], &last, sizeof last) == sizeof last) {
    }
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
    close(pipe_fds[0]);
    ASSERT_GE(last, 9);

    Store store = open();  // runs quick_check
    for (int i = 0; i <= last; ++i) {
      const auto found = store.find(make_row("level1/" + std::to_string(i + 1), round).key).value();
      ASSERT_TRUE(found) << i;
      EXPECT_EQ(found->result_json.size(), 3000u);
    }
  }
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(file_.c_str(), &raw), SQLITE_OK);
  const Database database(raw);
  Statement check(raw, "PRAGMA integrity_check");
  ASSERT_EQ(check.step(), SQLITE_ROW);
  EXPECT_EQ(check.text(0), "ok");
}

TEST_F(StoreTest, GarbageIsRefusedAndLeftAlone) {
  for (const std::string& bytes : {std::string("hello"), std::string(10'000, 'g'),
                                   std::string("SQLite format 3\0", 16) + std::string(5000, '\xab'),
                                   std::string(4096, '\0')}) {
    write(file_, bytes);
    EXPECT_THAT(error_of(Store::open(file_)),
                AllOf(HasSubstr("damaged or no database"), HasSubstr("move it away")));
    EXPECT_EQ(read(file_), bytes);
  }
}

TEST_F(StoreTest, TruncationIsFoundWhenOpening) {
  fill(100);
  const std::string whole = read(file_);
  ASSERT_GT(whole.size(), 40'000u);
  for (const std::size_t size : {whole.size() - 1, whole.size() - 1000, whole.size() - 4096,
                                 whole.size() / 2, std::size_t{8192}, std::size_t{4096},
                                 std::size_t{1000}, std::size_t{100}, std::size_t{50}}) {
    fs::remove(folder_ / "kernelbench.db-wal");
    fs::remove(folder_ / "kernelbench.db-shm");
    write(file_, whole.substr(0, size));
    EXPECT_THAT(error_of(Store::open(file_)), HasSubstr("damaged or no database")) << size;
  }
}

TEST_F(StoreTest, AnOverwrittenPageIsFoundWhenOpening) {
  fill(100);
  const std::string whole = read(file_);
  int found = 0;
  for (std::size_t page = 1; page < whole.size() / 4096; ++page) {
    std::string damaged = whole;
    damaged.replace(page * 4096, 4096, std::string(4096, '\x5a'));
    write(file_, damaged);
    if (!Store::open(file_)) ++found;
  }
  EXPECT_EQ(found, static_cast<int>(whole.size() / 4096) - 1);
}

TEST_F(StoreTest, OtherDatabasesAreRefused) {
  {
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(file_.c_str(), &raw), SQLITE_OK);
    const Database database(raw);
    ASSERT_EQ(execute(raw, "CREATE TABLE songs (name)"), SQLITE_OK);
  }
  EXPECT_THAT(error_of(Store::open(file_)), HasSubstr("another program"));
  fs::remove(file_);
  fill(1);
  {
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(file_.c_str(), &raw), SQLITE_OK);
    const Database database(raw);
    ASSERT_EQ(execute(raw, "PRAGMA user_version=2"), SQLITE_OK);
  }
  EXPECT_THAT(error_of(Store::open(file_)), HasSubstr("later version"));
}

TEST_F(StoreTest, MissingFolderAndFolder) {
  EXPECT_THAT(error_of(Store::open(folder_ / "none/kernelbench.db")),
              HasSubstr("check that its folder exists"));
  EXPECT_THAT(error_of(Store::open(folder_)), HasSubstr("is a folder"));
}

// What a user who may not write sees. As root, permissions do not hold: a child becomes nobody.
TEST_F(StoreTest, ReadOnlyFolderAndFile) {
  fill(1);
  const bool root = geteuid() == 0;
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read |
                               fs::perms::others_exec);
  fs::permissions(file_, fs::perms::owner_read | fs::perms::others_read);
  EXPECT_EQ(in_child([&] {
              if (root && setuid(65534) != 0) return 9;
              if (error_of(Store::open(file_)).find("check the permissions") == std::string::npos &&
                  error_of(Store::open(file_)).find("check that its folder") == std::string::npos)
                return 1;
              return error_of(Store::open(folder_ / "new.db"))
                                 .find("check that its folder exists and may be written") ==
                             std::string::npos
                         ? 2
                         : 0;
            }),
            0);
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(StoreTest, FullDisk) {
  const fs::path disk = folder_ / "disk";
  fs::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=256k") != 0)
    GTEST_SKIP() << "needs the right to mount a tmpfs";
  {
    auto store = Store::open(disk / "kernelbench.db");
    ASSERT_TRUE(store) << error_of(store);
    int kept = 0;
    std::string error;
    for (; kept < 1000; ++kept) {
      Row row = make_row("level1/" + std::to_string(kept + 1), 0);
      row.result_json = std::string(3000, 'x');
      const auto put = store->put(row);
      if (!put) {
        error = put.error();
        break;
      }
    }
    EXPECT_THAT(error, HasSubstr("the disk is full"));
    EXPECT_GT(kept, 5);
    EXPECT_EQ(store->rows().value().size(), static_cast<std::size_t>(kept));
    // With space again, the same store goes on.
    ASSERT_EQ(mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT, "size=4m"), 0);
    EXPECT_TRUE(store->put(make_row("level2/1", 0)));
    EXPECT_EQ(store->rows().value().size(), static_cast<std::size_t>(kept) + 1);
  }
  {
    auto again = Store::open(disk / "kernelbench.db");
    EXPECT_TRUE(again) << error_of(again);
  }
  // A disk that was full before the store was made.
  ASSERT_EQ(umount(disk.c_str()), 0);
  ASSERT_EQ(mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k"), 0);
  write(disk / "filler", std::string(65'536, 'x'));
  EXPECT_THAT(error_of(Store::open(disk / "kernelbench.db")), HasSubstr("the disk is full"));
  EXPECT_EQ(umount(disk.c_str()), 0);
}

TEST_F(StoreTest, APathLikeAUriIsAPath) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  EXPECT_TRUE(Store::open("file:a.db?mode=memory"));
  EXPECT_TRUE(Store::open(":memory:"));
  fs::current_path(before);
  EXPECT_TRUE(fs::exists(folder_ / "file:a.db?mode=memory"));
  EXPECT_TRUE(fs::exists(folder_ / ":memory:"));
}

}  // namespace
}  // namespace kb::store

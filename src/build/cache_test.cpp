#include "build/cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <thread>

#include "build/build.h"
#include "build/lock.h"
#include "build/temporary_folder.h"
#include "digest/sha256.h"

namespace kb::build {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using namespace std::chrono_literals;

std::vector<fs::path> list(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  return paths;
}

// Runs `body` in a child process, which ends with its result.
pid_t in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return child;
}

int exit_code(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

void wait_for(const fs::path& path) {
  for (int i = 0; i < 500 && !fs::exists(path); ++i) std::this_thread::sleep_for(10ms);
  ASSERT_TRUE(fs::exists(path));
}

class CacheTest : public ::testing::Test {
 protected:
  Cache open(std::uint64_t max_bytes = 1 << 30, std::chrono::seconds keep_recent = 0s) {
    auto cache = Cache::open({root / "cache", max_bytes, keep_recent});
    if (!cache) throw std::runtime_error(cache.error());
    return std::move(*cache);
  }
  // A build that leaves one file with `contents`, and counts itself.
  Cache::Build build(std::string contents = "library") {
    return [this, contents](Workplace& workplace) -> std::expected<Outcome, std::string> {
      ++builds;
      if (!write_file(workplace.build_folder() / "out", contents, 0644, false)) {
        return std::unexpected("the test's build cannot write");
      }
      if (auto adopted = workplace.adopt("out", "kernel.so", 1 << 30); !adopted) {
        return std::unexpected(adopted.error().text);
      }
      return Outcome{"ok", "log", 12.5, true};
    };
  }
  std::string read(const Entry& entry) {
    return read_file(entry.files.at(0).path, 1 << 30).value_or("");
  }

  TemporaryFolder root;
  const std::string key = sha256_hex("key");
  std::atomic<int> builds = 0;
};

TEST_F(CacheTest, BuildsOnceAndThenHits) {
  const Cache cache = open();
  auto first = cache.get(key, build());
  ASSERT_TRUE(first) << first.error();
  EXPECT_FALSE(first->cached);
  EXPECT_EQ(read(*first), "library");
  EXPECT_EQ(first->files[0].path, root / "cache" / key.substr(0, 2) / key / "kernel.so");
  EXPECT_EQ(fs::status(first->files[0].path).permissions(), fs::perms(0444));

  auto second = open().get(key, build("other"));
  ASSERT_TRUE(second) << second.error();
  EXPECT_TRUE(second->cached);
  EXPECT_EQ(second->status, "ok");
  EXPECT_EQ(second->log, "log");
  EXPECT_EQ(second->build_ms, 12.5);
  EXPECT_EQ(read(*second), "library");
  EXPECT_EQ(builds, 1);
  EXPECT_TRUE(list(root / "cache/tmp").empty());
}

TEST_F(CacheTest, AFailureIsAnEntryAndATimeOutIsNot) {
  const Cache cache = open();
  auto failing = [&](bool keep) {
    return [this, keep](Workplace&) -> std::expected<Outcome, std::string> {
      ++builds;
      return Outcome{keep ? "compile_error" : "timeout", "words", 1, keep};
    };
  };
  EXPECT_EQ(cache.get(key, failing(false))->status, "timeout");
  EXPECT_EQ(cache.get(key, failing(true))->status, "compile_error");
  auto hit = cache.get(key, build());
  EXPECT_EQ(hit->status, "compile_error");
  EXPECT_EQ(hit->log, "words");
  EXPECT_TRUE(hit->files.empty());
  EXPECT_TRUE(hit->cached);
  EXPECT_EQ(builds, 2);
}

TEST_F(CacheTest, AnErrorOfTheBuildIsPassedOnAndLeavesNothing) {
  const Cache cache = open();
  auto entry = cache.get(key, [](Workplace&) -> std::expected<Outcome, std::string> {
    return std::unexpected("no luck");
  });
  ASSERT_FALSE(entry);
  EXPECT_EQ(entry.error(), "no luck");
  EXPECT_TRUE(list(root / "cache/tmp").empty());
  EXPECT_FALSE(fs::exists(cache.entry_folder(key)));
}

TEST_F(CacheTest, AdoptTellsWhoseFaultItIs) {
  auto entry = open().get(key, [&](Workplace& workplace) -> std::expected<Outcome, std::string> {
    const fs::path folder = workplace.build_folder();
    fs::create_symlink("/etc/passwd", folder / "link");
    EXPECT_TRUE(write_file(folder / "large", "12345", 0644, false));
    for (const char* name : {"link", "missing", "large"}) {
      auto adopted = workplace.adopt(name, "x.so", 4);
      EXPECT_FALSE(adopted);
      EXPECT_TRUE(adopted.error().candidates_fault) << adopted.error().text;
      EXPECT_THAT(adopted.error().text, HasSubstr(name));
      EXPECT_EQ(adopted.error().text.find(root.path()), std::string::npos);
    }
    EXPECT_TRUE(workplace.adopt("large", "y.so", 5));
    auto ours = workplace.adopt("large", "y.so", 5);  // exists
    EXPECT_FALSE(ours);
    EXPECT_FALSE(ours.error().candidates_fault);
    return Outcome{"ok", "", 0, true};
  });
  EXPECT_TRUE(entry) << entry.error();
}

TEST_F(CacheTest, ThreadsWithOneKeyBuildOnce) {
  const Cache cache = open();
  std::vector<std::thread> threads;
  std::atomic<int> hits = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      auto entry = cache.get(key, [&](Workplace& workplace) {
        std::this_thread::sleep_for(50ms);
        return build()(workplace);
      });
      ASSERT_TRUE(entry) << entry.error();
      EXPECT_EQ(read(*entry), "library");
      if (entry->cached) ++hits;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(builds, 1);
  EXPECT_EQ(hits, 7);
}

TEST_F(CacheTest, ProcessesWithOneKeyBuildOnce) {
  open();
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(in_child([&] {
      auto entry = open().get(key, [&](Workplace& workplace) {
        std::this_thread::sleep_for(100ms);
        return build()(workplace);
      });
      return !entry ? 9 : entry->cached ? 1 : 0;
    }));
  }
  int built = 0;
  for (const pid_t child : children) {
    const int code = exit_code(child);
    EXPECT_LE(code, 1);
    built += code == 0;
  }
  EXPECT_EQ(built, 1);
}

TEST_F(CacheTest, DifferentKeysDoNotWaitForEachOther) {
  const Cache cache = open();
  auto outer = cache.get(key, [&](Workplace& workplace) {
    auto inner = cache.get(sha256_hex("other"), build());
    EXPECT_TRUE(inner);
    return build()(workplace);
  });
  EXPECT_TRUE(outer);
  EXPECT_EQ(builds, 2);
}

TEST_F(CacheTest, AKilledBuilderIsSweptAndTheNextOneBuilds) {
  open();
  const pid_t child = in_child([&] {
    static_cast<void>(open().get(key, [&](Workplace& workplace) {
      fs::create_directories(workplace.build_folder() / "half/done");
      static_cast<void>(write_file(root / "started", "", 0644, false));
      ::pause();
      return build()(workplace);
    }));
    return 0;
  });
  wait_for(root / "started");
  // While it lives, its folder is left alone, and others' work goes on.
  EXPECT_EQ(list(root / "cache/tmp").size(), 2u);
  const Cache cache = open();
  EXPECT_TRUE(cache.get(sha256_hex("other"), build()));
  EXPECT_EQ(list(root / "cache/tmp").size(), 2u);

  std::atomic<bool> waited = false;
  std::thread waiter([&] {
    auto entry = cache.get(key, build());
    EXPECT_TRUE(entry && !entry->cached);
    EXPECT_TRUE(waited) << "built beside a living builder";
  });
  std::this_thread::sleep_for(100ms);
  waited = true;
  ::kill(child, SIGKILL);
  EXPECT_EQ(exit_code(child), 1000 + SIGKILL);
  waiter.join();
  EXPECT_TRUE(list(root / "cache/tmp").empty());
  EXPECT_EQ(builds, 2);
}

TEST_F(CacheTest, OpeningSweeps) {
  open();
  fs::create_directories(root / "cache/tmp/build-1-0-0/build/x");
  ASSERT_TRUE(write_file(root / "cache/tmp/build-1-0-0.lock", "", 0644, false));
  fs::create_directories(root / "cache/tmp/damaged-1-0-0/x");
  ASSERT_TRUE(write_file(root / "cache/tmp/file", "", 0644, false));
  open();
  EXPECT_TRUE(list(root / "cache/tmp").empty());
}

// Damages an entry and expects it to be built anew, once.
class DamageTest : public CacheTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(DamageTest, IsRepaired) {
  const Cache cache = open();
  const auto entry = cache.get(key, build());
  ASSERT_TRUE(entry);
  const fs::path library = entry->files[0].path;
  const fs::path folder = library.parent_path();
  const fs::path manifest = folder / "manifest.json";
  const std::string how = GetParam();
  if (how == "changed library") {
    fs::permissions(library, fs::perms(0644));
    ASSERT_TRUE(fs::remove(library));
    ASSERT_TRUE(write_file(library, "librarx", 0444, false));
  } else if (how == "truncated library") {
    fs::permissions(library, fs::perms(0644));
    fs::resize_file(library, 3);
  } else if (how == "longer library") {
    fs::permissions(library, fs::perms(0644));
    fs::resize_file(library, 3000);
  } else if (how == "missing library") {
    fs::remove(library);
  } else if (how == "truncated manifest") {
    fs::permissions(manifest, fs::perms(0644));
    fs::resize_file(manifest, fs::file_size(manifest) / 2);
  } else if (how == "empty manifest") {
    fs::permissions(manifest, fs::perms(0644));
    fs::resize_file(manifest, 0);
  } else if (how == "missing manifest") {
    fs::remove(manifest);
  } else if (how == "another entry's manifest") {
    const auto other = cache.get(sha256_hex("other"), build());
    fs::remove(manifest);
    fs::copy(other->files[0].path.parent_path() / "manifest.json", manifest);
    builds = 1;
  } else if (how == "symbolic link for a library") {
    fs::rename(library, root / "moved.so");
    fs::create_symlink(root / "moved.so", library);
  } else if (how == "symbolic link for the entry") {
    fs::rename(folder, root / "moved");
    fs::create_directory_symlink(root / "moved", folder);
  } else if (how == "file for a folder") {
    fs::remove_all(folder);
    ASSERT_TRUE(write_file(folder, "", 0644, false));
  } else if (how == "empty folder") {
    fs::remove_all(folder);
    fs::create_directory(folder);
  }
  const auto again = cache.get(key, build());
  ASSERT_TRUE(again) << again.error();
  EXPECT_FALSE(again->cached);
  EXPECT_EQ(read(*again), "library");
  EXPECT_EQ(builds, 2);
  EXPECT_TRUE(cache.get(key, build())->cached);
  EXPECT_TRUE(list(root / "cache/tmp").empty());
}

INSTANTIATE_TEST_SUITE_P(CacheTest, DamageTest,
                         testing::Values("changed library", "truncated library", "longer library",
                                         "missing library", "truncated manifest", "empty manifest",
                                         "missing manifest", "another entry's manifest",
                                         "symbolic link for a library",
                                         "symbolic link for the entry", "file for a folder",
                                         "empty folder"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::ranges::replace_if(
                               name, [](char c) { return c == ' ' || c == '\''; }, '_');
                           return name;
                         });

// Runs `body` in a child that is an ordinary user (when we are root: nobody).
int as_ordinary_user(const fs::path& folder, const std::function<int()>& body) {
  if (::getuid() == 0 && ::chmod(folder.c_str(), 0777) != 0) return -1;
  return exit_code(in_child([&] {
    if (::getuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return -1;
    return body();
  }));
}

// For the children, which cannot use EXPECT: prints what is not as it should be.
int check(bool good, const std::string& what) {
  if (!good) std::fprintf(stderr, "child: %s\n", what.c_str());
  return good ? 0 : 1;
}

TEST_F(CacheTest, AnOrdinaryUserRepairsAnEntryWithoutPermissions) {
  EXPECT_EQ(as_ordinary_user(root.path(),
                             [&] {
                               const Cache cache = open();
                               const auto entry = cache.get(key, build());
                               if (!entry) return check(false, entry.error());
                               ::chmod(cache.entry_folder(key).c_str(), 0);
                               const auto again = cache.get(key, build());
                               if (!again) return check(false, again.error());
                               ::chmod(again->files[0].path.c_str(), 0);
                               const auto third = cache.get(key, build());
                               return check(
                                   third && builds == 3 && list(root / "cache/tmp").empty(),
                                   "not repaired");
                             }),
            0);
}

TEST_F(CacheTest, ADamagedEntryOfAnotherUserIsAClearError) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root";
  const Cache cache = open();
  ASSERT_TRUE(cache.get(key, build()));
  fs::permissions(cache.entry_folder(key), fs::perms::none);
  for (const char* name : {"", "tmp", "locks"})
    fs::permissions(root / "cache" / name, fs::perms::all);
  EXPECT_EQ(as_ordinary_user(
                root.path(),
                [&] {
                  const auto entry = cache.get(key, build());
                  if (entry) return check(false, "no error");
                  std::fprintf(stderr, "%s\n", entry.error().c_str());
                  return check(entry.error().find(cache.entry_folder(key)) != std::string::npos &&
                                   entry.error().find("remove it") != std::string::npos,
                               entry.error());
                }),
            0);
}

TEST_F(CacheTest, AReadOnlyCacheServesWhatItHasAndIsAClearErrorOtherwise) {
  const Cache cache = open();
  ASSERT_TRUE(cache.get(key, build()));
  if (::getuid() != 0) {
    for (const char* name : {"cache/tmp", "cache/locks", "cache"}) {
      fs::permissions(root / name, fs::perms(0555));
    }
  }
  EXPECT_EQ(as_ordinary_user(
                root.path(),
                [&] {
                  const Cache here = open();
                  const auto hit = here.get(key, build());
                  if (!hit || !hit->cached) return check(false, "no hit");
                  const auto miss = here.get(sha256_hex("other"), build());
                  if (miss) return check(false, "no error");
                  std::fprintf(stderr, "%s\n", miss.error().c_str());
                  return check(miss.error().find((root / "cache").string()) != std::string::npos &&
                                   miss.error().find("another cache folder") != std::string::npos,
                               miss.error());
                }),
            0);
}

TEST_F(CacheTest, AFolderThatCannotBeMadeIsAClearError) {
  ASSERT_TRUE(write_file(root / "file", "", 0644, false));
  for (const fs::path& path : {root / "file", root / "file/cache"}) {
    const auto cache = Cache::open({.directory = path});
    ASSERT_FALSE(cache);
    EXPECT_THAT(cache.error(), HasSubstr(path.string()));
  }
}

TEST_F(CacheTest, AFullDiskIsAClearErrorAndNothingIsLost) {
  fs::create_directory(root / "cache");
  if (::mount("tmpfs", (root / "cache").c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "cannot mount a small tmpfs";
  }
  {
    const Cache cache = open();
    ASSERT_TRUE(cache.get(key, build()));
    // The build's own file fits, its copy in the entry does not.
    const auto entry = cache.get(sha256_hex("large"), build(std::string(700'000, 'x')));
    ASSERT_FALSE(entry);
    EXPECT_THAT(entry.error(), HasSubstr("the disk is full"));
    EXPECT_THAT(entry.error(), HasSubstr((root / "cache").string()));
    EXPECT_TRUE(list(root / "cache/tmp").empty());
    EXPECT_TRUE(cache.get(key, build())->cached);
    EXPECT_TRUE(cache.get(sha256_hex("small"), build()));
  }
  ::umount2((root / "cache").c_str(), MNT_DETACH);
}

TEST_F(CacheTest, AnEmptiedCacheIsMadeAnew) {
  const Cache cache = open();
  ASSERT_TRUE(cache.get(key, build()));
  fs::remove_all(root / "cache");
  const auto entry = cache.get(key, build());
  ASSERT_TRUE(entry) << entry.error();
  EXPECT_FALSE(entry->cached);
}

TEST_F(CacheTest, TrimmingDropsTheLeastRecentlyUsed) {
  const std::string contents(100'000, 'x');
  const auto age = [](const fs::path& path, int hours) {
    timespec times[2] = {};
    times[0].tv_sec = times[1].tv_sec = ::time(nullptr) - hours * 3600;
    ::utimensat(AT_FDCWD, path.c_str(), times, 0);
  };
  const Cache cache = open(250'000, 3600s);
  std::vector<std::string> keys;
  for (int i = 0; i < 4; ++i) {
    keys.push_back(sha256_hex(std::to_string(i)));
    ASSERT_TRUE(cache.get(keys.back(), build(contents)));
  }
  cache.trim();
  for (const std::string& each : keys) EXPECT_TRUE(fs::exists(cache.entry_folder(each)));  // recent

  for (int i = 0; i < 4; ++i) age(cache.entry_folder(keys[static_cast<std::size_t>(i)]), 10 - i);
  EXPECT_TRUE(cache.get(keys[0], build())->cached);  // the oldest is used again
  {
    const auto in_use = FileLock::shared(root / "cache/locks" / keys[1]);
    cache.trim();
  }
  EXPECT_TRUE(fs::exists(cache.entry_folder(keys[0])));
  EXPECT_TRUE(fs::exists(cache.entry_folder(keys[1]))) << "dropped under a lock";
  EXPECT_FALSE(fs::exists(cache.entry_folder(keys[2])));
  EXPECT_FALSE(fs::exists(root / "cache/locks" / keys[2]));
  EXPECT_FALSE(fs::exists(cache.entry_folder(keys[3])));
  EXPECT_TRUE(list(root / "cache/tmp").empty());
}

TEST_F(CacheTest, AnEntryMayHaveAnotherName) {
  const std::string name = sha256_hex("name");
  {
    Cache cache = open();
    EXPECT_FALSE(cache.linked(name));
    cache.link(name, key);
    EXPECT_FALSE(cache.linked(name)) << "there is no such entry";
    ASSERT_TRUE(cache.get(key, build()));
    cache.link(name, key);
    EXPECT_EQ(cache.linked(name), key);
    const std::string other = sha256_hex("other");
    ASSERT_TRUE(cache.get(other, build()));
    cache.link(name, other);
    EXPECT_EQ(cache.linked(name), other);
    cache.link(name, key);
  }
  fs::copy(root / "cache", root / "copy", fs::copy_options::recursive);
  auto copy = Cache::open({root / "copy"});
  ASSERT_TRUE(copy) << copy.error();
  EXPECT_EQ(copy->linked(name), key);
  ASSERT_TRUE(write_file(root / "copy/links" / sha256_hex("x"), "../../etc", 0644, false));
  EXPECT_FALSE(copy->linked(sha256_hex("x")));
}

TEST_F(CacheTest, NamesOfDroppedEntriesAreDropped) {
  const std::string name = sha256_hex("name");
  Cache cache = open();
  ASSERT_TRUE(cache.get(key, build()));
  cache.link(name, key);
  ASSERT_TRUE(write_file(root / "cache/links/link-1-2", key, 0644, false));  // of one killed
  cache.trim();
  EXPECT_EQ(cache.linked(name), key);
  EXPECT_EQ(list(root / "cache/links").size(), 1u);
  Cache small = open(0);
  small.trim();
  EXPECT_FALSE(fs::exists(small.entry_folder(key)));
  EXPECT_TRUE(fs::is_empty(root / "cache/links"));
}

TEST_F(CacheTest, GettingTrimsNowAndThen) {
  const Cache cache = open(1'000'000, 0s);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(cache.get(sha256_hex(std::to_string(i)), build(std::string(100'000, 'x'))));
  }
  EXPECT_LE(measure_tree(root / "cache", {1 << 30, 10'000}).bytes, 1'300'000u);
}

TEST_F(CacheTest, SurvivesManyProcessesThatTrimAndKillEachOther) {
  open();
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    children.push_back(in_child([&, i] {
      const Cache cache = open(20'000, 0s);  // so small that everything is dropped at once
      for (int round = 0; round < 60; ++round) {
        const std::string contents = std::to_string((round * 7 + i) % 5);
        auto entry = cache.get(sha256_hex(contents), build(contents + std::string(9000, 'x')));
        if (!entry) return check(false, entry.error());
        if (round == 30 && i == 0) ::raise(SIGKILL);
        if (round % 10 == i) cache.trim();
      }
      return 0;
    }));
  }
  for (std::size_t i = 0; i < children.size(); ++i) {
    EXPECT_EQ(exit_code(children[i]), i == 0 ? 1000 + SIGKILL : 0);
  }
  open();
  EXPECT_TRUE(list(root / "cache/tmp").empty());
}

}  // namespace
}  // namespace kb::build

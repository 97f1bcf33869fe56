#include "build/cache.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <random>
#include <system_error>

#include "build/lock.h"
#include "build/manifest.h"
#include "digest/sha256.h"

namespace kb::build {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMaxManifestBytes = 1 << 20;
constexpr auto kTrimInterval = std::chrono::minutes(10);
constexpr const char* kManifest = "manifest.json";
constexpr const char* kOwnerSuffix = ".lock";

std::string error_text(int error) {
  return std::error_code(error, std::generic_category()).message();
}

// One sentence for a failure of ours, with what to do about it.
std::string sentence(const fs::path& path, int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return fmt::format(
          "the disk is full: cannot write {} in the build cache; free some space, or use a cache "
          "folder on another disk",
          path.string());
    case EACCES:
    case EPERM:
    case EROFS:
      return fmt::format(
          "no permission to write {} in the build cache ({}): make the folder writable for this "
          "user, or use another cache folder",
          path.string(), error_text(error));
    default:
      return fmt::format(
          "cannot use {} in the build cache ({}): remove it, or use another cache folder",
          path.string(), error_text(error));
  }
}

std::unexpected<std::string> failure(const fs::path& path, int error) {
  return std::unexpected(sentence(path, error));
}

bool not_writable(int error) {
  return error == EACCES || error == EPERM || error == EROFS;
}

// A name that nobody else has, for a folder in tmp/.
std::string fresh_name(std::string_view purpose) {
  static std::atomic<std::uint64_t> counter = 0;
  std::random_device random;
  return fmt::format("{}-{}-{}-{:08x}", purpose, ::getpid(), counter++, random());
}

std::chrono::system_clock::time_point to_time(const timespec& time) {
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec)));
}

std::vector<fs::path> children(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  while (!error && entry != fs::end(entry)) {
    paths.push_back(entry->path());
    entry.increment(error);
  }
  return paths;
}

}  // namespace

// ---- Workplace
// -----------------------------------------------------------------------------------

std::expected<void, Workplace::Refusal> Workplace::adopt(const fs::path& relative,
                                                         const std::string& name,
                                                         std::uint64_t max_bytes) {
  auto refuse = [&](std::string_view why) {
    return std::unexpected(
        Refusal{true, fmt::format("the build's output {} {}", relative.string(), why)});
  };
  auto ours = [](const fs::path& path, int error) {
    return std::unexpected(Refusal{false, sentence(path, error)});
  };
  auto folder = open_folder(build_folder_);
  if (!folder) return ours(build_folder_, folder.error());
  auto file = open_beneath(folder->get(), relative);
  if (!file) {
    if (file.error() == ENOENT) return refuse("does not exist");
    if (file.error() == EINVAL || file.error() == ELOOP || file.error() == ENOTDIR ||
        file.error() == ENXIO) {
      return refuse("is not a regular file of its own");
    }
    return refuse(fmt::format("cannot be read ({})", error_text(file.error())));
  }
  const fs::path to = entry_folder_ / name;
  auto digest = copy_file(file->get(), to, 0444, max_bytes);
  if (!digest) {
    const auto [error, reading] = digest.error();
    if (reading && error == EFBIG) {
      return refuse(fmt::format("is larger than {} MiB", max_bytes >> 20));
    }
    return ours(to, error);
  }
  files_.push_back({name, std::move(*digest)});
  return {};
}

void Workplace::forget() {
  for (const File& file : files_) ::unlink((entry_folder_ / file.name).c_str());
  files_.clear();
}

// ---- Cache
// ---------------------------------------------------------------------------------------

struct Cache::Impl {
  Options options;
  std::atomic<std::uint64_t> bytes_added = 0;  // since this process last trimmed

  fs::path tmp() const { return options.directory / "tmp"; }
  fs::path lock_path(const std::string& key) const { return options.directory / "locks" / key; }
  fs::path link_path(const std::string& name) const { return options.directory / "links" / name; }
  fs::path entry_folder(const std::string& key) const {
    return options.directory / key.substr(0, 2) / key;
  }

  enum class State { hit, missing, damaged };
  State look_up(const std::string& key, Entry& entry) const;
  std::expected<void, std::string> set_aside(const fs::path& folder) const;
  std::expected<Entry, std::string> make(const std::string& key, const Build& build);
  std::expected<Entry, std::string> commit(const std::string& key, const fs::path& prepared,
                                           const Workplace& workplace, Outcome outcome);
  std::expected<void, std::string> make_folders() const;
  bool time_to_trim() const;
  bool drop(const std::string& key, const fs::path& folder) const;
};

Cache::Cache(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Cache::Cache(Cache&&) noexcept = default;
Cache::~Cache() = default;

fs::path Cache::entry_folder(const std::string& key) const {
  return impl_->entry_folder(key);
}

std::expected<Cache, std::string> Cache::open(Options options) {
  std::error_code error;
  options.directory = fs::absolute(options.directory, error).lexically_normal();
  if (error) return failure(options.directory, error.value());
  Cache cache(std::make_unique<Impl>(std::move(options)));
  if (auto made = cache.impl_->make_folders(); !made) return std::unexpected(made.error());
  cache.sweep();
  return cache;
}

std::expected<void, std::string> Cache::Impl::make_folders() const {
  std::error_code error;
  fs::create_directories(options.directory, error);
  if (error || !fs::is_directory(options.directory, error)) {
    return std::unexpected(
        fmt::format("cannot make the build cache folder {} ({}): use another cache folder",
                    options.directory.string(), error ? error.message() : "it is not a folder"));
  }
  for (const fs::path& folder : {tmp(), options.directory / "locks", options.directory / "links"}) {
    if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST && !not_writable(errno)) {
      return failure(folder, errno);
    }
  }
  return {};
}

Cache::Impl::State Cache::Impl::look_up(const std::string& key, Entry& entry) const {
  const fs::path path = entry_folder(key);
  auto folder = open_folder(path);
  if (!folder) return folder.error() == ENOENT ? State::missing : State::damaged;
  // Before the files are checked, so that a trim which is about to drop the entry sees it in use.
  ::futimens(folder->get(), nullptr);
  auto manifest_file = open_beneath(folder->get(), kManifest);
  if (!manifest_file) return State::damaged;
  auto text = read_file(manifest_file->get(), kMaxManifestBytes);
  if (!text) return State::damaged;
  auto manifest = parse_manifest(*text);
  if (!manifest || manifest->key != key) return State::damaged;
  entry = Entry{.status = std::move(manifest->status),
                .log = std::move(manifest->log),
                .build_ms = manifest->build_ms,
                .files = {},
                .cached = true};
  for (const Workplace::File& expected : manifest->files) {
    auto file = open_beneath(folder->get(), expected.name);
    if (!file) return State::damaged;
    auto digest = digest_file(file->get(), expected.digest.size);
    if (!digest || *digest != expected.digest) return State::damaged;
    entry.files.push_back({expected.name, path / expected.name});
  }
  return State::hit;
}

std::expected<Entry, std::string> Cache::get(const std::string& key, const Build& build) const {
  Entry entry;
  {
    auto lock = FileLock::shared(impl_->lock_path(key));
    if (!lock && lock.error() == ENOENT) {  // somebody emptied the cache meanwhile
      if (auto made = impl_->make_folders(); !made) return std::unexpected(made.error());
      lock = FileLock::shared(impl_->lock_path(key));
    }
    // A cache that cannot be written to needs no lock: nobody changes it.
    if (!lock && !not_writable(lock.error()) && lock.error() != ENOENT) {
      return failure(impl_->lock_path(key), lock.error());
    }
    if (impl_->look_up(key, entry) == Impl::State::hit) return entry;
    if (!lock) return failure(impl_->lock_path(key), lock.error());
  }
  std::expected<Entry, std::string> made;
  {
    auto lock = FileLock::exclusive(impl_->lock_path(key));
    if (!lock) return failure(impl_->lock_path(key), lock.error());
    const Impl::State state = impl_->look_up(key, entry);  // another may have been first
    if (state == Impl::State::hit) return entry;
    if (state == Impl::State::damaged) {
      if (auto aside = impl_->set_aside(impl_->entry_folder(key)); !aside) {
        return std::unexpected(aside.error());
      }
    }
    sweep();
    made = impl_->make(key, build);
  }
  if (impl_->time_to_trim()) trim();
  return made;
}

std::expected<void, std::string> Cache::Impl::set_aside(const fs::path& folder) const {
  const fs::path aside = tmp() / fresh_name("damaged");
  struct stat status {};
  if (::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    ::chmod(folder.c_str(), 0700);  // renaming a folder needs the right to write to it
  }
  if (::rename(folder.c_str(), aside.c_str()) != 0 && errno != ENOENT) {
    return std::unexpected(fmt::format(
        "the build cache entry {} is damaged and cannot be moved aside ({}): remove it, or use "
        "another cache folder",
        folder.string(), error_text(errno)));
  }
  static_cast<void>(remove_tree(aside));  // or the next sweep does
  return {};
}

std::expected<Entry, std::string> Cache::Impl::make(const std::string& key, const Build& build) {
  // The lock comes before the folder and goes after it: a folder whose lock is missing or can be
  // taken is nobody's. (A lock on the folder itself would do, but not on NFS.)
  const fs::path place = tmp() / fresh_name("build");
  const fs::path owner_path = fs::path(place) += kOwnerSuffix;
  const auto owner = FileLock::exclusive(owner_path);
  if (!owner) return failure(owner_path, owner.error());
  struct Cleaner {
    const fs::path& place;
    const fs::path& owner_path;
    ~Cleaner() {
      if (remove_tree(place)) ::unlink(owner_path.c_str());  // otherwise a sweep tries again
    }
  } cleaner{place, owner_path};
  if (::mkdir(place.c_str(), 0700) != 0) return failure(place, errno);

  Workplace workplace(place / "build", place / "entry");
  for (const char* name : {"build", "entry"}) {
    if (::mkdir((place / name).c_str(), 0777) != 0) return failure(place / name, errno);
  }
  auto outcome = build(workplace);
  if (!outcome) return std::unexpected(std::move(outcome.error()));
  if (!outcome->keep) {
    return Entry{std::move(outcome->status), std::move(outcome->log), outcome->build_ms, {}, false};
  }
  return commit(key, place / "entry", workplace, std::move(*outcome));
}

std::expected<Entry, std::string> Cache::Impl::commit(const std::string& key,
                                                      const fs::path& prepared,
                                                      const Workplace& workplace, Outcome outcome) {
  const auto now =
      std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  Manifest manifest{.key = key,
                    .status = std::move(outcome.status),
                    .log = std::move(outcome.log),
                    .created = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now)),
                    .build_ms = outcome.build_ms,
                    .files = workplace.files()};
  const std::string text = serialize(manifest);
  if (auto written = write_file(prepared / kManifest, text, 0444, true); !written) {
    return failure(prepared / kManifest, written.error());
  }

  const fs::path folder = entry_folder(key);
  if (::mkdir(folder.parent_path().c_str(), 0777) != 0 && errno != EEXIST) {
    return failure(folder.parent_path(), errno);
  }
  if (::rename(prepared.c_str(), folder.c_str()) != 0) return failure(folder, errno);

  Entry entry{std::move(manifest.status), std::move(manifest.log), outcome.build_ms, {}, false};
  std::uint64_t bytes = text.size();
  for (const Workplace::File& file : manifest.files) {
    entry.files.push_back({file.name, folder / file.name});
    bytes += file.digest.size;
  }
  bytes_added += bytes;
  return entry;
}

void Cache::link(const std::string& name, const std::string& key) const {
  std::error_code error;
  if (linked(name) == key || !fs::exists(entry_folder(key), error)) return;
  const fs::path path = impl_->link_path(name);
  const fs::path fresh = impl_->link_path(fresh_name("link"));
  if (!write_file(fresh, key, 0444, false) || ::rename(fresh.c_str(), path.c_str()) != 0) {
    ::unlink(fresh.c_str());
  }
}

std::optional<std::string> Cache::linked(const std::string& name) const {
  auto key = read_file(impl_->link_path(name), 64);
  if (!key || !is_sha256_hex(*key)) return std::nullopt;
  return *key;
}

// ---- keeping the folder small
// --------------------------------------------------------------------

// Best effort: there will be another sweep.
void Cache::sweep() const {
  for (const fs::path& path : children(impl_->tmp())) {
    fs::path place = path;
    if (path.extension() == kOwnerSuffix) {
      place.replace_extension();
    } else if (struct stat owner{};
               ::lstat((fs::path(path) += kOwnerSuffix).c_str(), &owner) == 0) {
      continue;  // its owner's turn comes in this loop
    }
    if (place == path) {
      static_cast<void>(remove_tree(place));
    } else if (auto abandoned = FileLock::try_exclusive(path); abandoned && remove_tree(place)) {
      ::unlink(path.c_str());
    }
  }
}

bool Cache::Impl::time_to_trim() const {
  if (bytes_added > options.max_bytes / 16) return true;
  struct stat last {};
  return ::stat((options.directory / "trim.lock").c_str(), &last) != 0 ||
         std::chrono::system_clock::now() - to_time(last.st_mtim) > kTrimInterval;
}

// Drops one entry unless it has been used since it was chosen, or somebody is using it.
bool Cache::Impl::drop(const std::string& key, const fs::path& folder) const {
  auto lock = FileLock::try_exclusive(lock_path(key));
  if (!lock) return false;
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0 ||
      std::chrono::system_clock::now() - to_time(status.st_mtim) < options.keep_recent) {
    return false;
  }
  const fs::path aside = tmp() / fresh_name("dropped");
  if (::rename(folder.c_str(), aside.c_str()) != 0) return false;
  ::unlink(lock_path(key).c_str());  // as its holder; see lock.h
  static_cast<void>(remove_tree(aside));
  return true;
}

void Cache::trim() const {
  const fs::path marker = impl_->options.directory / "trim.lock";
  auto lock = FileLock::try_exclusive(marker);
  if (!lock) return;
  ::futimens(lock->fd(), nullptr);
  impl_->bytes_added = 0;
  sweep();

  struct Found {
    std::string key;
    fs::path folder;
    std::chrono::system_clock::time_point used;
    std::uint64_t bytes;
  };
  std::vector<Found> found;
  std::uint64_t total = 0;
  for (const fs::path& group : children(impl_->options.directory)) {
    if (group.filename().string().size() != 2) continue;
    for (const fs::path& folder : children(group)) {
      const std::string key = folder.filename();
      struct stat status {};
      if (!is_sha256_hex(key) || ::lstat(folder.c_str(), &status) != 0) continue;
      constexpr auto kAll = std::numeric_limits<std::uint64_t>::max();
      const std::uint64_t bytes = measure_tree(folder, {kAll, kAll}).bytes;
      found.push_back({key, folder, to_time(status.st_mtim), bytes});
      total += bytes;
    }
  }
  std::ranges::sort(found, {}, &Found::used);
  const auto now = std::chrono::system_clock::now();
  for (const Found& entry : found) {
    if (total <= impl_->options.max_bytes || now - entry.used < impl_->options.keep_recent) break;
    if (impl_->drop(entry.key, entry.folder)) total -= entry.bytes;
  }

  // Locks of builds that left no entry.
  for (const fs::path& path : children(impl_->options.directory / "locks")) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 ||
        now - to_time(status.st_mtim) < std::chrono::hours(24) ||
        fs::exists(impl_->entry_folder(path.filename()))) {
      continue;
    }
    if (auto unused = FileLock::try_exclusive(path)) ::unlink(path.c_str());
  }

  // Other names of dropped entries, and what a process left that was killed while it made one.
  for (const fs::path& path : children(impl_->options.directory / "links")) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 ||
        now - to_time(status.st_mtim) < impl_->options.keep_recent) {
      continue;
    }
    const std::string name = path.filename();
    const auto key = linked(name);
    if (!is_sha256_hex(name) || !key || !fs::exists(impl_->entry_folder(*key))) {
      ::unlink(path.c_str());
    }
  }
}

}  // namespace kb::build

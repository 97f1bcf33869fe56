#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "sandbox/process_tree.h"
#include "sandbox/unique_fd.h"

namespace kb::sandbox {
namespace {

using std::chrono::milliseconds;
using testing::AnyOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr milliseconds patience(30'000);

std::string own_path() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

/// One of the programs in test_programs_test.cpp.
Command program(const std::string& name, const std::vector<std::string>& arguments = {}) {
  Command command;
  // In a plain process too, where nothing is bound.
  command.argv = {own_path(), "--program", name};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.read_only = {{own_path(), "", false}};
  // The leak check of a sanitizer's build wants ptrace, which the filter refuses.
  command.environment = {{"ASAN_OPTIONS", "detect_leaks=0"}};
  command.limits.memory_bytes = 256 << 20;
  command.limits.max_processes = 64;
  command.limits.tmpfs_bytes = 4 << 20;
  return command;
}

/// Cgroup folders of this process, in all hierarchies.
std::vector<std::string> own_cgroups() {
  std::vector<std::string> found;
  std::error_code error;
  const std::string prefix = fmt::format("kernelbench-{}-", ::getpid());
  for (std::filesystem::recursive_directory_iterator
           it("/sys/fs/cgroup", std::filesystem::directory_options::skip_permission_denied, error),
       end;
       !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with(prefix)) found.push_back(it->path().string());
  }
  return found;
}

std::vector<pid_t> own_children() {
  return children_of(::getpid());
}

/// What fork_many prints when the limit of 64 tasks stopped it. A sanitizer has a thread in each
/// child.
bool is_bounded(const std::string& output) {
  return output == "63 children" || output == "32 children" || output == "31 children";
}

class SandboxTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!launcher.will_sandbox()) GTEST_SKIP() << launcher.unavailable_reason();
  }
  void TearDown() override {
    EXPECT_THAT(own_cgroups(), testing::IsEmpty());
    EXPECT_THAT(own_children(), testing::IsEmpty());
  }
  Process start(const Command& command) {
    auto process = launcher.start(command);
    EXPECT_TRUE(process) << process.error();
    return std::move(*process);
  }
  /// Output of a program that ends by itself.
  std::string output_of(const Command& command) {
    Process process = start(command);
    EXPECT_TRUE(process.wait(patience));
    return process.output();
  }

  Launcher launcher{Mode::automatic};
};

TEST_F(SandboxTest, RunsAProgramAndTellsItsExitStatus) {
  Process process = start(program("hello"));
  EXPECT_TRUE(process.sandboxed());
  const auto exit = process.wait(patience);
  ASSERT_TRUE(exit);
  EXPECT_TRUE(exit->exited);
  EXPECT_EQ(exit->code, 7);
  EXPECT_FALSE(exit->out_of_memory);
  EXPECT_EQ(process.output(), "hello\n");
  EXPECT_FALSE(process.program_pid());
  EXPECT_FALSE(process.freeze());
}

TEST_F(SandboxTest, TellsASignal) {
  Process process = start(program("crash"));
  const auto exit = process.wait(patience);
  ASSERT_TRUE(exit);
  EXPECT_FALSE(exit->exited);
  EXPECT_EQ(exit->code, SIGABRT);
}

constexpr const char* kSourceFile = KERNELBENCH_SOURCE_DIR "/CMakeLists.txt";

TEST_F(SandboxTest, ShowsNothingOfTheHostButTheSystem) {
  // Parents of the bound executable are there, but empty.
  const std::string output = output_of(program(
      "try_to_read", {"/root/.bashrc", "/home/user", "/etc/shadow", kSourceFile, "/usr/bin/env"}));
  EXPECT_THAT(output, HasSubstr("/root/.bashrc: No such file"));
  EXPECT_THAT(output, HasSubstr("/home/user: No such file"));
  EXPECT_THAT(output, HasSubstr("/etc/shadow: No such file"));
  EXPECT_THAT(output, HasSubstr(std::string(kSourceFile) + ": No such file"));
  EXPECT_THAT(output, HasSubstr("/usr/bin/env: worked"));
}

TEST_F(SandboxTest, WritesToTmpOnly) {
  const std::string output =
      output_of(program("try_to_write", {"/tmp/x", "/home/nobody/x", "/dev/shm/x", "/dev/null",
                                         "/x", "/usr/x", "/etc/passwd", "/dev/x"}));
  for (const char* path : {"/tmp/x", "/home/nobody/x", "/dev/shm/x", "/dev/null"}) {
    EXPECT_THAT(output, HasSubstr(fmt::format("{}: worked", path)));
  }
  for (const char* path : {"\n/x", "/usr/x", "/etc/passwd", "/dev/x"}) {
    EXPECT_THAT(output, HasSubstr(fmt::format("{}: Read-only", path)));
  }
  EXPECT_THAT(output, AnyOf(HasSubstr("chmod: Read-only"), HasSubstr("chmod: Operation not perm")));
}

TEST_F(SandboxTest, WritesToAWritableFolder) {
  std::string folder = testing::TempDir() + "kernelbench-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  Command command = program("fill_file", {"/build/file"});
  command.limits.max_file_bytes = 128 << 10;
  command.writable = {{folder, "/build", false}};
  command.read_only.push_back({"/no/such/folder", "", true});
  EXPECT_EQ(output_of(command), "128 KiB: File too large");
  EXPECT_EQ(std::filesystem::file_size(folder + "/file"), 128u << 10);
  std::filesystem::remove_all(folder);
}

TEST_F(SandboxTest, NamesAMissingFolder) {
  Command command = program("hello");
  command.read_only.push_back({"/no/such/folder", "", false});
  const auto process = launcher.start(command);
  ASSERT_FALSE(process);
  EXPECT_THAT(process.error(), HasSubstr("/no/such/folder, which does not exist"));
}

TEST_F(SandboxTest, TellsWhyAProgramDidNotStart) {
  Command command = program("hello");
  command.argv[0] = "/no/such/program";
  const auto process = launcher.start(command);
  ASSERT_FALSE(process);
  EXPECT_THAT(process.error(), HasSubstr("No such file"));
}

TEST_F(SandboxTest, LimitsTheTmpfs) {
  Command command = program("fill_file", {"/tmp/file"});
  const std::string output = output_of(command);
  // The kernel counts free pages per CPU and may give up a little early.
  EXPECT_THAT(output, HasSubstr(" KiB: No space left on device"));
  EXPECT_LE(std::stoi(output), 4096);
  EXPECT_GE(std::stoi(output), 2048);
}

TEST_F(SandboxTest, RefusesWhatReachesOut) {
  const std::string output = output_of(program("refused_calls"));
  EXPECT_THAT(output, HasSubstr("unix: worked"));
  EXPECT_THAT(output, HasSubstr("clone3: Function not implemented"));
  for (const char* call : {"inet", "inet6", "netlink", "ptrace", "unshare", "mount", "bpf",
                           "io_uring_setup", "perf_event_open", "clone"}) {
    EXPECT_THAT(output, HasSubstr(fmt::format("{}: Operation not permitted", call)));
  }
  EXPECT_THAT(output, HasSubstr("init's memory: No such file"));
  EXPECT_THAT(output, HasSubstr("own memory: Read-only"));
  EXPECT_THAT(output, Not(HasSubstr("kernel setting: worked")));
}

// With a device, /proc/self has to be writable. Nothing else there is.
TEST_F(SandboxTest, AWorkerOnADeviceWritesInProcToItselfAlone) {
  Command command = program("refused_calls");
  command.device_nodes = {"/dev/null"};
  const std::string output = output_of(command);
  EXPECT_THAT(output, HasSubstr("init's memory: No such file"));
  EXPECT_THAT(output, HasSubstr("own memory: worked"));
  EXPECT_THAT(output, AnyOf(HasSubstr("kernel setting: Read-only"),
                            HasSubstr("kernel setting: Permission denied")));
}

TEST_F(SandboxTest, PassesNothingOfTheEnvironment) {
  ::setenv("KERNELBENCH_TEST_SECRET", "secret", 1);
  Command command = program("list_environment");
  command.environment.insert(command.environment.end(),
                             {{"GIVEN", "a value=with sign"}, {"EMPTY", ""}});
  std::string output = output_of(command);
  // bubblewrap itself sets PWD.
  std::vector<std::string> lines;
  std::istringstream stream(output);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  EXPECT_THAT(
      lines, testing::UnorderedElementsAre("ASAN_OPTIONS=detect_leaks=0", "GIVEN=a value=with sign",
                                           "EMPTY=", "PWD=/tmp"));
}

TEST_F(SandboxTest, PassesOnlyTheListedDescriptors) {
  const UniqueFd leaked(::open("/etc/hostname", O_RDONLY));  // without O_CLOEXEC
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  ASSERT_EQ(::write(pipe[1], "word", 4), 4);
  Command command = program("list_fds");
  command.fds = {{pipe[0], 5}, {pipe[1], 3}};
  EXPECT_EQ(output_of(command), "0 1 2 3 5 5 says word\n");
  ::close(pipe[0]);
  ::close(pipe[1]);
  command.fds = {{0, 2}};
  EXPECT_FALSE(launcher.start(command));
}

TEST_F(SandboxTest, BoundsTheNumberOfProcesses) {
  Process process = start(program("fork_many"));
  const auto exit = process.wait(patience);
  ASSERT_TRUE(exit);
  // Either the kernel refuses the 64th, or (root without a pids cgroup) the watch ends it all.
  EXPECT_TRUE(!exit->exited || is_bounded(process.output())) << process.output();
}

TEST_F(SandboxTest, KillsAForkBomb) {
  Process process = start(program("fork_bomb"));
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_LE(process.pids().size(), 64u);
  process.kill();
  EXPECT_TRUE(process.pids().empty());
}

TEST_F(SandboxTest, EndsAMemoryHog) {
  Command command = program("hog_memory");
  command.limits.memory_bytes = 64 << 20;
  Process process = start(command);
  const auto exit = process.wait(patience);
  ASSERT_TRUE(exit);
  EXPECT_TRUE(exit->out_of_memory || (exit->exited && exit->code == 3)) << exit->code;
}

TEST_F(SandboxTest, BoundsTheOutput) {
  Process process = start(program("flood"));
  const auto exit = process.wait(patience);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0);
  const std::string output = process.output();
  EXPECT_LT(output.size(), 65u * 1024);
  EXPECT_THAT(output.substr(0, 100), StartsWith("the beginning\n"));
  EXPECT_THAT(output.substr(output.size() - 100), EndsWith("the end\n"));
  EXPECT_TRUE(output.find(" bytes left out ...]\n") != std::string::npos);
}

TEST_F(SandboxTest, KillLeavesNothing) {
  Process process = start(program("sleep"));
  const auto pid = process.program_pid();
  ASSERT_TRUE(pid);
  EXPECT_EQ(process.pids(), std::vector<pid_t>{*pid});
  EXPECT_FALSE(process.wait(milliseconds(10)));
  process.kill();
  EXPECT_FALSE(is_alive(*pid));
  const auto exit = process.wait(milliseconds(0));
  ASSERT_TRUE(exit);
  EXPECT_FALSE(exit->exited);
  EXPECT_EQ(exit->code, SIGKILL);
  process.kill();
}

TEST_F(SandboxTest, DestructorKills) {
  pid_t pid = 0;
  {
    Process process = start(program("sleep"));
    pid = process.program_pid().value_or(0);
    ASSERT_TRUE(is_alive(pid));
    Process other = start(program("sleep"));
    process = std::move(other);
    EXPECT_FALSE(is_alive(pid));
    pid = process.program_pid().value_or(0);
  }
  EXPECT_FALSE(is_alive(pid));
}

TEST_F(SandboxTest, EndsWithItsProgram) {
  Process process = start(program("abandon"));
  pollfd entry{process.pidfd(), POLLIN, 0};
  EXPECT_EQ(::poll(&entry, 1, 30'000), 1);
  ASSERT_TRUE(process.wait(milliseconds(0)));
  process.kill();
  EXPECT_TRUE(process.pids().empty());
}

TEST_F(SandboxTest, OutlivesTheThreadThatStartedIt) {
  std::optional<Process> process;
  std::thread([&] { process = start(program("sleep")); }).join();
  EXPECT_FALSE(process->wait(milliseconds(100)));
}

TEST_F(SandboxTest, OutlivesItsLauncher) {
  std::optional<Process> process;
  {
    Launcher short_lived(Mode::require);
    process = std::move(*short_lived.start(program("sleep")));
  }
  EXPECT_FALSE(process->wait(milliseconds(100)));
}

TEST_F(SandboxTest, StartsFromManyThreadsAtOnce) {
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      if (output_of(program("hello")) == "hello\n") ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 8);
}

TEST_F(SandboxTest, StartsFast) {
  Command command;
  command.argv = {"/bin/true"};
  std::vector<double> start_ms, all_ms;
  for (int i = 0; i < 50; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto elapsed_ms = [&] {
      return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
          .count();
    };
    {
      Process process = start(command);
      start_ms.push_back(elapsed_ms());
      ASSERT_TRUE(process.wait(patience));
    }
    all_ms.push_back(elapsed_ms());
  }
  std::ranges::sort(start_ms);
  std::ranges::sort(all_ms);
  fmt::print("start: median {:.1f} ms, p10 {:.1f}; start to removal: median {:.1f} ms\n",
             start_ms[25], start_ms[5], all_ms[25]);
  EXPECT_LT(start_ms[5], 200);  // the target is 15; the machine may be busy
}

TEST_F(SandboxTest, LockAllowsThreadsAndNothingElse) {
  EXPECT_EQ(output_of(program("lock_processes")), "locked");
}

/// What runs while it is frozen and thawed: threads per process, processes, and how they count.
struct Busy {
  const char* name;
  int threads, processes;
  const char* style;
};

void PrintTo(const Busy& busy, std::ostream* out) {
  *out << busy.name;
}

class FreezerTest : public testing::TestWithParam<std::tuple<const char*, Mode, Busy>> {
 protected:
  FreezerTest() {
    ::setenv("KERNELBENCH_FREEZER", std::get<0>(GetParam()), 1);
    launcher.emplace(std::get<1>(GetParam()));
    ::unsetenv("KERNELBENCH_FREEZER");
  }
  void TearDown() override {
    process.reset();
    EXPECT_THAT(own_cgroups(), testing::IsEmpty());
    EXPECT_THAT(own_children(), testing::IsEmpty());
    ::munmap(counters, 8192);
  }
  void start() {
    const Busy busy = std::get<2>(GetParam());
    const UniqueFd memory(::memfd_create("counters", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(memory.get(), 8192), 0);
    counters = static_cast<std::atomic<long>*>(
        ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0));
    Command command = program("count", {"3", fmt::format("{}", busy.threads),
                                        fmt::format("{}", busy.processes), busy.style});
    command.fds = {{memory.get(), 3}};
    auto started = launcher->start(command);
    ASSERT_TRUE(started) << started.error();
    process = std::move(*started);
    if (std::string(process->freezer_name()) != std::get<0>(GetParam())) {
      GTEST_SKIP() << "there is no such freezer here";
    }
    ASSERT_TRUE(all_advance());
  }
  std::vector<long> snapshot() const {
    const Busy busy = std::get<2>(GetParam());
    std::vector<long> values;
    for (int i = 0; i < busy.threads * busy.processes; ++i) values.push_back(counters[i * 8]);
    return values;
  }
  /// True once every counter has gone up.
  bool all_advance() const {
    const std::vector<long> before = snapshot();
    const auto end = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < end) {
      const std::vector<long> now = snapshot();
      if (std::ranges::equal(before, now, std::less<>{})) return true;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return false;
  }
  /// A busy machine may need more than the second that one call takes.
  bool freeze() {
    for (int i = 0; i < 10; ++i) {
      if (process->freeze()) return true;
    }
    return false;
  }

  std::optional<Launcher> launcher;
  std::optional<Process> process;
  std::atomic<long>* counters = nullptr;
};

TEST_P(FreezerTest, StopsAndResumes) {
  start();
  if (IsSkipped() || HasFatalFailure()) return;
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(freeze());
    EXPECT_TRUE(process->frozen());
    const std::vector<long> before = snapshot();
    std::this_thread::sleep_for(milliseconds(20));
    ASSERT_EQ(before, snapshot());
    ASSERT_TRUE(process->thaw());
    EXPECT_FALSE(process->frozen());
    ASSERT_TRUE(all_advance());
  }
}

TEST_P(FreezerTest, KillsWhatIsFrozen) {
  start();
  if (IsSkipped() || HasFatalFailure()) return;
  ASSERT_TRUE(freeze());
  const std::vector<pid_t> pids = process->pids();
  EXPECT_FALSE(pids.empty());
  const std::vector<long> before = snapshot();
  const auto begin = std::chrono::steady_clock::now();
  process->kill();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(1900));
  for (pid_t pid : pids) EXPECT_FALSE(is_alive(pid));
  EXPECT_EQ(before, snapshot());
  EXPECT_FALSE(process->freeze());
}

INSTANTIATE_TEST_SUITE_P(All, FreezerTest,
                         testing::Combine(testing::Values("cgroup2", "cgroup1", "signal"),
                                          testing::Values(Mode::automatic, Mode::none),
                                          testing::Values(Busy{"OneThread", 1, 1, "spin"},
                                                          Busy{"EightThreads", 8, 1, "spin"},
                                                          Busy{"FourProcesses", 2, 4, "spin"},
                                                          Busy{"Forking", 1, 2, "fork"},
                                                          Busy{"Vforking", 1, 1, "vfork"})),
                         [](const auto& test) {
                           return fmt::format(
                               "{}_{}_{}", std::get<0>(test.param),
                               std::get<1>(test.param) == Mode::none ? "Plain" : "Sandboxed",
                               std::get<2>(test.param).name);
                         });

class PlainTest : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_THAT(own_cgroups(), testing::IsEmpty());
    EXPECT_THAT(own_children(), testing::IsEmpty());
  }
  Launcher launcher{Mode::none};
};

TEST_F(PlainTest, Runs) {
  EXPECT_FALSE(launcher.will_sandbox());
  auto process = launcher.start(program("hello"));
  ASSERT_TRUE(process) << process.error();
  EXPECT_FALSE(process->sandboxed());
  const auto exit = process->wait(patience);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 7);
  EXPECT_EQ(process->output(), "hello\n");
}

TEST_F(PlainTest, PassesNothingElse) {
  ::setenv("KERNELBENCH_TEST_SECRET", "secret", 1);
  Command command = program("list_environment");
  command.environment = {{"GIVEN", "1"}};
  auto process = launcher.start(command);
  ASSERT_TRUE(process) << process.error();
  ASSERT_TRUE(process->wait(patience));
  EXPECT_EQ(process->output(), "GIVEN=1\n");

  const UniqueFd null(::open("/dev/null", O_RDWR));
  command = program("list_fds");
  command.fds = {{null.get(), 5}};
  auto other = launcher.start(command);
  ASSERT_TRUE(other) << other.error();
  ASSERT_TRUE(other->wait(patience));
  EXPECT_EQ(other->output(), "0 1 2 5 5 says \n");
}

TEST_F(PlainTest, BoundsAForkBombAndKillsIt) {
  auto process = launcher.start(program("fork_many"));
  ASSERT_TRUE(process) << process.error();
  const auto exit = process->wait(patience);
  ASSERT_TRUE(exit);
  EXPECT_TRUE(!exit->exited || is_bounded(process->output())) << process->output();
  const std::vector<pid_t> left = process->pids();
  process->kill();
  for (pid_t pid : left) EXPECT_FALSE(is_alive(pid));
}

TEST_F(PlainTest, TellsWhyAProgramDidNotStart) {
  Command command = program("hello");
  command.argv[0] = "/no/such/program";
  const auto process = launcher.start(command);
  ASSERT_FALSE(process);
  EXPECT_THAT(process.error(), HasSubstr("/no/such/program: starting it failed: No such file"));
}

/// Runs a copy of this test executable under `prefix`, with the tests that `filter` names: a copy
/// in a folder that every user can reach. Null when it could not be started.
std::optional<Exit> run_tests(const std::vector<std::string>& prefix, const std::string& filter,
                              std::string& output) {
  namespace fs = std::filesystem;
  std::string folder = testing::TempDir() + "kernelbench-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return std::nullopt;
  const auto copy = fs::path(folder) / "sandbox_test";
  fs::copy_file(own_path(), copy);
  for (const auto& path : {fs::path(folder), copy})
    fs::permissions(path, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                              fs::perms::others_read | fs::perms::others_exec);
  Launcher launcher(Mode::none);
  Command command;
  command.argv = prefix;
  command.argv.insert(command.argv.end(), {copy.string(), "--gtest_filter=" + filter});
  command.environment = {{"PATH", "/usr/bin:/bin"}, {"KERNELBENCH_TEST_INNER", "1"}};
  command.limits.max_processes = 2000;
  auto process = launcher.start(command);
  if (!process) return std::nullopt;
  const auto exit = process->wait(milliseconds(100'000));
  output = process->output();
  fs::remove_all(folder);
  return exit;
}

bool is_inner() {
  return std::getenv("KERNELBENCH_TEST_INNER") != nullptr;
}

// Where user namespaces are refused. The outer test makes such a place and runs the inner ones
// there.
TEST(RefusedNamespaces, InnerAutomaticDegrades) {
  if (!is_inner()) GTEST_SKIP() << "runs inside RefusedNamespaces.DegradesOrRefuses";
  Launcher launcher(Mode::automatic);
  testing::internal::CaptureStdout();
  auto process = launcher.start(program("hello"));
  ASSERT_TRUE(process) << process.error();
  EXPECT_FALSE(process->sandboxed());
  EXPECT_TRUE(process->wait(patience));
  EXPECT_TRUE(launcher.start(program("hello")));
  const std::string log = testing::internal::GetCapturedStdout();
  const std::size_t first = log.find("NO SANDBOX");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(log.find("NO SANDBOX", first + 1), std::string::npos) << "said twice";
}

TEST(RefusedNamespaces, InnerRequireRefuses) {
  if (!is_inner()) GTEST_SKIP() << "runs inside RefusedNamespaces.DegradesOrRefuses";
  Launcher launcher(Mode::require);
  auto process = launcher.start(program("hello"));
  ASSERT_FALSE(process);
  EXPECT_THAT(process.error(), HasSubstr("bubblewrap cannot make a sandbox here"));
  EXPECT_EQ(process.error().find('\n'), std::string::npos);
}

TEST(RefusedNamespaces, DegradesOrRefuses) {
  if (is_inner()) GTEST_SKIP();
  std::string output;
  const auto exit =
      run_tests({"/usr/bin/unshare", "-Ur", "/bin/sh", "-c",
                 "echo 0 > /proc/sys/user/max_user_namespaces || exit 99; exec \"$0\" \"$@\""},
                "RefusedNamespaces.Inner*", output);
  if (!exit ||
      (exit->exited && exit->code != 0 && output.find("[==========]") == std::string::npos)) {
    GTEST_SKIP() << "user namespaces cannot be had here: " << output;
  }
  EXPECT_TRUE(exit->exited && exit->code == 0) << output;
}

// Without any cgroup, as on most people's machines: SIGSTOP, and rlimits.
TEST(OrdinaryUser, HasASandboxToo) {
  if (is_inner() || ::getuid() != 0) GTEST_SKIP();
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP()
      << "without a cgroup memory is limited by RLIMIT_DATA, which leaves AddressSanitizer no "
         "room for its shadow";
#endif
  std::string output;
  // Without a sandbox and without a cgroup a fork bomb is bounded by a watch alone, which on a busy
  // machine comes late.
  const auto exit =
      run_tests({"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"},
                "SandboxTest.*:PlainTest.*:*StopsAndResumes/"
                "signal*-*.StartsFast:PlainTest.BoundsAForkBombAndKillsIt",
                output);
  if (!exit || output.find("[==========]") == std::string::npos) {
    GTEST_SKIP() << "cannot become another user here: " << output;
  }
  EXPECT_TRUE(exit->exited && exit->code == 0) << output;
}

}  // namespace
}  // namespace kb::sandbox

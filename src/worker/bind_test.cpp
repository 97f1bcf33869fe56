// Where a worker's main thread runs, with a program that only sleeps in a worker's place, and turns
// of one that is bound, with a program that sleeps in a turn's.

#include <gmock/gmock.h>
#include <sched.h>

#include <array>
#include <memory>
#include <optional>

#include "device/cpu/affinity.h"
#include "device/cpu/shared_memory.h"
#include "worker/cpus.h"
#include "worker/spinners.h"
#include "worker/worker.h"

namespace kb::worker {
namespace {

using cpu::bind_to_cpus;
using cpu::cpus_of;
using testing::ElementsAre;

class BoundWorkers : public testing::Test {
 protected:
  Worker sleeper() {
    sandbox::Command command;
    command.argv = {"/bin/sh", "-c", "sleep 60"};
    auto worker = Worker::start(launcher, std::move(command));
    EXPECT_TRUE(worker) << worker.error().text;
    return std::move(*worker);
  }
  static std::vector<int> cpus(Worker& worker) {
    return cpus_of(worker.process().program_pid().value_or(-1));
  }
  sandbox::Launcher launcher{sandbox::Mode::automatic};
  const std::vector<int> all = cpus_of(0);
};

TEST_F(BoundWorkers, RunWhereTheyAreBound) {
  auto worker = sleeper();
  worker.bind_cpu(std::nullopt);  // it never was
  EXPECT_FALSE(worker.stays_bound());
  for (const int cpu : all) {
    worker.bind_cpu(cpu);
    EXPECT_THAT(cpus(worker), ElementsAre(cpu));
    EXPECT_TRUE(worker.stays_bound());
  }
  worker.bind_cpu(std::nullopt);
  EXPECT_EQ(cpus(worker), all);
  EXPECT_FALSE(worker.stays_bound());
}

TEST_F(BoundWorkers, AreBoundWhileTheyAreStopped) {
  auto worker = sleeper();
  ASSERT_TRUE(worker.pause());
  worker.bind_cpu(all.back());
  EXPECT_THAT(cpus(worker), ElementsAre(all.back()));
  EXPECT_TRUE(worker.stays_bound());
}

TEST_F(BoundWorkers, AreFoundOutWhenTheyStray) {
  if (all.size() < 2) GTEST_SKIP() << "there is one CPU";
  auto worker = sleeper();
  worker.bind_cpu(all[0]);
  ASSERT_TRUE(bind_to_cpus(worker.process().program_pid().value(), all));
  EXPECT_FALSE(worker.stays_bound());
  worker.bind_cpu(all[0]);  // which also sees it, and does not forget
  EXPECT_FALSE(worker.stays_bound());
}

TEST_F(BoundWorkers, ThatCannotBeAreNot) {
  auto worker = sleeper();
  worker.bind_cpu(CPU_SETSIZE - 1);
  EXPECT_EQ(cpus(worker), all);
  worker.bind_cpu(all[0]);
  EXPECT_FALSE(worker.stays_bound());
}

TEST_F(BoundWorkers, ThatHaveEndedAreNot) {
  auto worker = sleeper();
  worker.bind_cpu(all[0]);
  worker.process().kill();
  worker.bind_cpu(all[0]);
  EXPECT_FALSE(worker.stays_bound());
}

// Slot 0 of a call is how many milliseconds it takes, slot 1 whether the process ends then. It
// wakes nobody.
constexpr const char* kTurns = R"(
import json, mmap, os, socket, struct, time
s = socket.socket(fileno=3)
def receive():
    head, fds, _, _ = socket.recv_fds(s, 4, 8)
    (size,) = struct.unpack("=I", head)
    while size > 0: size -= len(s.recv(size))
    return fds
def send(body):
    text = json.dumps(body).encode()
    s.sendall(struct.pack("=I", len(text)) + text)
send({"hello": "test"})
page = mmap.mmap(receive()[0], 4096)
send({"ok": True})
receive()
def word(at): return struct.unpack_from("=I", page, at)[0]
seen = word(0)
send({"ok": True})
while True:
    while word(0) == seen: time.sleep(0.0002)
    seen = word(0)
    time.sleep(word(256) / 1000)
    if word(260): os._exit(3)
    struct.pack_into("=I", page, 192, 0)
    struct.pack_into("=I", page, 64, seen)
)";

class BoundTurns : public BoundWorkers {
 protected:
  void SetUp() override {
    sandbox::Command command;
    command.argv = {"/usr/bin/python3", "-ISc", kTurns};
    auto started = Worker::start(launcher, std::move(command));
    ASSERT_TRUE(started) << started.error().text;
    worker.emplace(std::move(*started));
    ASSERT_TRUE(worker->await_hello(kLong));
    data = cpu::SharedMemory::create(4096, "data").value();
    const auto attached = worker->attach({{"control_size", 4096}}, *data, nullptr, kLong);
    ASSERT_TRUE(attached) << attached.error().text;
    ASSERT_TRUE(worker->enter_turns(kLong, false));
  }
  std::expected<Turn, Fault> turn(std::uint32_t takes_ms, bool ends, milliseconds limit = kLong) {
    worker->bind_cpu(all[++turns % all.size()]);
    const std::array calls{Call{takes_ms, 0}, Call{ends, 0}};
    worker->arm(calls, false);
    return worker->run(limit);
  }
  static constexpr milliseconds kLong{60'000};
  std::unique_ptr<Memory> data;
  std::optional<Worker> worker;
  std::size_t turns = 0;
};

TEST_F(BoundTurns, OfAnyLengthAreSeenToEnd) {
  for (const std::uint32_t takes_ms : {0u, 5u, 150u, 0u}) {
    const auto timed = turn(takes_ms, false);
    ASSERT_TRUE(timed) << timed.error().text;
    EXPECT_GE(timed->wall_us, 1000 * takes_ms);
    EXPECT_TRUE(worker->stays_bound());
  }
}

TEST_F(BoundTurns, KeepTheirCpuAwakeAndTheJudgeOffItUntilTheyBegin) {
  if (!may_spin()) GTEST_SKIP() << "there are too few CPUs";
  for (const int cpu : {all.front(), all.back()}) {
    worker->bind_cpu(cpu);
    EXPECT_EQ(cpus_of(0), all);
    const std::array calls{Call{300, 0}, Call{0, 0}};
    worker->arm(calls, false);
    auto others = all;
    std::erase(others, cpu);
    EXPECT_EQ(cpus_of(0), others);
    ASSERT_TRUE(comes_true([] { return spinners().size() == 1; }));
    const pid_t thread = spinners().front();
    EXPECT_TRUE(comes_true([&] { return cpus_of(thread) == std::vector<int>{cpu}; }));
    EXPECT_TRUE(comes_true([&] { return !sleeps(thread); }));
    ASSERT_TRUE(worker->run(kLong));
    EXPECT_EQ(cpus_of(0), all);
    EXPECT_TRUE(comes_true([&] { return sleeps(thread); }));
  }
}

TEST_F(BoundTurns, ThatAreNeverRunLeaveTheJudgeWhereItWas) {
  worker->bind_cpu(all.front());
  worker->arm(std::array{Call{0, 0}}, false);
  worker->bind_cpu(all.back());
  EXPECT_EQ(cpus_of(0), all);
  worker->arm(std::array{Call{0, 0}}, false);
  worker.reset();
  EXPECT_EQ(cpus_of(0), all);
}

// As where something else ran on the device meanwhile.
TEST_F(BoundTurns, MayBeArmedMoreThanOnce) {
  worker->bind_cpu(all.front());
  for (const int times : {2, 3}) {
    for (int i = 0; i < times; ++i) {
      worker->arm(std::array{Call{1, 0}, Call{0, 0}}, false);
      if (may_spin()) {
        EXPECT_EQ(cpus_of(0), std::vector(all.begin() + 1, all.end()));
      }
    }
    ASSERT_TRUE(worker->run(kLong));
    EXPECT_EQ(cpus_of(0), all);
  }
}

TEST_F(BoundTurns, InWhichTheProcessEndsSaySo) {
  for (const std::uint32_t takes_ms : {1u, 100u}) {
    const auto timed = turn(takes_ms, true);
    ASSERT_FALSE(timed);
    EXPECT_EQ(timed.error().kind, FaultKind::crashed);
    TearDown();
    SetUp();
  }
}

TEST_F(BoundTurns, ThatTakeTooLongAreStopped) {
  for (const int limit_ms : {20, 100}) {
    const auto timed = turn(30'000, false, milliseconds(limit_ms));
    ASSERT_FALSE(timed);
    EXPECT_EQ(timed.error().kind, FaultKind::timeout);
    TearDown();
    SetUp();
  }
}

}  // namespace
}  // namespace kb::worker

// Where a worker's main thread runs, with a program that only sleeps in a worker's place.

#include <gmock/gmock.h>
#include <sched.h>

#include "device/cpu/affinity.h"
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

}  // namespace
}  // namespace kb::worker

// Where a worker's main thread runs, with a program that only sleeps in a worker's place.

#include <gmock/gmock.h>

#include <thread>

#include "worker/cpus.h"
#include "worker/worker.h"

namespace kb::worker {
namespace {

using testing::ElementsAre;

Worker sleeper(sandbox::Launcher& launcher, unsigned threads = 0) {
  sandbox::Command command;
  command.argv = {"/bin/sh", "-c", "sleep 60"};
  if (threads > 0) restrict_cpus(command, threads);
  auto worker = Worker::start(launcher, std::move(command));
  EXPECT_TRUE(worker) << worker.error().text;
  return std::move(*worker);
}

std::vector<int> cpus(Worker& worker) {
  return cpus_of(worker.process().program_pid().value_or(-1));
}

TEST(BoundWorkers, ShareACpuByTheSameChoice) {
  sandbox::Launcher launcher(sandbox::Mode::automatic);
  auto one = sleeper(launcher), other = sleeper(launcher);
  const auto all = cpus_of(0);
  for (std::uint64_t choice = 0; choice <= all.size(); ++choice) {
    one.bind_cpu(choice);
    other.bind_cpu(choice);
    EXPECT_THAT(cpus(one), ElementsAre(all[choice % all.size()]));
    EXPECT_EQ(cpus(other), cpus(one));
  }
  one.bind_cpu(std::nullopt);
  EXPECT_EQ(cpus(one), all);
}

TEST(BoundWorkers, AreBoundWhileTheyAreStopped) {
  sandbox::Launcher launcher(sandbox::Mode::automatic);
  auto worker = sleeper(launcher);
  worker.bind_cpu(std::nullopt);  // it never was
  EXPECT_EQ(cpus(worker), cpus_of(0));
  ASSERT_TRUE(worker.pause());
  worker.bind_cpu(std::uint64_t{1} << 63);
  EXPECT_EQ(cpus(worker).size(), 1u);
}

TEST(BoundWorkers, AreFoundOutWhenTheyStray) {
  if (cpus_of(0).size() < 2) GTEST_SKIP() << "there is one CPU";
  sandbox::Launcher launcher(sandbox::Mode::automatic);
  auto worker = sleeper(launcher);
  EXPECT_FALSE(worker.stays_bound());
  worker.bind_cpu(0);
  worker.bind_cpu(1);
  EXPECT_TRUE(worker.stays_bound());
  ASSERT_TRUE(bind_to_cpus(worker.process().program_pid().value(), cpus_of(0)));
  worker.bind_cpu(0);
  EXPECT_FALSE(worker.stays_bound());
  worker.bind_cpu(0);
  EXPECT_FALSE(worker.stays_bound());
}

TEST(BoundWorkers, KeepToTheCpusThatTheyHadBefore) {
  sandbox::Launcher launcher(sandbox::Mode::automatic);
  auto worker = sleeper(launcher, 1);
  // taskset is what runs first.
  for (int i = 0; i < 500 && cpus(worker).size() > 1; ++i)
    std::this_thread::sleep_for(milliseconds(10));
  for (std::uint64_t choice = 0; choice < 3; ++choice) {
    worker.bind_cpu(choice);
    EXPECT_THAT(cpus(worker), ElementsAre(cpus_of(0).front()));
  }
}

}  // namespace
}  // namespace kb::worker

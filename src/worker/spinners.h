// For tests: the threads with which this process keeps CPUs awake, as the kernel shows them.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace kb::worker {

inline std::vector<pid_t> spinners() {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == "awake-cpu") found.push_back(std::stoi(task.path().filename()));
  }
  return found;
}

/// The fields of a thread of this process from its state on; none once it has ended.
inline std::vector<std::string> stat_of(pid_t thread) {
  std::string stat;
  std::getline(std::ifstream("/proc/self/task/" + std::to_string(thread) + "/stat"), stat);
  std::istringstream words(stat.substr(std::min(stat.rfind(')') + 1, stat.size())));
  std::vector<std::string> fields;
  for (std::string word; words >> word;) fields.push_back(word);
  return fields;
}

inline bool sleeps(pid_t thread) {
  const auto fields = stat_of(thread);
  return !fields.empty() && fields[0] == "S";
}

/// Of CPU time, 10 ms as a rule.
inline std::uint64_t ticks_of(pid_t thread) {
  const auto fields = stat_of(thread);
  return fields.size() > 12 ? std::stoull(fields[11]) + std::stoull(fields[12]) : 0;
}

/// Within a minute: threads of the lowest priority wait long on a busy machine.
inline bool comes_true(const std::function<bool()>& what) {
  for (int i = 0; i < 6000; ++i) {
    if (what()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace kb::worker

#include "device/cpu/cpu_device.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>
#include <vector>

namespace kb::cpu {
namespace {

/// A process that holds a copy of what this one has in its memory, and does nothing.
class Copy {
 public:
  Copy() : pid_(::fork()) {
    if (pid_ == 0)
      for (;;) ::pause();
  }
  ~Copy() { end(); }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  pid_t pid() const { return pid_; }
  void end() {
    if (ended_) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ended_ = true;
  }

 private:
  pid_t pid_;
  bool ended_ = false;
};

Comparison compare(CpuDevice& device, const TensorSource& candidate, const TensorSpec& spec,
                   const std::vector<float>& reference) {
  CheckList list;
  list.compare.push_back({.candidate = candidate,
                          .spec = spec,
                          .reference = reinterpret_cast<const std::byte*>(reference.data())});
  device.begin_check(std::move(list), 1);
  return device.end_check()->compare.at(0);
}

TEST(CpuDevice, ComparesATensorInAnotherProcess) {
  constexpr std::int64_t kRows = 300, kColumns = 1000;
  std::vector<float> there(kRows * kColumns), reference, transposed;
  std::iota(there.begin(), there.end(), 1.0F);
  reference = there;
  for (std::int64_t column = 0; column < kColumns; ++column)
    for (std::int64_t row = 0; row < kRows; ++row)
      transposed.push_back(there[static_cast<std::size_t>(row * kColumns + column)]);
  Copy copy;
  there.assign(there.size(), 0);  // here, and not there
  CpuDevice device;
  const TensorSpec dense{DType::float32, {kRows, kColumns}};
  const TensorSpec across{DType::float32, {kColumns, kRows}};
  TensorSource source{.pid = copy.pid(), .address = reinterpret_cast<std::uint64_t>(there.data())};
  EXPECT_TRUE(compare(device, source, dense, reference).within_tolerance);
  EXPECT_EQ(compare(device, source, dense, transposed).first_violation, 1);
  source.strides = {1, kColumns};
  EXPECT_TRUE(compare(device, source, across, transposed).within_tolerance);

  // Strides and addresses are a worker's word.
  for (const std::vector<std::int64_t>& strides :
       {std::vector<std::int64_t>{}, std::vector<std::int64_t>{1, kColumns}}) {
    source.strides = strides;
    const TensorSpec& spec = strides.empty() ? dense : across;
    for (const std::uint64_t nowhere : {std::uint64_t{0}, ~std::uint64_t{0} - 8}) {
      TensorSource astray = source;
      astray.address = nowhere;
      const auto comparison = compare(device, astray, spec, reference);
      EXPECT_FALSE(comparison.readable) << nowhere;
      EXPECT_FALSE(comparison.within_tolerance);
    }
  }
  source.strides = {};
  copy.end();
  EXPECT_FALSE(compare(device, source, dense, reference).readable) << "its process has ended";
}

}  // namespace
}  // namespace kb::cpu

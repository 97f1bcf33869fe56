#include "profile/launch.h"

#include <algorithm>

namespace kb::profile {
namespace {

constexpr std::array<Measure, kNumbers> kMeasures = {{
    {Number::duration_us,
     "duration_us",
     "duration",
     "us",
     Across::sum,
     true,
     {"gpu__time_duration.sum"},
     1e-3},
    {Number::dram_percent,
     "dram_percent",
     "DRAM throughput",
     "%",
     Across::mean,
     false,
     {"dram__throughput.avg.pct_of_peak_sustained_elapsed"},
     1},
    {Number::dram_bytes,
     "dram_bytes",
     "DRAM traffic",
     "bytes",
     Across::sum,
     true,
     {"dram__bytes_read.sum", "dram__bytes_write.sum"},
     1},
    {Number::l2_percent,
     "l2_percent",
     "L2 throughput",
     "%",
     Across::mean,
     false,
     {"lts__throughput.avg.pct_of_peak_sustained_elapsed"},
     1},
    {Number::l1_percent,
     "l1_percent",
     "L1 and shared throughput",
     "%",
     Across::mean,
     false,
     {"l1tex__throughput.avg.pct_of_peak_sustained_active"},
     1},
    {Number::sm_percent,
     "sm_percent",
     "SM throughput",
     "%",
     Across::mean,
     false,
     {"sm__throughput.avg.pct_of_peak_sustained_elapsed"},
     1},
    {Number::tensor_percent,
     "tensor_percent",
     "tensor cores",
     "%",
     Across::mean,
     false,
     {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
      "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active"},
     1},
    {Number::occupancy_percent,
     "occupancy_percent",
     "occupancy (active warps)",
     "%",
     Across::mean,
     false,
     {"sm__warps_active.avg.pct_of_peak_sustained_active"},
     1},
    {Number::registers,
     "registers_per_thread",
     "registers a thread",
     "",
     Across::longest,
     false,
     {"launch__registers_per_thread"},
     1},
    {Number::blocks, "blocks", "blocks", "", Across::longest, false, {"launch__grid_size"}, 1},
    {Number::threads,
     "threads_per_block",
     "threads a block",
     "",
     Across::longest,
     false,
     {"launch__block_size"},
     1},
    {Number::waves,
     "waves",
     "waves of blocks",
     "",
     Across::longest,
     false,
     {"launch__waves_per_multiprocessor"},
     1},
    {Number::shared_bytes,
     "shared_bytes_per_block",
     "shared memory a block",
     "bytes",
     Across::longest,
     true,
     {"launch__shared_mem_per_block_static", "launch__shared_mem_per_block_dynamic"},
     1},
    {Number::instructions,
     "instructions",
     "warp instructions",
     "",
     Across::sum,
     true,
     {"smsp__inst_executed.sum"},
     1},
    {Number::local_instructions,
     "local_memory_instructions",
     "of those local (spills)",
     "",
     Across::sum,
     true,
     {"smsp__inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_st.sum"},
     1},
    {Number::bank_conflicts,
     "shared_bank_conflicts",
     "shared bank conflicts",
     "",
     Across::sum,
     true,
     {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"},
     1},
    {Number::shared_wavefronts,
     "shared_wavefronts",
     "shared memory wavefronts",
     "",
     Across::sum,
     true,
     {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"},
     1},
}};

double duration_of(const Launch& launch) {
  return launch.numbers[Number::duration_us].value_or(0);
}

std::optional<double> across(const Measure& measure, const std::vector<Launch>& launches,
                             const Launch& longest) {
  if (measure.across == Across::longest) return longest.numbers[measure.number];
  double sum = 0, weight = 0;
  for (const auto& launch : launches) {
    const auto& value = launch.numbers[measure.number];
    if (!value) continue;
    const double counts = measure.across == Across::sum ? 1 : duration_of(launch);
    sum += *value * counts;
    weight += counts;
  }
  if (weight <= 0) return std::nullopt;
  return measure.across == Across::sum ? sum : sum / weight;
}

}  // namespace

std::span<const Measure> measures() {
  return kMeasures;
}

std::string metric_list() {
  std::string list;
  for (const auto& measure : kMeasures)
    for (const auto& name : measure.names)
      if (!name.empty()) list.append(list.empty() ? "" : ",").append(name);
  return list;
}

Counters counters_of(std::vector<Launch> launches) {
  Counters counters{std::move(launches), {}};
  if (counters.launches.empty()) return counters;
  const auto& longest = *std::ranges::max_element(counters.launches, {}, duration_of);
  for (const auto& measure : kMeasures)
    counters.total[measure.number] = across(measure, counters.launches, longest);
  return counters;
}

std::vector<Kernel> kernels_of(const Counters& counters) {
  std::vector<Kernel> kernels;
  for (const auto& launch : counters.launches) {
    auto known = std::ranges::find(kernels, launch.name, &Kernel::name);
    if (known == kernels.end()) known = kernels.insert(kernels.end(), Kernel{launch.name});
    ++known->launches;
    known->duration_us += duration_of(launch);
  }
  std::ranges::stable_sort(kernels, std::greater(), &Kernel::duration_us);
  return kernels;
}

}  // namespace kb::profile

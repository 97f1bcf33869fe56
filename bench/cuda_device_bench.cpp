// How fast the GPU's bulk work is beside a plain copy, and what the parts of a turn cost.
//
//   build/release/bench/cuda_device_bench [--json FILE]

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/cpu/half.h"
#include "device/cuda/cuda.h"
#include "device/random.h"

namespace {

using Clock = std::chrono::steady_clock;

nlohmann::json g_records = nlohmann::json::array();

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double median(std::vector<double> x) {
  std::ranges::sort(x);
  return x[x.size() / 2];
}

template <class T>
T must(std::expected<T, std::string> expected) {
  if (!expected) {
    fmt::print(stderr, "{}\n", expected.error());
    std::exit(2);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*expected);
}

/// The time of one call of `work`, of which many are enqueued before the wait.
double time_of(kb::Device& device, const std::function<void()>& work, int calls) {
  std::vector<double> us;
  for (int round = -1; round < 5; ++round) {
    must(device.synchronize());
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) work();
    must(device.synchronize());
    if (round >= 0) us.push_back(us_since(start) / calls);
  }
  return median(us);
}

/// A check from begin to results, as the host sees it.
double time_of_check(kb::Device& device, const kb::CheckList& list) {
  std::vector<double> us;
  for (int round = -3; round < 15; ++round) {
    must(device.synchronize());
    const auto start = Clock::now();
    device.begin_check(list, static_cast<std::uint64_t>(round + 100));
    must(device.end_check());
    if (round >= 0) us.push_back(us_since(start));
  }
  return median(us);
}

/// Random numbers on both sides; the candidate's last bits are drawn anew.
void fill(kb::Device& device, const kb::Memory& candidate, const kb::Memory& reference,
          kb::DType dtype) {
  const std::size_t block = std::min(candidate.bytes().size(), std::size_t{16} << 20);
  const std::size_t size = size_of(dtype);
  std::vector<std::byte> values(block);
  for (std::size_t i = 0; i < block / size; ++i) {
    const double x = static_cast<double>(kb::random_bits(1, i) >> 11) * 0x1p-52 - 1;
    auto put = [&](auto value) { std::memcpy(values.data() + i * size, &value, size); };
    if (dtype == kb::DType::float64) put(x);
    if (dtype == kb::DType::float32) put(static_cast<float>(x));
    if (dtype == kb::DType::float16) put(kb::cpu::to_float16(static_cast<float>(x)));
    if (dtype == kb::DType::bfloat16) put(kb::cpu::to_bfloat16(static_cast<float>(x)));
  }
  auto upload = [&](const kb::Memory& memory) {
    for (std::size_t at = 0; at + block <= memory.bytes().size(); at += block)
      device.upload(memory.range(at, block), values);
  };
  upload(reference);
  for (std::size_t i = 0; i < block; i += size) {
    if ((kb::random_bits(2, i) & 1) != 0) values[i] ^= std::byte{1};
  }
  upload(candidate);
}

class Table {
 public:
  explicit Table(double copy_bytes_per_us) : copy_(copy_bytes_per_us) {}
  void rate(const std::string& what, std::size_t size, double bytes, double us) const {
    fmt::print("{:<28} {:>6} MiB {:>10.1f} us {:>8.0f} GB/s {:>6.1f} % of copy\n", what, size >> 20,
               us, bytes / us / 1000, 100 * bytes / us / copy_);
    g_records.push_back({{"what", what},
                         {"tensor_bytes", size},
                         {"us", us},
                         {"bytes_per_us", bytes / us},
                         {"of_copy", bytes / us / copy_}});
  }
  static void time(const std::string& what, double us) {
    fmt::print("{:<40} {:>9.1f} us\n", what, us);
    g_records.push_back({{"what", what}, {"us", us}});
  }

 private:
  double copy_;
};

/// Bulk work on tensors of `size` bytes.
void bench_size(kb::Device& device, const Table& table, std::size_t size) {
  const auto bytes = static_cast<double>(size);
  const int calls = size > (std::size_t{256} << 20) ? 10 : 100;
  auto a = must(device.allocate(size, true));
  auto b = must(device.allocate(size, true));
  auto wide = must(device.allocate(2 * size, false));
  auto timed = [&](const std::string& what, double moved, const std::function<void()>& work) {
    table.rate(what, size, moved, time_of(device, work, calls));
  };
  timed("copy", 2 * bytes, [&] { device.copy(b->bytes(), a->bytes()); });
  timed("poison", bytes, [&] { device.poison(a->bytes()); });

  for (kb::Stress kind : kb::kAllStress) {
    if (kind == kb::Stress::planted) continue;  // touches a few elements
    for (kb::DType dtype : {kb::DType::float32, kb::DType::bfloat16}) {
      timed(fmt::format("stress {} {}", name_of(kind), name_of(dtype)), 2 * bytes,
            [&] { device.apply_stress(kind, a->bytes(), dtype, 1); });
    }
  }

  // What a check costs whatever its size is not the tensors' to bear.
  const double empty = time_of_check(device, {.guards = {{a->range(0, 64), 1}}});
  auto compare = [&](const std::string& what, kb::DType dtype, kb::DType reference_dtype,
                     double reference_bytes, const kb::Memory& reference) {
    kb::CompareJob job;
    job.candidate.data = a->bytes().data();
    job.spec = {dtype, {static_cast<std::int64_t>(size / size_of(dtype))}};
    job.reference = reference.bytes().data();
    job.reference_dtype = reference_dtype;
    job.tolerance = {1e-2, 1e-2, 1e-2};
    table.rate(what, size, bytes + reference_bytes,
               time_of_check(device, {.compare = {job}}) - empty);
  };
  for (kb::DType dtype :
       {kb::DType::float32, kb::DType::bfloat16, kb::DType::float16, kb::DType::float64}) {
    fill(device, *a, *b, dtype);
    compare(fmt::format("compare {}", name_of(dtype)), dtype, dtype, bytes, *b);
  }
  device.copy(b->bytes(), a->bytes());
  for (kb::DType dtype : {kb::DType::int32, kb::DType::int64, kb::DType::uint8}) {
    compare(fmt::format("compare {}", name_of(dtype)), dtype, dtype, bytes, *b);
  }
  device.apply_stress(kb::Stress::small_integers, a->bytes(), kb::DType::float32, 1);
  device.apply_stress(kb::Stress::small_integers, wide->bytes(), kb::DType::float64, 1);
  compare("compare float32 to float64", kb::DType::float32, kb::DType::float64, 2 * bytes, *wide);
  device.apply_stress(kb::Stress::small_integers, b->bytes(), kb::DType::float32, 2);
  compare("compare float32, all wrong", kb::DType::float32, kb::DType::float32, bytes, *b);
  device.copy(b->bytes(), a->bytes());
  {
    kb::CompareJob job;
    const auto columns = static_cast<std::int64_t>(size / 4 / 4096);
    job.candidate = {.data = a->bytes().data(), .strides = {1, 4096}};
    job.spec = {kb::DType::float32, {4096, columns}};
    job.reference = b->bytes().data();
    table.rate("compare float32, transposed", size, 2 * bytes,
               time_of_check(device, {.compare = {job}}) - empty);
  }
  table.rate("equal", size, 2 * bytes,
             time_of_check(device, {.equal = {{a->bytes(), b->bytes()}}}) - empty);
}

void bench_turn(kb::Device& device) {
  const auto flushed = 2.0 * static_cast<double>(device.cache_bytes());
  const double flush = time_of(
      device, [&] { device.flush_caches(); }, 20);
  Table::time(fmt::format("flush ({:.0f} MB)", flushed / 1e6), flush);
  std::vector<double> closing, begin, idle;
  auto guarded = must(device.allocate(64, false));
  for (int i = 0; i < 200; ++i) {
    must(device.synchronize());
    const auto start = Clock::now();
    device.begin_closing();
    const double enqueued = us_since(start);
    device.begin_check({.guards = {{guarded->bytes(), 1}}}, 1);
    begin.push_back(us_since(start) - enqueued);
    must(device.end_check());

    const auto again = Clock::now();
    device.begin_closing();
    const auto closed = device.closed();
    closing.push_back(std::chrono::duration<double, std::micro>(*closed - again).count());
    device.release();  // or the closing kernel would hold the GPU to its limit

    const auto probing = Clock::now();
    if (!device.idle()) fmt::print("not idle in round {}\n", i);
    idle.push_back(us_since(probing));
  }
  Table::time("closing kernel, enqueued to seen", median(closing));
  Table::time("begin_check, the host's part", median(begin));
  Table::time("empty check, begin to results",
              time_of_check(device, {.guards = {{guarded->bytes(), 1}}}));
  Table::time("idle(), whole", median(idle));
}

void bench_memory(kb::Device& device) {
  for (std::size_t gib : {1, 8, 32}) {
    const std::size_t size = gib << 30;
    if (device.free_bytes() < size + (std::size_t{1} << 30)) continue;
    const auto start = Clock::now();
    auto memory = must(device.allocate(size, true));
    Table::time(fmt::format("allocate {} GiB shared, zeroed", gib), us_since(start));
    const auto freeing = Clock::now();
    memory.reset();
    Table::time(fmt::format("free {} GiB shared", gib), us_since(freeing));
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string json_file;
  if (argc == 3 && std::string(argv[1]) == "--json") {
    json_file = argv[2];
  } else if (argc != 1) {
    fmt::print(stderr, "usage: {} [--json FILE]\n", argv[0]);
    return 2;
  }
  const auto opening = Clock::now();
  auto device = must(kb::cuda::open_device(0));
  const double open_us = us_since(opening);
  fmt::print("{}\n", device->describe().dump(2));
  const kb::WorkerNeeds needs = device->worker_needs();
  fmt::print("a worker needs {} {}\n", nlohmann::json(needs.device_nodes).dump(),
             nlohmann::json(needs.environment).dump());
  Table::time("opening the device", open_us);
  const Table table(device->copy_bytes_per_us());
  fmt::print("copy bandwidth {:.0f} GB/s\n", device->copy_bytes_per_us() / 1000);
  bench_turn(*device);
  bench_memory(*device);
  for (std::size_t mib : {1024, 64}) bench_size(*device, table, mib << 20);
  bench_turn(*device);
  fmt::print("{}\n", device->telemetry().dump());
  if (!json_file.empty()) {
    std::ofstream(json_file) << nlohmann::json{{"device", device->describe()},
                                               {"copy_bytes_per_us", device->copy_bytes_per_us()},
                                               {"records", g_records}}
                                    .dump(1)
                             << '\n';
  }
  return 0;
}

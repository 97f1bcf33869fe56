#include "judge/ceilings.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "judge/device.h"
#include "judge/elapsed.h"
#include "judge/options.h"
#include "judge/reference.h"
#include "measure/statistics.h"
#include "problem/set.h"
#include "problem/text_file.h"
#include "worker/torch_pool.h"

namespace kb::judge {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVersionKey = "kernelbench_ceilings";
constexpr int kVersion = 1;
constexpr std::array<const char*, 4> kPrecisions = {"fp32", "tf32", "fp16", "bf16"};
constexpr milliseconds kHelloLimit{180'000};
constexpr milliseconds kMeasureLimit{300'000};

std::string now() {
  return fmt::format(
      "{:%Y-%m-%dT%H:%M:%SZ}",
      fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
}

// What a small kernel of ours waits for, time and again, while a long one of another process runs.
std::expected<double, std::string> measure_time_slice(worker::Worker& worker, Device& device) {
  constexpr double kOccupiedMs = 200;
  auto memory = device.allocate(kGuardBytes, false);
  if (!memory) return std::unexpected(memory.error());
  const auto reply = worker.request(
      {{"op", "occupy"}, {"device", kind_of_device(device.name())}, {"ms", kOccupiedMs}}, {},
      kMeasureLimit);
  if (!reply) return std::unexpected(problem::printable(reply.error().text));
  std::vector<double> waits;
  const auto start = std::chrono::steady_clock::now();
  while (ms_since(start) < kOccupiedMs / 2) {
    const auto asked = std::chrono::steady_clock::now();
    device.poison((*memory)->bytes());
    if (auto well = device.synchronize(); !well) return std::unexpected(well.error());
    waits.push_back(1000 * ms_since(asked));
  }
  return measure::median(waits);
}

// What a file's name can be made of, whatever the driver calls its device.
std::string plain(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '-' || c == '+';
    result += kept ? c : '_';
  }
  return result;
}

std::optional<double> positive(const nlohmann::json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_number()) return std::nullopt;
  const double value = it->get<double>();
  return std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
}

std::optional<std::string> text_in(const nlohmann::json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || !it->is_string()) return std::nullopt;
  return problem::printable(it->get_ref<const std::string&>());
}

// Of the precisions that are known; empty where one of them is no rate, or there is none.
std::map<std::string, double> rates_of(const nlohmann::json& object, const char* name) {
  std::map<std::string, double> rates;
  const auto it = object.find(name);
  if (it == object.end() || !it->is_object()) return {};
  for (const char* precision : kPrecisions) {
    if (!it->contains(precision)) continue;
    const auto rate = positive(*it, precision);
    if (!rate) return {};
    rates[precision] = *rate;
  }
  return rates;
}

}  // namespace

Setting setting_of(const nlohmann::json& description, const std::string& torch_version) {
  const auto text = [&](const char* name) {
    return text_in(description, name).value_or(std::string("unknown"));
  };
  const auto cpus = description.find("cpus");
  return {text("name"),
          cpus != description.end() ? fmt::format("{} CPUs", cpus->dump())
                                    : fmt::format("driver {}", text("driver")),
          problem::printable(torch_version)};
}

std::expected<Ceilings, std::string> measure_ceilings(sandbox::Launcher& launcher,
                                                      const worker::PythonEnvironment& python,
                                                      const fs::path& package_folder,
                                                      Device& device) {
  Ceilings ceilings{setting_of(device.describe(), python.torch_version),
                    now(),
                    1e6 * device.copy_bytes_per_us(),
                    {}};
  if (auto well = device.synchronize(); !well) return std::unexpected(well.error());
  if (!(ceilings.copy_bytes_per_s > 0))
    return std::unexpected(fmt::format("a copy on {} could not be measured", device.name()));
  const unsigned threads = thread_count(Options{});
  auto worker =
      worker::Worker::start(launcher, worker::torch_command({.python = python,
                                                             .package_folder = package_folder,
                                                             .threads = threads,
                                                             .needs = needs_of_python(device)}));
  if (!worker) return std::unexpected(worker.error().text);
  if (auto hello = worker->await_hello(kHelloLimit); !hello)
    return std::unexpected(hello.error().text);
  const auto reply = worker->request(
      {{"op", "measure"}, {"device", kind_of_device(device.name())}, {"threads", threads}}, {},
      kMeasureLimit);
  if (!reply)
    return std::unexpected(fmt::format("PyTorch's matrix products on {} could not be measured: {}",
                                       device.name(), problem::printable(reply.error().text)));
  ceilings.rates = rates_of(*reply, "operations_per_s");
  if (ceilings.rates.empty())
    return std::unexpected(
        fmt::format("PyTorch's matrix products on {} could not be measured: the worker's reply "
                    "makes no sense",
                    device.name()));
  if (!device.ends_turns()) return ceilings;
  const auto slice = measure_time_slice(*worker, device);
  if (!slice)
    return std::unexpected(fmt::format("the time slice of {} could not be measured: {}",
                                       device.name(), slice.error()));
  ceilings.time_slice_us = *slice;
  return ceilings;
}

fs::path ceilings_file(const Setting& setting) {
  return problem::data_root() / "ceilings" /
         fmt::format("{}-{}-torch_{}.json", plain(setting.device), plain(setting.platform),
                     plain(setting.torch));
}

nlohmann::json to_json(const Ceilings& ceilings) {
  return {{kVersionKey, kVersion},
          {"device", ceilings.setting.device},
          {"platform", ceilings.setting.platform},
          {"torch", ceilings.setting.torch},
          {"measured_at", ceilings.measured_at},
          {"copy_bytes_per_s", ceilings.copy_bytes_per_s},
          {"operations_per_s", ceilings.rates},
          {"time_slice_us", ceilings.time_slice_us}};
}

std::expected<Ceilings, std::string> parse_ceilings(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || json.value(kVersionKey, nlohmann::json()) != kVersion)
    return std::unexpected("is not a file of ceilings that this version can read");
  const auto device = text_in(json, "device"), platform = text_in(json, "platform"),
             torch = text_in(json, "torch"), measured_at = text_in(json, "measured_at");
  const auto copy = positive(json, "copy_bytes_per_s");
  auto rates = rates_of(json, "operations_per_s");
  if (!device || !platform || !torch || !measured_at || !copy || rates.empty())
    return std::unexpected("is a damaged file of ceilings");
  return Ceilings{{*device, *platform, *torch},
                  *measured_at,
                  *copy,
                  std::move(rates),
                  positive(json, "time_slice_us").value_or(0)};
}

std::expected<std::optional<Ceilings>, std::string> load_ceilings(const Setting& setting) {
  const auto file = ceilings_file(setting);
  std::error_code error;
  if (!fs::exists(file, error) && !error) return std::nullopt;
  const auto text = problem::read_text_file(file);
  if (!text) return std::unexpected(text.error());
  auto ceilings = parse_ceilings(*text);
  const auto bad = [&](std::string_view what) {
    return std::unexpected(
        fmt::format("{} {}; it is not used (`kernelbench doctor --measure` writes it anew)",
                    problem::printable(file.string()), what));
  };
  if (!ceilings) return bad(ceilings.error());
  if (ceilings->setting != setting)
    return bad(fmt::format("holds the ceilings of {} ({}, PyTorch {})", ceilings->setting.device,
                           ceilings->setting.platform, ceilings->setting.torch));
  return std::move(*ceilings);
}

}  // namespace kb::judge

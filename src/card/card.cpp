#include "card/card.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace kb::card {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// "NVIDIA A100-SXM4-40GB" → nvidia, a100, sxm4, 40gb
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (is_word(c)) {
      words.back() += lower(c);
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

/// What is left of a name when spelling does not count: letters and digits, without the maker.
std::string plain(std::string_view text) {
  constexpr std::array kMakers = {"nvidia", "amd", "geforce", "instinct", "tesla"};
  std::string result;
  for (const auto& word : words_of(text))
    if (std::ranges::find(kMakers, word) == kMakers.end()) result += word;
  return result;
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kKi = 1024;
  constexpr std::uint64_t kMi = 1024 * kKi;
  return bytes % kMi == 0 ? fmt::format("{} MiB", bytes / kMi) : fmt::format("{} KiB", bytes / kKi);
}

std::string rate_text(double per_s, std::string_view unit) {
  return per_s >= 1e12 ? fmt::format("{:.4g} T{}", per_s / 1e12, unit)
                       : fmt::format("{:.3g} G{}", per_s / 1e9, unit);
}

}  // namespace

const Card* find(std::string_view name) {
  const std::string wanted = plain(name);
  if (wanted.empty()) return nullptr;
  for (const Card& card : all()) {
    if (plain(card.key) == wanted || plain(card.name) == wanted) return &card;
    std::string_view rest = card.aliases;
    while (!rest.empty()) {
      const auto end = std::min(rest.find(' '), rest.size());
      if (plain(rest.substr(0, end)) == wanted) return &card;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return nullptr;
}

const Card* of_device(std::string_view driver_name) {
  const auto words = words_of(driver_name);
  const auto has = [&](std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  };
  // Another card of the family, with figures of its own.
  for (const auto* other : {"ti", "super", "laptop", "mobile", "d"})
    if (has(other)) return nullptr;
  const Card* best = nullptr;
  std::size_t best_words = 0;
  for (const Card& card : all()) {
    const auto needed = words_of(card.driver_name);
    if (needed.size() > best_words && std::ranges::all_of(needed, has)) {
      best = &card;
      best_words = needed.size();
    }
  }
  return best;
}

std::string describe(const Card& card) {
  const bool amd = card.vendor == Vendor::amd;
  std::string text;
  const auto line = [&](std::string_view what, std::string_view value) {
    text += fmt::format("{}: {}\n", what, value);
  };
  line("card", card.name);
  line("architecture", fmt::format("{}, {} {}", card.architecture,
                                   amd ? "target" : "compute capability", card.target));
  line("memory", fmt::format("{:g} GB {}, {:g} GB/s", card.memory_bytes / 1e9, card.memory_kind,
                             card.memory_bytes_per_s / 1e9));
  line("L2 cache", size_text(card.l2_bytes));
  if (card.llc_bytes > 0) line("Infinity Cache", size_text(card.llc_bytes));
  line(amd ? "compute units" : "streaming multiprocessors (SMs)",
       fmt::format("{}, up to {} MHz", card.multiprocessors, card.max_clock_mhz));
  const std::string_view unit = amd ? "CU" : "SM";
  line(fmt::format("registers of a{} {}", amd ? "" : "n", unit),
       fmt::format("{} of 32 bits", card.registers_per_multiprocessor));
  line(fmt::format("{} of a{} {}", amd ? "local data share (LDS)" : "shared memory", amd ? "" : "n",
                   unit),
       fmt::format("{}, at most {} a {}", size_text(card.shared_per_multiprocessor_bytes),
                   size_text(card.shared_per_block_bytes), amd ? "workgroup" : "block"));
  line(fmt::format("threads of a{} {}", amd ? "" : "n", unit),
       fmt::format("{} at a time, at most 1024 a {}, {} a {}", card.threads_per_multiprocessor,
                   amd ? "workgroup" : "block", card.warp_size, amd ? "wavefront" : "warp"));
  const std::string_view matrix = amd ? "matrix cores" : "tensor cores";
  const auto rate = [&](std::string_view what, double per_s, std::string_view measure) {
    if (per_s > 0) line(what, rate_text(per_s, measure));
  };
  rate("FP64", card.rates.fp64, "FLOP/s");
  rate(fmt::format("FP64, {}", matrix), card.rates.fp64_matrix, "FLOP/s");
  rate("FP32", card.rates.fp32, "FLOP/s");
  rate(fmt::format("TF32, {}", matrix), card.rates.tf32, "FLOP/s");
  rate(fmt::format("FP16, {}", matrix), card.rates.fp16, "FLOP/s");
  rate(fmt::format("BF16, {}", matrix), card.rates.bf16, "FLOP/s");
  rate(fmt::format("FP8, {}", matrix), card.rates.fp8, "FLOP/s");
  rate(fmt::format("INT8, {}", matrix), card.rates.int8, "OP/s");
  return text;
}

}  // namespace kb::card

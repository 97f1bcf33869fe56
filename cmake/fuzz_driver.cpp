// Runs a fuzz target without libFuzzer, so that every build exercises it: first over the files
// given as arguments, then over random inputs, most of them mutations of those files.
//
//   target [--runs=N] [--seed=S] [FILE...]
//
// It knows nothing of coverage and finds shallow faults only; for a real campaign build with clang
// and -DKERNELBENCH_FUZZ=ON. When the target crashes, the seed and the run number printed to
// standard error repeat it.
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kMaxInputBytes = 4096;

// What to say when the target crashes; written before each run, read in the signal handler.
char current_run[128];

void report_crash(int signal) {
  std::string_view text = current_run;
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

class Mutator {
 public:
  Mutator(std::uint64_t seed, const std::vector<Bytes>& corpus) : random_(seed), corpus_(corpus) {}

  // Returns random bytes, or a file of the corpus with a few of its bytes changed.
  Bytes next() {
    Bytes bytes;
    if (corpus_.empty() || below(8) == 0) {
      bytes.resize(below(257));
      for (std::uint8_t& byte : bytes) byte = random_byte();
      return bytes;
    }
    bytes = corpus_[below(corpus_.size())];
    for (std::size_t step = 1 + below(8); step > 0; --step) mutate(bytes);
    if (bytes.size() > kMaxInputBytes) bytes.resize(kMaxInputBytes);
    return bytes;
  }

 private:
  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }
  std::uint8_t random_byte() { return static_cast<std::uint8_t>(below(256)); }

  void mutate(Bytes& bytes) {
    // Values at which length fields and bounds go wrong.
    static constexpr std::uint8_t kEdges[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    if (bytes.empty()) bytes.push_back(random_byte());
    const std::size_t at = below(bytes.size());
    const auto here = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(7)) {
      case 0: bytes[at] = random_byte(); break;
      case 1: bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ (1u << below(8))); break;
      case 2: bytes[at] = kEdges[below(std::size(kEdges))]; break;
      case 3: bytes.insert(here, random_byte()); break;
      case 4: bytes.erase(here); break;
      case 5: bytes.resize(at); break;
      default: {
        const Bytes& other = corpus_[below(corpus_.size())];
        bytes.insert(here, other.begin(),
                     other.begin() + static_cast<std::ptrdiff_t>(below(other.size() + 1)));
      }
    }
  }

  std::mt19937_64 random_;
  const std::vector<Bytes>& corpus_;
};

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t runs = 0;
  std::uint64_t seed = 1;
  std::vector<Bytes> corpus;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--runs=")) {
      runs = std::strtoull(argument.c_str() + 7, nullptr, 10);
    } else if (argument.starts_with("--seed=")) {
      seed = std::strtoull(argument.c_str() + 7, nullptr, 10);
    } else {
      std::ifstream file(argument, std::ios::binary);
      if (!file) {
        std::fprintf(stderr, "cannot read %s\n", argument.c_str());
        return 2;
      }
      corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }

  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    std::signal(signal, report_crash);
  }
  for (std::size_t i = 0; i < corpus.size(); ++i) {
    std::snprintf(current_run, sizeof current_run, "fuzz: crash in corpus file %zu\n", i);
    LLVMFuzzerTestOneInput(corpus[i].data(), corpus[i].size());
  }
  Mutator mutator(seed, corpus);
  for (std::uint64_t run = 0; run < runs; ++run) {
    const Bytes bytes = mutator.next();
    std::snprintf(current_run, sizeof current_run, "fuzz: crash in run %llu of seed %llu\n",
                  static_cast<unsigned long long>(run), static_cast<unsigned long long>(seed));
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%zu files and %llu random inputs\n", corpus.size(),
              static_cast<unsigned long long>(runs));
  return 0;
}

// Where `kernelbench baseline` stores times, and how its files are called.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

namespace kb::cli {

/// A way to run a reference: as it is, or through torch.compile.
struct BaselineMode {
  std::string_view name;       ///< as users write it
  std::string_view arguments;  ///< of torch.compile; empty: the model as it is
  std::string_view file;       ///< KernelBench's name of such a baseline
};
inline constexpr std::array kBaselineModes = {
    BaselineMode{"eager", "", "baseline_time_torch.json"},
    BaselineMode{"default", "mode=\"default\"",
                 "baseline_time_torch_compile_inductor_default.json"},
    BaselineMode{"reduce-overhead", "mode=\"reduce-overhead\"",
                 "baseline_time_torch_compile_inductor_reduce-overhead.json"},
    BaselineMode{"max-autotune", "mode=\"max-autotune\"",
                 "baseline_time_torch_compile_inductor_max-autotune.json"},
    BaselineMode{"max-autotune-no-cudagraphs", "mode=\"max-autotune-no-cudagraphs\"",
                 "baseline_time_torch_compile_inductor_max-autotune-no-cudagraphs.json"},
    BaselineMode{"cudagraphs", "backend=\"cudagraphs\"",
                 "baseline_time_torch_compile_cudagraphs.json"},
};

/// $XDG_DATA_HOME/kernelbench/baselines: a folder for each name, with a file for each mode.
std::filesystem::path baselines_root();
/// The file of "NAME" (eager) or "NAME/MODE"; empty for what can be neither. Need not exist.
std::filesystem::path baseline_file(const std::string& name);

}  // namespace kb::cli

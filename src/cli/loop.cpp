#include "cli/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/failure.h"
#include "device/cuda/cuda.h"
#include "judge/device.h"

namespace kb::cli {
namespace {

problem::Language language_of(const prompt::Backend& backend) {
  if (backend.language == problem::Backend::cpp) return problem::Language::cpp;
  if (backend.language == problem::Backend::cuda_cpp) return problem::Language::cuda_cpp;
  if (backend.language == problem::Backend::hip) return problem::Language::hip;
  const auto named = problem::language_named(backend.name);
  // One of the user's own: the source has to tell.
  return named && problem::is_python(*named) ? *named : problem::Language::unknown;
}

}  // namespace

void add_loop_options(CLI::App& app, PromptingFlags& prompting, AskingFlags& asking,
                      JudgingFlags& judging) {
  judging.backend = prompting.backend;
  add_style_options(app, prompting);
  add_asking_options(app, asking);
  add_judging_options(app, judging);
  app.get_option("--backend")->description(kBackends)->capture_default_str();
}

std::vector<std::string> share_words(PromptingFlags& prompting, JudgingFlags& judging) {
  prompting.backend = judging.backend;
  prompting.size = judging.size;
  prompting.precision = judging.precision;
  const auto request = request_from(prompting);
  const auto library = load_library(prompting);
  const auto language = language_of(backend_named(library, request.backend));
  // What a native kernel is written in, its file tells.
  judging.backend = problem::is_python(language) ? problem::name_of(language) : "";

  const auto listed = devices_of(judging);
  const auto first = device_for(language, listed);
  const auto kind = judge::kind_of_device(first);
  if (kind == "cuda" && cuda::device_count() == 0)
    throw UsageError("these kernels need a GPU: " + cuda::availability());
  // Extensions, Triton and Helion can do without; what a model writes for a GPU seldom does.
  if (kind == "cpu" && listed.empty() && problem::is_python(language))
    throw UsageError(fmt::format(
        "kernels in {} are for a GPU, and there is none here ({}): give --backend cpp, or "
        "--device cpu to judge them on the CPU all the same",
        problem::name_of(language), cuda::availability()));
  if (const auto refused = problem::refused_precision(language, judging.precision, kind == "cpu"))
    throw UsageError(*refused);
  options_from(judging, first);
  std::vector<std::string> devices;
  std::ranges::copy_if(listed, std::back_inserter(devices), [&](const std::string& device) {
    return judge::kind_of_device(device) == kind;
  });
  if (devices.empty()) devices.push_back(first);
  return devices;
}

}  // namespace kb::cli

#include "cli/job.h"

#include <filesystem>
#include <utility>

#include "device/cuda/cuda.h"
#include "problem/text_file.h"

namespace kb::cli {
namespace {

// A refusal is a part of the key, and may be told to a model: a folder has many spellings, and is
// nobody's business.
std::string without_folder(std::string sentence, const std::filesystem::path& path) {
  const auto whole = problem::printable(path.string());
  if (sentence.starts_with(whole))
    sentence.replace(0, whole.size(), problem::printable(path.filename().string()));
  return sentence;
}

}  // namespace

JudgingJob make_job(const problem::Sample& sample, problem::Problem problem,
                    const JudgingFlags& flags, const std::vector<std::string>& devices,
                    const judge::Environment& environment) {
  JudgingJob job{sample, std::move(problem), std::nullopt, "", std::nullopt, {}};
  auto candidate = load_candidate(flags, sample.path);
  if (candidate)
    job.candidate = std::move(*candidate);
  else
    job.refusal = without_folder(candidate.error(), sample.path);
  const auto language = job.candidate ? job.candidate->language : problem::Language::unknown;
  const auto device = device_for(language, devices);
  const auto kind = judge::kind_of_device(device);
  job.not_here = problem::refused_precision(language, flags.precision, kind == "cpu");
  if (!job.not_here && kind == "cuda" && cuda::device_count() == 0)
    job.not_here = "they need a GPU: " + cuda::availability();
  job.key = {job.problem.label,
             sample.sample,
             job.problem.hash,
             job.candidate ? job.candidate->hash : job.refusal,
             kind,
             settings_of(flags, device, environment).dump()};
  return job;
}

nlohmann::json settings_of(const JudgingFlags& flags, const std::string& device,
                           const judge::Environment& environment) {
  auto settings = judge::settings_json(options_from(flags, device));
  settings["torch"] = environment.python.torch_version;
  if (!flags.backend.empty()) settings["backend"] = flags.backend;
  return settings;
}

judge::Result refused(const JudgingJob& job) {
  return judge::unjudged(job.problem, problem::Candidate{.path = job.sample.path},
                         judge::Verdict::static_reject, job.refusal);
}

store::Row row_of(const JudgingJob& job, nlohmann::json result) {
  result["sample"] = job.sample.sample;
  return {job.key, result.at("verdict").get<std::string>(),
          result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), ""};
}

}  // namespace kb::cli

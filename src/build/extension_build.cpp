#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "build/builder.h"
#include "build/extensions.h"
#include "build/files.h"

namespace kb::build {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSomeArchitecture = "sm_90";

// Does it ask torch.utils.cpp_extension for nvcc? Too often said, this costs a build anew.
bool has_cuda_sources(const std::string& source) {
  for (const char* word : {"cuda_sources", "with_cuda", ".cu\"", ".cu'"})
    if (source.find(word) != std::string::npos) return true;
  return false;
}

}  // namespace

std::expected<Result, std::string> Builder::build_python(const std::string& source,
                                                         const Python& python,
                                                         const std::string& problem_source) {
  // Whoever builds an extension names the module that does it. (One who hides the name gets no
  // extension built ahead, and fails when the worker, which has no compiler, imports it.)
  if (source.find("cpp_extension") == std::string::npos &&
      source.find("load_inline") == std::string::npos) {
    return Result{};
  }
  auto key = impl_->python_key(source, python, problem_source);
  if (!key) return std::unexpected(std::move(key.error()));
  return impl_->get(*key, [&](Workplace& workplace) {
    return impl_->import_python(source, python, problem_source, workplace);
  });
}

std::expected<std::string, std::string> Builder::Impl::python_key(
    const std::string& source, const Python& python, const std::string& problem_source) {
  Key key("python");
  key.add("source", source);
  key.add("problem", problem_source);
  key.add("python", python.identity);
  key.add("compiler", compiler.identity);
  if (has_cuda_sources(source)) {
    key.add("architecture", python.architecture);
    if (const auto& cuda = nvcc()) key.add("nvcc", cuda->identity);
  }
  const fs::path package = python.package_folder / "kernelbench_worker";
  if (!is_there(package / "prebuild.py")) {
    return std::unexpected(
        fmt::format("{} is missing: reinstall kernelbench, or set KERNELBENCH_HOME to its folder",
                    (package / "prebuild.py").string()));
  }
  const auto code = [](const fs::path& path) {
    return path.extension() == ".py" && !path.stem().string().ends_with("_test");
  };
  if (auto added = add_files(key, package, code); !added) {
    return std::unexpected(std::move(added.error()));
  }
  // What prebuild.py puts before PyTorch's headers.
  for (const char* folder : {"lean", "lean/ATen", "lean/torch"}) {
    if (!is_there(package / folder)) continue;
    key.add("headers", folder);
    if (auto added = add_files(key, package / folder, is_header); !added) {
      return std::unexpected(std::move(added.error()));
    }
  }
  return key.hex();
}

std::expected<Outcome, std::string> Builder::Impl::import_python(const std::string& source,
                                                                 const Python& python,
                                                                 const std::string& problem_source,
                                                                 Workplace& workplace) {
  if (auto ready = furnish(workplace, {{"candidate.py", source}, {"problem.py", problem_source}});
      !ready) {
    return std::unexpected(std::move(ready.error()));
  }
  const Place here = place(workplace);
  sandbox::Command import = command(workplace, here);
  import.argv = {python.executable,
                 "-I",
                 "-B",
                 (python.package_folder / "kernelbench_worker" / "prebuild.py").string(),
                 "--source",
                 here.root + "/candidate.py",
                 "--out",
                 here.root};
  if (!problem_source.empty()) {
    import.argv.insert(import.argv.end(), {"--problem", here.root + "/problem.py"});
  }
  if (!python.architecture.empty() && has_cuda_sources(source)) {
    import.argv.insert(import.argv.end(), {"--architecture", python.architecture});
  }
  const unsigned jobs =
      options.jobs != 0 ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
  // ninja may be a package of the same Python.
  import.environment[0].second =
      fs::path(python.executable).parent_path().string() + ":/usr/bin:/bin";
  import.environment.insert(import.environment.end(), {{"MAX_JOBS", std::to_string(jobs)},
                                                       {"TORCH_EXTENSIONS_DIR", here.root + "/ext"},
                                                       { "CXX",
                                                         compiler.path.string() }});
  if (const auto& cuda = nvcc(); cuda && has_cuda_sources(source)) {
    import.environment[0].second =
        cuda->path.parent_path().string() + ":" + import.environment[0].second;
    import.environment.emplace_back("CUDA_HOME", cuda->root.string());
    // Machine code for one GPU only; without a GPU for some, so that what is wrong shows.
    import.environment.emplace_back(
        "TORCH_CUDA_ARCH_LIST",
        torch_architecture(python.architecture.empty() ? kSomeArchitecture : python.architecture));
    import.read_only.push_back({cuda->root.string(), ""});
  }
  if (!python.thunderkittens.empty()) {
    import.environment.emplace_back("THUNDERKITTENS_ROOT", python.thunderkittens);
    import.read_only.push_back({python.thunderkittens, ""});
  }
  for (const std::string& folder : python.folders) import.read_only.push_back({folder, ""});
  import.read_only.push_back({python.package_folder.string(), ""});

  auto ran = run(import, workplace);
  if (!ran) return std::unexpected(std::move(ran.error()));
  if (ran->timed_out || ran->too_much) return outcome(workplace, *ran, Status::load_error, "");

  const auto load_error = [&](std::string_view why) {
    return outcome(workplace, *ran, Status::load_error, fmt::format("{}\n{}", why, ran->output));
  };
  if (!ran->succeeded()) {
    // Either a candidate that ended the process, or a Python that does not work. The first gets
    // what it deserves; the second must not be remembered.
    auto ended = load_error(fmt::format("importing the candidate ended Python with {} {}",
                                        ran->exit.exited ? "exit code" : "signal", ran->exit.code));
    if (ended) ended->keep = false;
    return ended;
  }
  auto folder = open_folder(workplace.build_folder());
  if (!folder) {
    return std::unexpected(fmt::format("cannot read {} in the build cache ({}): use another one",
                                       workplace.build_folder().string(),
                                       error_text(folder.error())));
  }
  std::expected<std::string, int> json = std::unexpected(0);
  if (auto file = open_beneath(folder->get(), "extensions.json")) {
    json = read_file(file->get(), kMaxExtensionsBytes);
  }
  if (!json)
    return load_error("importing the candidate ended Python before its builds were listed");
  auto extensions = parse_extensions(*json);
  if (!extensions) {
    return load_error(
        fmt::format("the candidate spoilt its build: extensions.json {}", extensions.error()));
  }
  const std::string& words = extensions->text.empty() ? ran->output : extensions->text;
  if (extensions->status != Status::ok) return outcome(workplace, *ran, extensions->status, words);
  for (const auto& [name, file] : extensions->extensions) {
    auto adopted = workplace.adopt(file, name + ".so", kMaxLibraryBytes);
    if (adopted) continue;
    if (!adopted.error().candidates_fault) return std::unexpected(adopted.error().text);
    workplace.forget();
    return outcome(workplace, *ran, Status::compile_error, adopted.error().text);
  }
  return outcome(workplace, *ran, Status::ok, words);
}

}  // namespace kb::build

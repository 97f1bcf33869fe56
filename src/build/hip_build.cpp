#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <utility>

#include "build/builder.h"

namespace kb::build {

namespace fs = std::filesystem;

namespace {

// What everything that compiles HIP can build.
constexpr const char* kLeastHipKernel =
    "#include <hip/hip_runtime.h>\n"
    "__global__ void nothing() {}\n"
    "extern \"C\" int kb_run(const void*) { nothing<<<1, 1>>>(); return hipGetLastError(); }\n";

}  // namespace

struct HipTools {
  Hip hip;
  std::optional<Nvcc> nvcc;  // null for AMD's: hipcc

  fs::path compiler() const { return nvcc ? nvcc->path : hip.hipcc; }
};

std::expected<Result, std::string> Builder::build_hip(const std::string& source,
                                                      const std::string& architecture) {
  if (!is_architecture(architecture) && !is_amd_architecture(architecture)) {
    return std::unexpected(
        fmt::format("'{}' is no GPU architecture: give one such as gfx942 or sm_90", architecture));
  }
  const auto name = impl_->hip_name(source, architecture);
  if (!name) return std::unexpected(name.error());
  const auto tools = impl_->hip_tools(architecture);
  const auto key_of = [&](const std::string& one) -> std::expected<std::string, std::string> {
    if (!tools) return std::unexpected(tools.error());
    return impl_->hip_key(one, *tools);
  };
  return impl_->get_named(*name, key_of(*name), [&](Workplace& workplace) {
    const Impl::Least least{.compiler = tools->compiler(),
                            .architecture = architecture,
                            .key = [&]() -> std::expected<std::string, std::string> {
                              const auto its_name = impl_->hip_name(kLeastHipKernel, architecture);
                              return its_name ? key_of(*its_name) : its_name;
                            },
                            .run =
                                [&](Workplace& here) {
                                  return impl_->run_hip(kLeastHipKernel, architecture, *tools,
                                                        here);
                                }};
    return impl_->or_broken(impl_->run_hip(source, architecture, *tools, workplace), least);
  });
}

std::expected<HipTools, std::string> Builder::Impl::hip_tools(const std::string& architecture) {
  std::call_once(hip_sought, [&] {
    hipcc_found = find_hipcc(options.hip_folders);
    hip_headers_found = find_hip_headers(options.hip_folders);
  });
  const bool amd = is_amd_architecture(architecture);
  if (!amd && !nvcc()) return std::unexpected(nvcc().error());
  const auto& hip = amd ? hipcc_found : hip_headers_found;
  if (!hip) return std::unexpected(hip.error());
  HipTools tools{*hip, std::nullopt};
  if (!amd) tools.nvcc = *nvcc();
  return tools;
}

// What a machine without HIP knows of the key.
std::expected<std::string, std::string> Builder::Impl::hip_name(
    const std::string& source, const std::string& architecture) const {
  Key key("hip name");
  key.add("source", source);
  if (is_amd_architecture(architecture)) {
    key.add("architecture", architecture);
    for (const std::string& flag : hipcc_flags()) key.add("flag", flag);
  } else {
    key.add("architecture", architecture_flag(architecture));
    for (const std::string& flag : cuda_flags()) key.add("flag", flag);
    for (const std::string& flag : hip_on_nvcc_flags()) key.add("flag", flag);
    for (const std::string& library : cuda_libraries(source)) key.add("library", library);
  }
  if (auto added = add_own_headers(key, options.include_directory); !added) {
    return std::unexpected(std::move(added.error()));
  }
  return key.hex();
}

std::expected<std::string, std::string> Builder::Impl::hip_key(const std::string& name,
                                                               const HipTools& tools) const {
  Key key("hip");
  key.add("name", name);
  key.add("hip", tools.hip.identity);
  if (tools.nvcc) key.add("nvcc", tools.nvcc->identity);
  key.add("compiler", compiler.portable_identity);
  if (auto added = add_dlpack(key, options.include_directory); !added) {
    return std::unexpected(std::move(added.error()));
  }
  return key.hex();
}

std::expected<Outcome, std::string> Builder::Impl::run_hip(const std::string& source,
                                                           const std::string& architecture,
                                                           const HipTools& tools,
                                                           Workplace& workplace) const {
  const Hip& hip = tools.hip;
  if (tools.nvcc) return run_nvcc(source, architecture, *tools.nvcc, nullptr, &hip, workplace);
  if (auto ready = furnish(workplace, {{"kernel.hip", source}}); !ready) {
    return std::unexpected(std::move(ready.error()));
  }
  const Place here = place(workplace);
  sandbox::Command compile = command(workplace, here);
  compile.environment.emplace_back("HIP_PLATFORM", "amd");
  if (hip.root != "/usr") {
    compile.read_only.push_back({hip.root.string(), ""});
    compile.environment.emplace_back("ROCM_PATH", hip.root.string());
    compile.environment.emplace_back("HIP_PATH", hip.root.string());
  }
  compile.argv = {hip.hipcc.string()};
  const auto add = [&](const std::vector<std::string>& arguments) {
    compile.argv.insert(compile.argv.end(), arguments.begin(), arguments.end());
  };
  add(hipcc_flags());
  add({"--offload-arch=" + architecture, "-I" + here.include, "kernel.hip", "-o", "kernel.so"});
  add(hip_library_flags(hip, source));
  return compile_library(compile, nullptr, workplace);
}

}  // namespace kb::build

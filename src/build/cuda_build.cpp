#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "build/builder.h"

namespace kb::build {

namespace {

// What every working toolkit can build.
constexpr const char* kLeastKernel =
    "__global__ void nothing() {}\n"
    "extern \"C\" int kb_run(const void*) { nothing<<<1, 1>>>(); return cudaGetLastError(); }\n";

}  // namespace

std::expected<Result, std::string> Builder::build_cuda(const std::string& source,
                                                       const std::string& architecture,
                                                       const TvmFfi& tvm_ffi) {
  if (!is_architecture(architecture)) {
    return std::unexpected(
        fmt::format("'{}' is no GPU architecture: give one such as sm_90", architecture));
  }
  const auto needed = needed_by(source, tvm_ffi);
  if (!needed) return std::unexpected(needed.error());
  const auto name = impl_->cuda_name(source, architecture, *needed);
  if (!name) return std::unexpected(name.error());
  const auto& nvcc = impl_->nvcc();
  const auto key_of = [&](const std::string& one) -> std::expected<std::string, std::string> {
    if (!nvcc) return std::unexpected(nvcc.error());
    return impl_->cuda_key(one, *nvcc);
  };
  return impl_->get_named(*name, key_of(*name), [&](Workplace& workplace) {
    const Impl::Least least{
        .compiler = nvcc->path,
        .architecture = architecture,
        .key = [&]() -> std::expected<std::string, std::string> {
          const auto its_name = impl_->cuda_name(kLeastKernel, architecture, nullptr);
          return its_name ? key_of(*its_name) : its_name;
        },
        .run =
            [&](Workplace& here) {
              return impl_->run_nvcc(kLeastKernel, architecture, *nvcc, nullptr, nullptr, here);
            }};
    return impl_->or_broken(
        impl_->run_nvcc(source, architecture, *nvcc, *needed, nullptr, workplace), least);
  });
}

const std::expected<Nvcc, std::string>& Builder::Impl::nvcc() {
  std::call_once(nvcc_sought, [&] { nvcc_found = find_nvcc(options.nvcc_folders); });
  return nvcc_found;
}

// What a machine without nvcc knows of the key.
std::expected<std::string, std::string> Builder::Impl::cuda_name(const std::string& source,
                                                                 const std::string& architecture,
                                                                 const TvmFfi* tvm_ffi) const {
  Key key("cuda name");
  key.add("source", source);
  key.add("architecture", architecture_flag(architecture));
  for (const std::string& flag : cuda_flags()) key.add("flag", flag);
  for (const std::string& library : cuda_libraries(source)) key.add("library", library);
  if (auto added = add_own_headers(key, options.include_directory); !added) {
    return std::unexpected(std::move(added.error()));
  }
  if (auto added = add_tvm_ffi(key, tvm_ffi); !added) {
    return std::unexpected(std::move(added.error()));
  }
  return key.hex();
}

std::expected<std::string, std::string> Builder::Impl::cuda_key(const std::string& name,
                                                                const Nvcc& nvcc) const {
  Key key("cuda");
  key.add("name", name);
  key.add("nvcc", nvcc.identity);
  key.add("compiler", compiler.portable_identity);
  if (auto added = add_dlpack(key, options.include_directory); !added) {
    return std::unexpected(std::move(added.error()));
  }
  return key.hex();
}

std::expected<Outcome, std::string> Builder::Impl::run_nvcc(const std::string& source,
                                                            const std::string& architecture,
                                                            const Nvcc& nvcc, const TvmFfi* tvm_ffi,
                                                            const Hip* hip,
                                                            Workplace& workplace) const {
  const char* file = hip != nullptr ? "kernel.hip" : "kernel.cu";
  const auto sources = furniture(file, source, tvm_ffi);
  if (!sources) return std::unexpected(sources.error());
  if (auto ready = furnish(workplace, *sources); !ready) {
    return std::unexpected(std::move(ready.error()));
  }
  const Place here = place(workplace);
  sandbox::Command compile = command(workplace, here);
  compile.read_only.push_back({nvcc.root.string(), ""});
  compile.argv = {nvcc.path.string()};
  const auto add = [&](const std::vector<std::string>& arguments) {
    compile.argv.insert(compile.argv.end(), arguments.begin(), arguments.end());
  };
  add(cuda_flags());
  add({architecture_flag(architecture), "-ccbin=" + compiler.path.string(), "-I" + here.include});
  auto libraries = cuda_libraries(source);
  if (hip != nullptr) {
    // Its headers call the driver.
    libraries.emplace_back("cuda");
    // The system's own are where a compiler looks last.
    if (hip->root != "/usr") {
      compile.read_only.push_back({hip->include.string(), ""});
      add({"-isystem", hip->include.string()});
    }
    add(hip_on_nvcc_flags());
  }
  add({file, "-o", "kernel.so"});
  show_tvm_ffi(compile, source, tvm_ffi, here);
  add(library_flags(nvcc, libraries));
  return compile_library(compile, tvm_ffi, workplace);
}

}  // namespace kb::build

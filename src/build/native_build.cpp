#include <fmt/format.h>

#include <utility>

#include "build/builder.h"
#include "build/files.h"
#include "problem/native_source.h"

namespace kb::build {

namespace fs = std::filesystem;

namespace {

constexpr const char* kTvmFfiLibrary = "libtvm_ffi.so";
constexpr const char* kTvmFfiAdapter = "kernelbench/tvm_ffi_adapter.cpp";

}  // namespace

// ---- what natives share

std::expected<const TvmFfi*, std::string> needed_by(const std::string& source,
                                                    const TvmFfi& tvm_ffi) {
  if (!problem::includes_tvm_ffi(source)) return nullptr;
  if (!tvm_ffi.folder.empty()) return &tvm_ffi;
  return std::unexpected(
      "the candidate includes TVM-FFI, and Python has no package apache-tvm-ffi: run `make build`, "
      "or install it with pip");
}

std::expected<void, std::string> Builder::Impl::add_tvm_ffi(Key& key, const TvmFfi* tvm_ffi) const {
  if (tvm_ffi == nullptr) return {};
  key.add("tvm-ffi", tvm_ffi->version);
  const fs::path adapter = options.include_directory / kTvmFfiAdapter;
  const auto bytes = read_file(adapter, kMaxHeaderBytes);
  if (!bytes) {
    return std::unexpected(fmt::format("cannot read {} ({}): reinstall kernelbench",
                                       adapter.string(), error_text(bytes.error())));
  }
  key.add("tvm-ffi adapter", *bytes);
  return {};
}

// The library is copied, so that an entry of the cache is whole: it serves where the package is in
// another place, and the worker's sandbox need not show one.
std::expected<Sources, std::string> Builder::Impl::furniture(const char* name,
                                                             const std::string& source,
                                                             const TvmFfi* tvm_ffi) const {
  Sources sources{{name, source}};
  if (tvm_ffi == nullptr) return sources;
  const fs::path library = tvm_ffi->folder / "lib" / kTvmFfiLibrary;
  auto bytes = read_file(library, kMaxLibraryBytes);
  if (!bytes) {
    return std::unexpected(fmt::format("cannot read {} ({}): install apache-tvm-ffi again",
                                       library.string(), error_text(bytes.error())));
  }
  sources.emplace_back(kTvmFfiLibrary, std::move(*bytes));
  return sources;
}

void Builder::Impl::show_tvm_ffi(sandbox::Command& compile, const std::string& source,
                                 const TvmFfi* tvm_ffi, const Place& place) const {
  if (tvm_ffi == nullptr) return;
  const fs::path headers = tvm_ffi->folder / "include";
  const std::string shown = launcher.will_sandbox() ? kTvmFfiRoot : headers.string();
  compile.read_only.push_back({headers.string(), shown});
  // Before any other folder: its dlpack/ is of one release with it, and newer than what kernel.h
  // needs.
  compile.argv.insert(compile.argv.begin() + 1, "-I" + shown);
  if (problem::is_tvm_ffi_function(source)) {
    compile.argv.push_back(place.include + "/" + kTvmFfiAdapter);
  }
  compile.argv.emplace_back(kTvmFfiLibrary);
}

// Runs a compiler that is to leave kernel.so.
std::expected<Outcome, std::string> Builder::Impl::compile_library(const sandbox::Command& command,
                                                                   const TvmFfi* tvm_ffi,
                                                                   Workplace& workplace) const {
  auto ran = run(command, workplace);
  if (!ran) return std::unexpected(std::move(ran.error()));
  if (!ran->succeeded()) return outcome(workplace, *ran, Status::compile_error, ran->output);
  std::vector<const char*> libraries{"kernel.so"};
  if (tvm_ffi != nullptr) libraries.insert(libraries.begin(), kTvmFfiLibrary);
  for (const char* library : libraries) {
    auto adopted = workplace.adopt(library, library, kMaxLibraryBytes);
    if (adopted) continue;
    if (!adopted.error().candidates_fault) return std::unexpected(adopted.error().text);
    workplace.forget();
    return outcome(workplace, *ran, Status::compile_error, adopted.error().text);
  }
  return outcome(workplace, *ran, Status::ok, ran->output);
}

// ---- C++

std::expected<Result, std::string> Builder::build_cpp(const std::string& source,
                                                      const TvmFfi& tvm_ffi) {
  const auto needed = needed_by(source, tvm_ffi);
  if (!needed) return std::unexpected(needed.error());
  auto key = impl_->cpp_key(source, *needed);
  if (!key) return std::unexpected(std::move(key.error()));
  return impl_->get(
      *key, [&](Workplace& workplace) { return impl_->compile_cpp(source, *needed, workplace); });
}

std::expected<std::string, std::string> Builder::Impl::cpp_key(const std::string& source,
                                                               const TvmFfi* tvm_ffi) const {
  Key key("cpp");
  key.add("source", source);
  for (const std::string& flag : cpp_flags()) key.add("flag", flag);
  key.add("compiler", compiler.identity);
  if (auto added = add_own_headers(key, options.include_directory); !added) {
    return std::unexpected(std::move(added.error()));
  }
  if (auto added = add_tvm_ffi(key, tvm_ffi); !added) {
    return std::unexpected(std::move(added.error()));
  }
  if (auto added = add_dlpack(key, options.include_directory); !added) {
    return std::unexpected(std::move(added.error()));
  }
  return key.hex();
}

std::expected<Outcome, std::string> Builder::Impl::compile_cpp(const std::string& source,
                                                               const TvmFfi* tvm_ffi,
                                                               Workplace& workplace) const {
  const auto sources = furniture("kernel.cpp", source, tvm_ffi);
  if (!sources) return std::unexpected(sources.error());
  if (auto ready = furnish(workplace, *sources); !ready) {
    return std::unexpected(std::move(ready.error()));
  }
  const Place here = place(workplace);
  sandbox::Command compile = command(workplace, here);
  compile.argv = {compiler.path.string()};
  compile.argv.insert(compile.argv.end(), cpp_flags().begin(), cpp_flags().end());
  for (const std::string& argument : {"-I" + here.include, std::string("kernel.cpp"),
                                      std::string("-o"), std::string("kernel.so")}) {
    compile.argv.push_back(argument);
  }
  show_tvm_ffi(compile, source, tvm_ffi, here);
  return compile_library(compile, tvm_ffi, workplace);
}

}  // namespace kb::build

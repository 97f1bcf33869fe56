// What a candidate is written in: the name that results, scores and prompts call its backend.
//
// How a candidate is run is another matter (Backend in candidate.h): every Python language is a
// ModelNew to the judge.
#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kb::problem {

enum class Language {
  unknown,  ///< of a file that could not be read
  cpp,
  cuda_cpp,
  // ModelNew in Python, by what its kernels are written in.
  torch,          ///< PyTorch alone
  cpp_extension,  ///< an inline extension without device code
  cuda,           ///< an inline extension with CUDA sources
  thunderkittens,
  hip,  ///< an inline extension with HIP sources; and a .hip file
  triton,
  helion,
  cute,
  tilelang,
  cuda_tile,
  cupy,
};

/// "triton", …; empty for unknown.
std::string_view name_of(Language language);
/// Null for a name that is none.
std::optional<Language> language_named(std::string_view name);
/// All but unknown, in the order of the enumeration.
std::span<const Language> all_languages();
/// True for those that a .py file can have.
bool is_python(Language language);
/// True for those that no CPU can run: there is neither a compiler for it nor an interpreter.
bool needs_gpu(Language language);

/// The language of a Python candidate, by what it imports and uses. A name in a comment or a string
/// counts for nothing, an import that is never used neither. Device code counts where it lies in
/// the strings of a file that builds extensions. Of several the more particular one is reported:
/// helion, tilelang, cute, cuda_tile, triton, cupy, then extensions (thunderkittens, hip, cuda,
/// cpp_extension), then torch. Never unknown.
Language language_of_python(std::string_view source);

/// Null where candidates in `language` can be judged at `precision` (fp32, fp16, bf16), else one
/// sentence that says which it takes. `on_cpu`: they would run there.
std::optional<std::string> refused_precision(Language language, std::string_view precision,
                                             bool on_cpu);

}  // namespace kb::problem

// What kind of operator a problem is about, for people who choose problems.
#pragma once

#include <span>
#include <string_view>

namespace kb::problem {

/// The family of a problem by the words of its name and the names that its code uses, the heaviest
/// first: `transformer`, `recurrent`, `transposed convolution`, `convolution`, `scan`, `matmul`,
/// `loss`, `pooling`, `normalization`, `activation`, `reduction`; `other` where it uses none of
/// them. A guess: nothing is run.
std::string_view family_of(std::string_view name, std::string_view python_source);

/// All families.
std::span<const std::string_view> families();

}  // namespace kb::problem

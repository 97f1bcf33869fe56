// A profile as people, programs and models read it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "profile/profiler.h"

namespace kb::profile {

/// The numbers side by side, what bounds each side, its longest kernels, and where files were kept.
std::string in_words(const Profile& profile);

/// `profiler`, `obstacle` (where there is one), for each side a sentence `SIDE` and its most
/// telling numbers `SIDE_NUMBER`, which is what a prompt shows; and `sides` with all of it.
nlohmann::json to_json(const Profile& profile);

/// What bounds a side, or why that is not known.
std::string sentence_on(const Side& side);

}  // namespace kb::profile

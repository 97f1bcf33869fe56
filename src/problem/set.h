// Problem sets beside the bundled one: imported sets, by name, and folders.
#pragma once

#include <expected>
#include <filesystem>
#include <string>
#include <string_view>

namespace kb::problem {

/// Where a user's own sets and baselines lie: $XDG_DATA_HOME/kernelbench, else
/// ~/.local/share/kernelbench. Need not exist, as the next.
std::filesystem::path data_root();
/// Where imported sets lie, a folder each: data_root()/sets.
std::filesystem::path sets_root();

/// Letters, digits, `.`, `_`, `-`, at most 100, the first one a letter or digit: what can be a
/// set's name and needs no escape anywhere. `bundled` is none.
bool is_set_name(std::string_view text);

/// The folder of a set: empty text or `bundled` is the bundled set, a name an imported one,
/// anything else
/// (`./NAME` for a folder called like a set) a folder. Error: one sentence that names the imported
/// sets.
std::expected<std::filesystem::path, std::string> find_set(const std::string& set);

}  // namespace kb::problem

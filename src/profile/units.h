// Times and sizes as people read them.
#pragma once

#include <string>

namespace kb::profile {

/// "412.0 us", "1.250 ms"
std::string time_text(double us);
/// "0 B", "512 B", "48.0 KB", "2.15 GB": powers of ten, as bandwidths are given.
std::string bytes_text(double bytes);

}  // namespace kb::profile

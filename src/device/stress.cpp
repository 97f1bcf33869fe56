#include "device/stress.h"

#include <stdexcept>

namespace kb {

std::string_view name_of(Stress kind) {
  switch (kind) {
    case Stress::scaled_up: return "scaled_up";
    case Stress::scaled_down: return "scaled_down";
    case Stress::sign_flipped: return "sign_flipped";
    case Stress::heavy_tails: return "heavy_tails";
    case Stress::outliers: return "outliers";
    case Stress::small_integers: return "small_integers";
    case Stress::planted: return "planted";
  }
  throw std::invalid_argument("name_of: no such kind of stress");
}

}  // namespace kb

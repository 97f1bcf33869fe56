// The shortest time that a card's datasheet allows a problem: for people who look at a problem
// before there is a kernel. The judge's own bounds (judge/physics.h) are of the device at hand.
#pragma once

#include "card/card.h"
#include "examine/description.h"

namespace kb::examine {

struct SpeedOfLight {
  double memory_us = 0;  ///< inputs and weights once, and the outputs beyond the last-level cache
  /// Matrix products and convolutions on the tensor cores (fp32 as TF32, which the tolerance admits
  /// for most), or the other operations on the vector units, whichever takes longer.
  double tensor_us = 0;
  double vector_us = 0;  ///< all operations on the vector units: what exact fp32 takes
  double us() const;     ///< the longer of memory_us and tensor_us
};

/// `precision`: fp32, fp16 or bf16, of inputs and weights.
SpeedOfLight speed_of_light(const Description& description, const card::Card& card,
                            const std::string& precision);

}  // namespace kb::examine

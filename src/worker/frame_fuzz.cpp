// What a hostile worker can send: a frame, and in it the description of a problem.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "worker/channel.h"
#include "worker/layout.h"
#include "worker/spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto body = kb::worker::parse_frame(bytes))
    if (const auto spec = kb::worker::parse_spec(body->value("spec", *body)))
      if (spec->input_bytes() < (1u << 20) && spec->output_bytes() < (1u << 20))
        (void)to_json(kb::worker::plan_layout(*spec, 2, {{"expected"}}, true), *spec, "cpu");
  return 0;
}

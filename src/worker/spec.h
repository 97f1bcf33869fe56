// What the reference worker reports about a problem, parsed strictly: the file may be a stranger's.
#pragma once

#include <expected>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "device/tensor.h"

namespace kb::worker {

struct InputSpec {
  std::optional<TensorSpec> tensor;  ///< none: a plain value
  nlohmann::json value;              ///< null, bool, number or string
};

struct ParamSpec {
  std::string name;  ///< state_dict name
  TensorSpec tensor;
  bool buffer = false;
};

struct ProblemSpec {
  std::vector<InputSpec> inputs;    ///< in the order of get_inputs()
  std::vector<TensorSpec> outputs;  ///< flattened, see docs/protocol.md
  std::vector<ParamSpec> params;    ///< state_dict order
  bool uses_rng = false;
  bool repeatable = true;
  bool mutates_inputs = false;
  double flops = 0;                ///< of one call, by PyTorch's counter; 0: unknown
  std::vector<std::string> sizes;  ///< keys of SIZES

  std::size_t input_bytes() const;
  std::size_t output_bytes() const;
  std::size_t param_bytes() const;
};

/// Error: one sentence that names the offending member.
std::expected<ProblemSpec, std::string> parse_spec(const nlohmann::json& spec);

}  // namespace kb::worker

#include "worker/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace kb::worker {
namespace {

constexpr std::size_t kMaxTensors = 100'000;
constexpr std::size_t kMaxDims = 8;
constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

std::expected<TensorSpec, std::string> parse_tensor(const nlohmann::json& json,
                                                    const std::string& where) {
  const auto bad = [&](const char* what) {
    return std::unexpected(fmt::format("{}: {}", where, what));
  };
  if (!json.is_object()) return bad("not an object");
  const auto dtype = json.find("dtype");
  if (dtype == json.end() || !dtype->is_string()) return bad("no dtype");
  const auto known = dtype_from_name(dtype->get_ref<const std::string&>());
  if (!known) return bad("a dtype that is not supported");
  const auto shape = json.find("shape");
  if (shape == json.end() || !shape->is_array() || shape->size() > kMaxDims)
    return bad("no shape of at most 8 dimensions");
  TensorSpec spec{.dtype = *known, .shape = {}};
  std::int64_t elements = 1;
  for (const auto& extent : *shape) {
    if (!extent.is_number_integer()) return bad("a shape that is not of integers");
    const auto value = extent.get<std::int64_t>();
    if (value < 0 || value > kMaxElements || (value > 0 && elements > kMaxElements / value))
      return bad("a shape out of range");
    elements *= value;
    spec.shape.push_back(value);
  }
  return spec;
}

bool flag_of(const nlohmann::json& json, const char* name, bool fallback) {
  const auto found = json.find(name);
  return found != json.end() && found->is_boolean() ? found->get<bool>() : fallback;
}

const nlohmann::json* array_of(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_array() && found->size() <= kMaxTensors ? &*found
                                                                                  : nullptr;
}

}  // namespace

std::size_t ProblemSpec::input_bytes() const {
  std::size_t sum = 0;
  for (const auto& input : inputs)
    if (input.tensor) sum += input.tensor->bytes();
  return sum;
}

std::size_t ProblemSpec::output_bytes() const {
  std::size_t sum = 0;
  for (const auto& output : outputs) sum += output.bytes();
  return sum;
}

std::size_t ProblemSpec::param_bytes() const {
  std::size_t sum = 0;
  for (const auto& param : params) sum += param.tensor.bytes();
  return sum;
}

std::expected<ProblemSpec, std::string> parse_spec(const nlohmann::json& json) {
  if (!json.is_object()) return std::unexpected("the problem's description is not an object");
  const auto* inputs = array_of(json, "inputs");
  const auto* outputs = array_of(json, "outputs");
  const auto* params = array_of(json, "params");
  if (!inputs || !outputs || !params)
    return std::unexpected("the problem's description lacks inputs, outputs or params");

  ProblemSpec spec;
  for (const auto& input : *inputs) {
    const std::string where = fmt::format("input {}", spec.inputs.size());
    if (!input.is_object()) return std::unexpected(where + ": not an object");
    const auto kind = input.find("kind");
    if (kind != input.end() && *kind == "tensor") {
      auto tensor = parse_tensor(input, where);
      if (!tensor) return std::unexpected(tensor.error());
      spec.inputs.push_back({std::move(*tensor), nullptr});
    } else {
      const auto value = input.find("value");
      if (value == input.end() || value->is_structured())
        return std::unexpected(where + ": neither a tensor nor a plain value");
      spec.inputs.push_back({std::nullopt, *value});
    }
  }
  for (const auto& output : *outputs) {
    auto tensor = parse_tensor(output, fmt::format("output {}", spec.outputs.size()));
    if (!tensor) return std::unexpected(tensor.error());
    spec.outputs.push_back(std::move(*tensor));
  }
  if (spec.outputs.empty()) return std::unexpected("the model returns no tensor");
  std::set<std::string> names;
  for (const auto& param : *params) {
    const std::string where = fmt::format("parameter {}", spec.params.size());
    auto tensor = parse_tensor(param, where);
    if (!tensor) return std::unexpected(tensor.error());
    const auto name = param.find("name");
    if (name == param.end() || !name->is_string()) return std::unexpected(where + ": no name");
    if (!names.insert(name->get<std::string>()).second)
      return std::unexpected(where + ": a name that occurs twice");
    spec.params.push_back(
        {name->get<std::string>(), std::move(*tensor), flag_of(param, "buffer", false)});
  }
  spec.uses_rng = flag_of(json, "uses_rng", false);
  spec.repeatable = flag_of(json, "repeatable", true);
  spec.mutates_inputs = flag_of(json, "mutates_inputs", false);
  if (const auto flops = json.find("flops"); flops != json.end() && flops->is_number())
    spec.flops = std::max(flops->get<double>(), 0.0);
  if (const auto* sizes = array_of(json, "sizes"))
    for (const auto& size : *sizes)
      if (size.is_string()) spec.sizes.push_back(size.get<std::string>());
  return spec;
}

}  // namespace kb::worker

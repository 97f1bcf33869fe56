#include "worker/layout.h"

#include <algorithm>

#include "worker/doorbell.h"

namespace kb::worker {
namespace {

constexpr std::size_t kAlignment = 4096;

// Hands out aligned ranges of a memory, front to back.
class Cursor {
 public:
  std::size_t take(std::size_t bytes, std::size_t guard = 0) {
    next_ += guard;
    const std::size_t at = next_;
    next_ = (at + bytes + guard + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  }
  std::size_t end() const { return next_; }

 private:
  std::size_t next_ = 0;
};

nlohmann::json tensor_json(const TensorSpec& spec, std::size_t offset) {
  return {{"dtype", std::string(name_of(spec.dtype))}, {"shape", spec.shape}, {"offset", offset}};
}

}  // namespace

Layout plan_layout(const ProblemSpec& spec, unsigned slots,
                   const std::vector<RegionRequest>& regions, bool publications) {
  Layout layout;
  layout.slots = slots;
  Cursor control;
  control.take(4096);  // the doorbell page
  if (publications)
    layout.publications =
        control.take(kMaxCalls * spec.outputs.size() * kPublicationWords * sizeof(std::int64_t));
  layout.control_size = control.end();
  Cursor cursor;
  for (const auto& param : spec.params) layout.params.push_back(cursor.take(param.tensor.bytes()));
  layout.inputs.resize(slots);
  for (auto& slot : layout.inputs)
    for (const auto& input : spec.inputs)
      if (input.tensor) slot.push_back(cursor.take(input.tensor->bytes()));
  for (const auto& request : regions) {
    auto& region = layout.regions[request.name];
    for (TensorSpec tensor : spec.outputs) {
      if (request.float64 && is_floating(tensor.dtype)) tensor.dtype = DType::float64;
      region.tensors.push_back(std::move(tensor));
    }
    region.offsets.resize(request.slots == 0 ? slots : std::min(slots, request.slots));
    for (auto& slot : region.offsets)
      for (const auto& tensor : region.tensors)
        slot.push_back(cursor.take(tensor.bytes(), request.guard_bytes));
  }
  layout.size = cursor.end();
  return layout;
}

nlohmann::json to_json(const Layout& layout, const ProblemSpec& spec, const std::string& device) {
  nlohmann::json json = {{"device", device},
                         {"control_size", layout.control_size},
                         {"size", layout.size},
                         {"heap_size", 0},
                         {"publications", layout.publications},
                         {"max_calls", kMaxCalls},
                         {"num_outputs", spec.outputs.size()},
                         {"params", nlohmann::json::array()},
                         {"inputs", nlohmann::json::array()},
                         {"regions", nlohmann::json::object()}};
  for (std::size_t i = 0; i < spec.params.size(); ++i) {
    auto entry = tensor_json(spec.params[i].tensor, layout.params[i]);
    entry["name"] = spec.params[i].name;
    json["params"].push_back(std::move(entry));
  }
  for (const auto& offsets : layout.inputs) {
    auto slot = nlohmann::json::array();
    std::size_t tensor = 0;
    for (const auto& input : spec.inputs)
      slot.push_back(input.tensor ? tensor_json(*input.tensor, offsets[tensor++])
                                  : nlohmann::json{{"value", input.value}});
    json["inputs"].push_back(std::move(slot));
  }
  for (const auto& [name, region] : layout.regions) {
    auto slots = nlohmann::json::array();
    for (const auto& offsets : region.offsets) {
      auto slot = nlohmann::json::array();
      for (std::size_t i = 0; i < offsets.size(); ++i)
        slot.push_back(tensor_json(region.tensors[i], offsets[i]));
      slots.push_back(std::move(slot));
    }
    json["regions"][name] = std::move(slots);
  }
  return json;
}

}  // namespace kb::worker

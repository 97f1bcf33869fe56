#include "worker/native/candidate.h"

#include <dlfcn.h>

#include <exception>
#include <new>
#include <utility>

#include "device/tensor.h"

namespace kb::worker::native {
namespace {

DLDataType dl_type(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(dtype));
  switch (dtype) {
    case DType::float64:
    case DType::float32:
    case DType::float16: return {kDLFloat, bits, 1};
    case DType::bfloat16: return {kDLBfloat, bits, 1};
    case DType::int64:
    case DType::int32:
    case DType::int16:
    case DType::int8: return {kDLInt, bits, 1};
    case DType::uint8: return {kDLUInt, bits, 1};
    // DLPack 0.6 (Debian 12) has no bool code; PyTorch of that time exported bools as unsigned
    // bytes.
    case DType::boolean: return {kDLUInt, bits, 1};
  }
  std::unreachable();
}

// Runs a call of the candidate, turning what it throws into a Fault.
template <class Body>
std::expected<void, Fault> guarded(const char* what, Body&& body) {
  try {
    const int code = body();
    if (code != 0)
      return std::unexpected(
          Fault{FaultKind::runtime, std::string(what) + " returned " + std::to_string(code)});
    return {};
  } catch (const std::bad_alloc&) {
    return std::unexpected(
        Fault{FaultKind::out_of_memory, std::string(what) + " ran out of memory (std::bad_alloc)"});
  } catch (const std::exception& error) {
    return std::unexpected(
        Fault{FaultKind::runtime, std::string(what) + " threw: " + error.what()});
  } catch (...) {
    return std::unexpected(Fault{FaultKind::runtime,
                                 std::string(what) + " threw something that is no std::exception"});
  }
}

int do_nothing(const kb_call*) {
  return 0;
}

}  // namespace

std::expected<void, std::string> TensorList::add(const nlohmann::json& entry, const Data& data) {
  const auto dtype = dtype_from_name(entry.value("dtype", std::string()));
  const auto offset = entry.value("offset", std::size_t{0});
  if (!dtype || !entry.contains("shape"))
    return std::unexpected(std::string("a tensor of the layout has no dtype or shape"));
  Shape shape{entry["shape"].get<std::vector<int64_t>>(), {}};
  shape.strides.resize(shape.extents.size());
  int64_t stride = 1;
  for (std::size_t d = shape.extents.size(); d-- > 0;) {
    shape.strides[d] = stride;
    stride *= shape.extents[d];
  }
  const std::size_t bytes = static_cast<std::size_t>(stride) * size_of(*dtype);
  if (offset > data.size || bytes > data.size - offset)
    return std::unexpected(std::string("a tensor of the layout lies outside the data"));
  shapes_.push_back(std::move(shape));
  DLTensor tensor{};
  tensor.data = data.base + offset;
  tensor.device = data.device;
  tensor.ndim = static_cast<int32_t>(shapes_.back().extents.size());
  tensor.dtype = dl_type(*dtype);
  tensor.shape = shapes_.back().extents.data();
  tensor.strides = shapes_.back().strides.data();
  tensors_.push_back(tensor);
  return {};
}

std::vector<DLTensor> TensorList::finish() {
  return std::move(tensors_);
}

std::expected<CallTable, std::string> CallTable::parse(const nlohmann::json& layout,
                                                       const Data& data, void* stream) {
  CallTable table;
  table.stream_ = stream;
  for (const auto& param : layout.at("params")) {
    if (auto added = table.param_list_.add(param, data); !added)
      return std::unexpected(added.error());
    table.names_.push_back(param.at("name").get<std::string>());
    table.name_pointers_.push_back(table.names_.back().c_str());
  }
  table.params_ = table.param_list_.finish();
  const auto& inputs = layout.at("inputs");
  const auto& outputs = layout.at("regions").at("outputs");
  if (inputs.size() != outputs.size())
    return std::unexpected(std::string("the layout's slots do not agree"));
  for (std::size_t s = 0; s < inputs.size(); ++s) {
    auto& slot = table.slots_.emplace_back();
    int32_t position = 0;
    for (const auto& input : inputs[s]) {
      if (const auto value = input.find("value"); value != input.end()) {
        kb_scalar scalar{KB_SCALAR_NONE, position, 0, 0};
        if (value->is_boolean())
          scalar = {KB_SCALAR_BOOL, position, value->get<bool>() ? 1 : 0, 0};
        else if (value->is_number_integer())
          scalar = {KB_SCALAR_INT, position, value->get<int64_t>(), value->get<double>()};
        else if (value->is_number_float())
          scalar = {KB_SCALAR_FLOAT, position, 0, value->get<double>()};
        slot.scalars.push_back(scalar);
      } else if (auto added = slot.input_list.add(input, data); !added) {
        return std::unexpected(added.error());
      }
      ++position;
    }
    for (const auto& output : outputs[s])
      if (auto added = slot.output_list.add(output, data); !added)
        return std::unexpected(added.error());
    slot.inputs = slot.input_list.finish();
    slot.outputs = slot.output_list.finish();
  }
  return table;
}

kb_call CallTable::create_call() const {
  kb_call call{};
  call.abi_version = KB_ABI_VERSION;
  call.struct_size = sizeof(kb_call);
  call.num_params = static_cast<int32_t>(params_.size());
  call.params = params_.data();
  call.param_names = name_pointers_.data();
  call.stream = stream_;
  return call;
}

kb_call CallTable::call(std::size_t index, void* state) const {
  const Slot& slot = slots_[index];
  kb_call call = create_call();
  call.num_inputs = static_cast<int32_t>(slot.inputs.size());
  call.num_outputs = static_cast<int32_t>(slot.outputs.size());
  call.num_scalars = static_cast<int32_t>(slot.scalars.size());
  call.inputs = slot.inputs.data();
  call.outputs = const_cast<DLTensor*>(
      slot.outputs.data());  // NOLINT: the interface lets a kernel write through them
  call.scalars = slot.scalars.data();
  call.state = state;
  return call;
}

std::expected<Candidate, Fault> Candidate::load(std::span<const FileDescriptor> libraries,
                                                const CallTable& table) {
  void* library = nullptr;
  for (const auto& file : libraries) {
    // Once loaded, a library is found by its own name, wherever its file lies.
    const std::string path = "/proc/self/fd/" + std::to_string(file.get());
    library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return std::unexpected(Fault{
          FaultKind::load, std::string("the kernel's library cannot be loaded: ") + ::dlerror()});
  }
  Candidate candidate;
  candidate.run_ = reinterpret_cast<kb_run_fn>(::dlsym(library, "kb_run"));
  if (!candidate.run_)
    return std::unexpected(Fault{
        FaultKind::load,
        "the kernel exports no `kb_run`: declare it extern \"C\" int kb_run(const kb_call*)"});
  if (const auto create = reinterpret_cast<kb_create_fn>(::dlsym(library, "kb_create"))) {
    const kb_call call = table.create_call();
    void* state = nullptr;
    if (auto made = guarded("kb_create", [&] { return create(&call, &state); }); !made)
      return std::unexpected(made.error());
    candidate.state_ = state;
    candidate.destroy_ = reinterpret_cast<kb_destroy_fn>(::dlsym(library, "kb_destroy"));
  }
  return candidate;
}

Candidate Candidate::stub() {
  Candidate candidate;
  candidate.run_ = do_nothing;
  return candidate;
}

bool Candidate::is_stub() const {
  return run_ == do_nothing;
}

std::expected<void, Fault> Candidate::run(const CallTable& table, std::size_t slot) const {
  const kb_call call = table.call(slot, state_);
  return guarded("kb_run", [&] { return run_(&call); });
}

Candidate::Candidate(Candidate&& other) noexcept
    : run_(std::exchange(other.run_, nullptr)),
      destroy_(std::exchange(other.destroy_, nullptr)),
      state_(std::exchange(other.state_, nullptr)) {}

Candidate& Candidate::operator=(Candidate&& other) noexcept {
  std::swap(run_, other.run_);
  std::swap(destroy_, other.destroy_);
  std::swap(state_, other.state_);
  return *this;
}

Candidate::~Candidate() {
  if (destroy_) (void)guarded("kb_destroy", [&] { return destroy_(state_), 0; });
}

}  // namespace kb::worker::native

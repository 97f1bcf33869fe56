// kb_run for a candidate that exports the TVM-FFI function `run`; the builder compiles this file
// into its library (docs/backends.md).
//
// `run` gets, as an AnyView each: the arguments of get_inputs() in their order, parameters and
// buffers in the order of the state_dict, and last the outputs, which it writes. Tensors are views
// (DLTensor*), numbers and bools are numbers and bools, and anything else is None.
#include <kernelbench/kernel.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <cstddef>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" int __tvm_ffi_run(void* self, const TVMFFIAny* args, int32_t num_args,
                             TVMFFIAny* result);

namespace {

TVMFFIAny view_of(const DLTensor& tensor) {
  TVMFFIAny any{};
  any.type_index = kTVMFFIDLTensorPtr;
  any.v_ptr = const_cast<DLTensor*>(&tensor);
  return any;
}

TVMFFIAny value_of(const kb_scalar& scalar) {
  TVMFFIAny any{};
  switch (scalar.kind) {
    case KB_SCALAR_INT:
      any.type_index = kTVMFFIInt;
      any.v_int64 = scalar.i;
      break;
    case KB_SCALAR_FLOAT:
      any.type_index = kTVMFFIFloat;
      any.v_float64 = scalar.f;
      break;
    case KB_SCALAR_BOOL:
      any.type_index = kTVMFFIBool;
      any.v_int64 = scalar.i;
      break;
    default: any.type_index = kTVMFFINone;
  }
  return any;
}

void append_inputs(std::vector<TVMFFIAny>& arguments, const kb_call& call) {
  int32_t tensor = 0, scalar = 0;
  for (int32_t position = 0; position < call.num_inputs + call.num_scalars; ++position) {
    if (scalar < call.num_scalars && call.scalars[scalar].position == position)
      arguments.push_back(value_of(call.scalars[scalar++]));
    else
      arguments.push_back(view_of(call.inputs[tensor++]));
  }
}

std::string text_of(const TVMFFIByteArray& bytes) {
  return std::string(bytes.data, bytes.size);
}

[[noreturn]] void throw_raised() {
  TVMFFIObjectHandle error = nullptr;
  TVMFFIErrorMoveFromRaised(&error);
  if (error == nullptr) throw std::runtime_error("run failed and raised no error");
  const TVMFFIErrorCell& cell = *TVMFFIErrorGetCellPtr(error);
  const std::string message = text_of(cell.message);
  const std::string text = "run raised " + text_of(cell.kind) + ": " + message;
  TVMFFIObjectDecRef(error);
  // What the exported function makes of a std::bad_alloc.
  if (message == std::bad_alloc().what()) throw std::bad_alloc();
  throw std::runtime_error(text);
}

}  // namespace

KB_EXPORT int kb_run(const kb_call* call) {
  // A call is made from one thread at a time; the arguments are kept for their memory alone.
  static std::vector<TVMFFIAny> arguments;
  arguments.clear();
  append_inputs(arguments, *call);
  for (int32_t i = 0; i < call->num_params; ++i) arguments.push_back(view_of(call->params[i]));
  for (int32_t i = 0; i < call->num_outputs; ++i) arguments.push_back(view_of(call->outputs[i]));

  if (call->stream != nullptr && call->num_outputs > 0) {
    const DLDevice device = call->outputs[0].device;
    if (TVMFFIEnvSetStream(device.device_type, device.device_id, call->stream, nullptr) != 0)
      throw_raised();
  }
  TVMFFIAny result{};
  result.type_index = kTVMFFINone;
  if (__tvm_ffi_run(nullptr, arguments.data(), static_cast<int32_t>(arguments.size()), &result) !=
      0)
    throw_raised();
  // Whatever it returns has no meaning here.
  if (result.type_index >= kTVMFFIStaticObjectBegin) TVMFFIObjectDecRef(result.v_obj);
  return 0;
}

/* The interface of a native candidate kernel.
 *
 * A candidate is one source file that exports `kb_run` with C linkage, and optionally the pair
 * `kb_create` / `kb_destroy`:
 *
 *     #include <kernelbench/kernel.h>
 *
 *     extern "C" int kb_run(const kb_call* call) {
 *       const float* x = kb_input_f32(call, 0);
 *       float* y = kb_output_f32(call, 0);
 *       const int64_t n = kb_numel(&call->inputs[0]);
 *       for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0;
 *       return 0;
 *     }
 *
 * Inputs come in the order of the problem's `get_inputs()`, parameters and buffers by their
 * `state_dict` name, and outputs are already allocated (destination passing): the kernel writes
 * them and returns 0, or returns any other number to report that it failed. All tensors are dense
 * and row-major; `strides` is never NULL. Everything that a call points at belongs to the
 * evaluator: it stays valid during the call (parameters: for the life of the process), inputs and
 * parameters must not be written. A call is made from one thread at a time.
 *
 * On the CPU the pointers are host addresses and `stream` is NULL. On a GPU they are device
 * addresses (device 0), and work is to be enqueued on `stream` (a cudaStream_t, in HIP a
 * hipStream_t), which does not wait for the default stream. The evaluator waits for the whole
 * device before it reads outputs.
 *
 * The header is plain C99, depends on DLPack alone, and every function in it is static inline.
 */
#ifndef KERNELBENCH_KERNEL_H_
#define KERNELBENCH_KERNEL_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#define KB_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define KB_EXPORT __attribute__((visibility("default")))
#endif

#define KB_ABI_VERSION 1

/* What the non-tensor entries of `get_inputs()` become. */
typedef enum kb_scalar_kind {
  KB_SCALAR_NONE = 0, /* Python's None, or a value that has no C form */
  KB_SCALAR_INT = 1,
  KB_SCALAR_FLOAT = 2,
  KB_SCALAR_BOOL = 3 /* the value is in `i` */
} kb_scalar_kind;

typedef struct kb_scalar {
  int32_t kind;     /* a kb_scalar_kind */
  int32_t position; /* 0-based place among all the arguments of `get_inputs()` */
  int64_t i;
  double f;
} kb_scalar;

/* One call, or (in kb_create) the parameters alone. Fields may be added at the end in later
 * versions; `struct_size` says how many bytes this evaluator filled in. */
typedef struct kb_call {
  uint32_t abi_version; /* KB_ABI_VERSION of the evaluator */
  uint32_t struct_size;

  int32_t num_inputs; /* tensors among the inputs; 0 in kb_create */
  int32_t num_outputs;
  int32_t num_params;
  int32_t num_scalars;
  const DLTensor* inputs;
  DLTensor* outputs;
  const DLTensor* params;
  const char* const* param_names; /* num_params names, e.g. "linear.weight" */
  const kb_scalar* scalars;

  void* stream; /* NULL on the CPU */
  void* state;  /* what kb_create stored; NULL without one */
} kb_call;

/* Required. Returns 0 when the outputs have been written (CPU) or enqueued (GPU). */
typedef int (*kb_run_fn)(const kb_call* call);
/* Optional, called once before the first kb_run: it sees parameters, no inputs, no outputs.
 * Its time is in the phase `load`. Returns 0 on success and stores its state. */
typedef int (*kb_create_fn)(const kb_call* call, void** state);
/* Optional, called once when the evaluation ends normally. */
typedef void (*kb_destroy_fn)(void* state);

static inline void* kb_data(const DLTensor* tensor) {
  return (char*)tensor->data + tensor->byte_offset;
}

/* Number of elements of `tensor`; 1 for a 0-dimensional one. */
static inline int64_t kb_numel(const DLTensor* tensor) {
  int64_t count = 1;
  for (int32_t d = 0; d < tensor->ndim; ++d) count *= tensor->shape[d];
  return count;
}

/* The parameter or buffer called `name`, or NULL. */
static inline const DLTensor* kb_param(const kb_call* call, const char* name) {
  for (int32_t i = 0; i < call->num_params; ++i)
    if (strcmp(call->param_names[i], name) == 0) return &call->params[i];
  return NULL;
}

/* Shorthands for float32 tensors. The caller vouches for the type and the index. */
static inline const float* kb_input_f32(const kb_call* call, int32_t index) {
  return (const float*)kb_data(&call->inputs[index]);
}
static inline float* kb_output_f32(const kb_call* call, int32_t index) {
  return (float*)kb_data(&call->outputs[index]);
}
/* NULL when there is no parameter called `name`. */
static inline const float* kb_param_f32(const kb_call* call, const char* name) {
  const DLTensor* tensor = kb_param(call, name);
  return tensor ? (const float*)kb_data(tensor) : NULL;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* KERNELBENCH_KERNEL_H_ */

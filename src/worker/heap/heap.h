// The allocator of a torch candidate's device memory, as a shared library with a C interface.
//
// PyTorch loads it by name (CUDAPluggableAllocator) and calls the middle two. It only does
// bookkeeping: the range that it hands out is device memory, which it never touches.
#pragma once

#include <sys/types.h>

#include <cstddef>

extern "C" {

/// From now on memory is handed out of the `bytes` at `base`. 0 on success; anything else where
/// pieces of an earlier range are in use, or `base` is not aligned to 512 bytes.
int kb_heap_init(void* base, size_t bytes);

/// The lowest place where `size` bytes fit, aligned to 512 bytes; null where there is none.
void* kb_heap_alloc(ssize_t size, int device, void* stream);

/// Takes back a piece. What is none is ignored.
void kb_heap_free(void* pointer, ssize_t size, int device, void* stream);

/// Bytes in use, rounding included.
size_t kb_heap_used();

}  // extern "C"

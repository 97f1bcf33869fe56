"""The native worker on a GPU."""
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cuda_judge  # noqa: E402
import native_worker_test  # noqa: E402
from native_worker_test import HEAD  # noqa: E402
from torch_worker_judge import RUN, WorkerFailed  # noqa: E402

NVCC = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
AFFINE = HEAD + """
__global__ void affine(const float* x, float* y, float scale, const float* bias) {
  y[threadIdx.x] = x[threadIdx.x] * scale + *bias;
}
struct State { float* bias; };
KB_EXPORT int kb_create(const kb_call* call, void** state) {
  State* made = new State;
  *state = made;
  cudaMalloc(&made->bias, sizeof(float));
  return cudaMemcpyAsync(made->bias, kb_param_f32(call, "bias"), sizeof(float), cudaMemcpyDefault,
                         (cudaStream_t)call->stream);
}
KB_EXPORT void kb_destroy(void* state) {
  if (cudaFree(((State*)state)->bias) != cudaSuccess) abort();  // the context must still be there
  delete (State*)state;
}
KB_EXPORT int kb_run(const kb_call* call) {
  if (call->inputs[0].device.device_type != kDLCUDA || call->inputs[0].device.device_id != 0) return 1;
  if (!call->stream) return 2;
  affine<<<1, (unsigned)kb_numel(&call->inputs[0]), 0, (cudaStream_t)call->stream>>>(
      kb_input_f32(call, 0), kb_output_f32(call, 0), (float)call->scalars[0].i, ((State*)call->state)->bias);
  return cudaGetLastError();
}
"""
# Work on a stream that the worker does not know, still running when kb_run returns.
SIDE_STREAM = HEAD + """
__global__ void late(float* y) {
  const long long start = clock64();
  while (clock64() - start < 200000000) {}
  y[threadIdx.x] = 7;
}
KB_EXPORT int kb_run(const kb_call* call) {
  static cudaStream_t stream;
  if (!stream) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  late<<<1, 5, 0, stream>>>(kb_output_f32(call, 0));
  return 0;
}
"""
WILD = HEAD + """
__global__ void wild() { *(volatile int*)16 = 1; }
KB_EXPORT int kb_run(const kb_call* call) { wild<<<1, 1, 0, (cudaStream_t)call->stream>>>(); return %d; }
"""


class GpuNativeWorker(cuda_judge.OnGpu, native_worker_test.NativeWorker):
    pass


def compiler_command():
    return [NVCC, "-std=c++17", "-shared", "-Xcompiler", "-fPIC"]


@unittest.skipUnless(cuda_judge.has_gpu(), "there is no GPU")
@unittest.skipUnless(os.path.exists(NVCC), "there is no nvcc")
@unittest.skipUnless(os.path.exists(native_worker_test.PROGRAM), "the native worker has not been built")
class NativeOnGpu(native_worker_test.Native):
    new_worker = GpuNativeWorker
    command = staticmethod(compiler_command)
    suffix = ".cu"
    affine = AFFINE

    def test_side_streams_are_waited_for(self):
        worker = self.start(SIDE_STREAM)
        worker.ring(RUN, [1])
        self.assertEqual(worker.region("outputs", 1), [[7.0] * 5])

    def test_events(self):
        worker = self.start(self.affine)
        worker.leave()
        for mode, count in (("event", 4), ("do_bench", 1), ("event", 4)):
            times = worker.request("time", mode=mode, slots=[1, 3], warmup=1, reps=4)["times_us"]
            self.assertEqual(len(times), count)
            self.assertTrue(all(0 < time < 1000 for time in times), (mode, times))

    def test_errors_of_the_device(self):
        failure = self.failure(WILD % 0)
        self.assertEqual(failure.kind, "runtime")
        self.assertIn("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access", failure.text)
        failure = self.failure(WILD % 3)
        self.assertIn("kb_run returned 3; the device reports CUDA_ERROR_ILLEGAL_ADDRESS", failure.text)

    def test_a_descriptor_that_is_no_device_memory(self):
        with self.new_worker() as worker:
            null = os.open(os.devnull, os.O_RDWR)
            worker.allocate = lambda layout: layout.update(heap_size=0) or [null]
            with self.assertRaises(WorkerFailed) as caught:
                worker.attach(native_worker_test.SPEC)
            self.assertEqual(caught.exception.kind, "protocol")
            self.assertIn("cannot be mapped", caught.exception.text)


if __name__ == "__main__":
    unittest.main()

"""The native worker, driven as a process over its socket and shared memory, as the judge drives it."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from torch_worker_judge import ROOT, RUN, TestWorker, WorkerFailed  # noqa: E402

BUILD = os.path.dirname(os.environ.get("KERNELBENCH_BINARY") or os.path.join(ROOT, "build", "release", "kernelbench"))
PROGRAM = os.path.join(BUILD, "kernelbench-native-worker")
FLOATS = {"dtype": "float32", "shape": [5]}
SPEC = {"inputs": [{"kind": "tensor", **FLOATS}, {"kind": "value", "value": 3}], "outputs": [FLOATS],
        "params": [{"name": "bias", "dtype": "float32", "shape": []}]}
HEAD = "#include <kernelbench/kernel.h>\n"
AFFINE = HEAD + """
struct State { const float* bias; };
KB_EXPORT int kb_create(const kb_call* call, void** state) {
  *state = new State{kb_param_f32(call, "bias")};
  return call->inputs || call->outputs || call->stream;
}
KB_EXPORT void kb_destroy(void* state) { delete (State*)state; }
KB_EXPORT int kb_run(const kb_call* call) {
  if (call->inputs[0].device.device_type != kDLCPU) return 1;
  for (int64_t i = 0; i < kb_numel(&call->inputs[0]); ++i)
    kb_output_f32(call, 0)[i] = kb_input_f32(call, 0)[i] * call->scalars[0].i + *((State*)call->state)->bias;
  return 0;
}
"""


class NativeWorker(TestWorker):
    publishes = False
    regions = ("outputs",)

    def __init__(self):
        super().__init__(command=(PROGRAM,))

    def load_native(self, library):
        fd = os.open(library, os.O_RDONLY)
        try:
            return self.request("load_native", [fd])
        finally:
            os.close(fd)


def compiler_command():
    return [shutil.which("c++"), "-std=c++17", "-shared", "-fPIC"]


@unittest.skipUnless(os.path.exists(PROGRAM), f"{PROGRAM} has not been built")
class Native(unittest.TestCase):
    """Everything but the source of the kernel is the same on a GPU."""

    new_worker = NativeWorker
    command = staticmethod(compiler_command)
    suffix = ".cpp"
    affine = AFFINE

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def build(self, source):
        path = os.path.join(self.folder.name, "kernel" + self.suffix)
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        library = os.path.join(self.folder.name, "kernel.so")
        subprocess.run([*self.command(), "-I", os.path.join(ROOT, "include"), path, "-o", library], check=True)
        return library

    def start(self, source):
        """Returns a worker in turn mode, its inputs drawn."""
        worker = self.new_worker()
        self.addCleanup(worker.__exit__)
        worker.attach(SPEC)
        worker.write_data(worker.layout["params"][0]["offset"], memoryview(bytearray(b"\0\0\0\x3f")))  # 0.5
        for slot in range(4):
            item = worker.layout["inputs"][slot][0]
            worker.write_data(item["offset"], memoryview(bytearray(b"\0\0\x80\x3f" * 5)))  # 1.0
        worker.load_native(self.build(source))
        worker.enter_turns()
        return worker

    def failure(self, source):
        worker = self.start(source)
        with self.assertRaises(WorkerFailed) as caught:
            worker.ring(RUN, [0])
        return caught.exception

    def test_hello_and_order(self):
        with self.new_worker() as worker:
            self.assertEqual(worker.hello, {"hello": "native", "protocol": 1, "pid": worker.process.pid})
            for op in ("turns", "load_native", "sing"):
                with self.assertRaises(WorkerFailed) as caught:
                    worker.request(op)
                self.assertEqual(caught.exception.kind, "protocol")

    def test_calls(self):
        worker = self.start(self.affine)
        worker.ring(RUN, [0, 2, 0])
        self.assertEqual(worker.region("outputs", 0), [[3.5] * 5])
        self.assertEqual(worker.region("outputs", 1), [[0.0] * 5])
        self.assertEqual(worker.region("outputs", 2), [[3.5] * 5])
        worker.ring(RUN, [1] * 16)
        self.assertEqual(worker.region("outputs", 1), [[3.5] * 5])
        worker.leave()
        worker.send({"op": "exit"})
        self.assertEqual(worker.process.wait(10), 0)

    def test_time(self):
        worker = self.start(self.affine)
        worker.ring(RUN, [0])
        worker.leave()
        times = worker.request("time", mode="host", slots=[1, 3], warmup=1, reps=4)["times_us"]
        self.assertEqual(len(times), 4)
        self.assertTrue(all(0 < time < 1e6 for time in times), times)
        self.assertEqual([worker.region("outputs", slot) for slot in (1, 2, 3)],
                         [[[3.5] * 5], [[0.0] * 5], [[3.5] * 5]])
        for mode, slots in (("sundial", [0]), ("host", []), ("host", [4])):
            with self.assertRaises(WorkerFailed) as caught:
                worker.request("time", mode=mode, slots=slots, warmup=1, reps=4)
            self.assertEqual(caught.exception.kind, "protocol")

    def test_stub(self):
        with self.new_worker() as worker:
            worker.attach(SPEC)
            worker.request("load_native", stub=True)
            worker.enter_turns()
            for _ in range(20):
                worker.ring(RUN, [0, 1])
            self.assertEqual(worker.region("outputs", 0), [[0.0] * 5])
            worker.leave()

    def test_failures(self):
        failure = self.failure(HEAD + "KB_EXPORT int kb_run(const kb_call*) { return 7; }\n")
        self.assertEqual((failure.kind, failure.text), ("runtime", "kb_run returned 7"))
        failure = self.failure(
            HEAD + "#include <new>\nKB_EXPORT int kb_run(const kb_call*) { throw std::bad_alloc(); }\n")
        self.assertEqual(failure.kind, "out_of_memory")
        with self.assertRaises(WorkerFailed) as caught:
            self.start("int kb_walk() { return 0; }")
        self.assertEqual(caught.exception.kind, "load")

    def test_unknown_device(self):
        with self.new_worker() as worker:
            worker.device = "abacus"
            with self.assertRaises(WorkerFailed) as caught:
                worker.attach(SPEC)
            self.assertEqual(caught.exception.kind, "unsupported")


if __name__ == "__main__":
    unittest.main()

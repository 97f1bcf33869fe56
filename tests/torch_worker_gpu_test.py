"""The torch worker on a GPU, driven over its socket, its control page and shared device memory."""
import math
import os
import struct
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import cuda_judge  # noqa: E402
from cuda_judge import GpuCandidate, GpuReference  # noqa: E402
from torch_worker_judge import PREPARE, RUN, TestWorker, WorkerFailed  # noqa: E402
from torch_worker_test import BATCH_NORM, LINEAR, RELU, as_candidate, problem  # noqa: E402

CONVOLUTION = problem("return self.conv(args[0])", "[torch.rand(4, 64, 32, 32)]",
                      init="self.conv = nn.Conv2d(64, 64, 3)")
SIDE_STREAM = "self.side = torch.cuda.Stream()"


def norm_error(values, truth):
    return math.sqrt(sum((v - t) ** 2 for v, t in zip(values, truth)) / sum(t * t for t in truth))


class GpuTest(unittest.TestCase):
    def fails(self, kind, call, *args, **fields):
        with self.assertRaises(WorkerFailed) as caught:
            call(*args, **fields)
        self.assertEqual(caught.exception.kind, kind, caught.exception.text)
        return caught.exception.text

    def assert_close(self, left, right, tolerance=1e-6):
        self.assertEqual(len(left), len(right))
        for a, b in zip(left, right):
            self.assertAlmostEqual(a, b, delta=tolerance * max(1.0, abs(b)))


@unittest.skipUnless(cuda_judge.has_gpu(), "there is no GPU")
class Reference(GpuTest):
    @classmethod
    def setUpClass(cls):
        cls.worker = GpuReference()
        cls.addClassCleanup(cls.worker.__exit__)

    def load(self, source, slots=4, **fields):
        spec = self.worker.load_problem(source, **fields)
        self.worker.attach(spec, slots)
        return spec

    def draw(self, slots, first_seed=100):
        self.worker.request("inputs", slots=slots, seeds=[str(first_seed + s) for s in slots])

    def expect(self, slots, seeds=(1, 2, 3, 4), mode="default", into="expected"):
        seeds = [str(s) for s in seeds[:len(slots)]]
        self.worker.request("expect", slots=slots, call_seeds=seeds, mode=mode, into=into)
        return [self.worker.region(into, slot) for slot in slots]

    def test_measure_tells_the_rate_of_each_precision(self):
        with GpuReference() as worker:
            rates = worker.request("measure", device="cuda", threads=1)["operations_per_s"]
            self.assertLessEqual({"fp32", "fp16", "bf16"}, set(rates))
            self.assertTrue(all(math.isfinite(rate) and rate > 0 for rate in rates.values()), rates)

    def test_spec(self):
        spec = self.load(LINEAR)
        self.assertEqual((spec["flops"], spec["uses_rng"], spec["repeatable"], spec["mutates_inputs"]),
                         (2 * 4 * 8 * 3, False, True, False))
        spec = self.load(problem("return torch.nn.functional.dropout(args[0])"))
        self.assertEqual((spec["uses_rng"], spec["repeatable"]), (True, True))
        spec = self.load(problem("return args[0].mul_(2)"))
        self.assertEqual((spec["mutates_inputs"], spec["repeatable"]), (True, True))

    def test_values(self):
        self.load(LINEAR)
        self.draw([0, 1])
        self.worker.request("export_params")
        expected, truth = self.expect([0, 1]), self.expect([0, 1], mode="truth", into="truth")
        weight, bias = (self.worker.values(p) for p in self.worker.layout["params"])
        for slot in range(2):
            x = self.worker.inputs(slot)[0]
            by_hand = [sum(x[8 * r + k] * weight[8 * c + k] for k in range(8)) + bias[c]
                       for r in range(4) for c in range(3)]
            self.assert_close(expected[slot][0], by_hand)
            self.assert_close(truth[slot][0], by_hand, 1e-12)
        self.assertNotEqual(*(self.worker.inputs(slot) for slot in range(2)))

    def test_inputs_follow_their_seeds(self):
        seed = "int(torch.randint(9999, (1,), device='cpu'))"
        for inputs in ("[torch.rand(4, 8)]", "[torch.rand(4, 8, device='cpu')]",
                       "[torch.from_numpy(torch.rand(4, 8).numpy())]",
                       f"[torch.rand(4, 8, generator=torch.Generator().manual_seed({seed}))]"):
            with self.subTest(inputs):
                self.load(problem("return args[0] * 1", inputs))
                self.draw([0, 1])
                first = self.worker.inputs(0)
                self.worker.request("inputs", slots=[1, 0], seeds=["100", "7"])
                self.assertEqual(self.worker.inputs(1), first)
                self.assertNotEqual(self.worker.inputs(0), first)

    def test_large_inputs_are_drawn_on_the_gpu(self):
        start = time.monotonic()
        self.load(problem("return args[0].sum(1)", "[torch.rand(1 << 15, 1 << 15)]"), slots=1)  # 4 GB
        self.draw([0])
        self.assertLess(time.monotonic() - start, 5)

    def test_strict(self):
        self.load(CONVOLUTION)
        self.draw([0])
        self.worker.request("export_params")
        (truth,), (default,), (strict,) = (self.expect([0], mode=mode, into=into) for mode, into in (
            ("truth", "truth"), ("default", "expected"), ("strict", "expected")))
        self.assertGreater(norm_error(default[0], truth[0]), 3e-5)
        self.assertLess(norm_error(strict[0], truth[0]), 1e-5)
        flags = "torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction"
        self.load(problem(f"return {flags}"))
        self.assertEqual(self.expect([0], mode="strict"), [[[False], [False]]])
        self.assertEqual(self.expect([0]), [[[True], [True]]])

    def test_turns(self):
        for source in (LINEAR, BATCH_NORM, problem("return args[0].t(), args[0].sum(), 3")):
            spec = self.load(source)
            self.draw([0, 1, 2, 3])
            self.expect([0, 1, 2, 3])
            self.worker.enter_turns()
            for slots in ([0], [3, 1], [0, 1, 2, 3] * 4):
                self.worker.ring(PREPARE)
                self.worker.ring(RUN, slots)
                records = [self.worker.published(call, 0) for call in range(len(slots))]
                self.assertEqual({record.count for record in records}, {len(spec["outputs"])})
            self.worker.leave()

    def test_stub_turns(self):
        spec = self.load(LINEAR)
        self.worker.enter_turns(stub=spec["outputs"])
        for _ in range(50):
            self.worker.ring(PREPARE)
            seconds = self.worker.ring(RUN, [0, 1])
        self.assertLess(seconds, 0.05)
        self.worker.leave()

    def test_attributes_and_state(self):
        self.load(problem("self.h = self.h * 2 + args[0]; return self.h, self.scalar * args[0]",
                          init="self.h = torch.ones(4, 8); self.scalar = torch.tensor(3.0)"))
        self.draw([0])
        x = self.worker.inputs(0)[0]
        for _ in range(2):
            (h, scaled), = self.expect([0])
            self.assert_close(h, [2 + v for v in x])
            self.assert_close(scaled, [3 * v for v in x])

    def test_dropout_follows_the_call_seed(self):
        self.load(problem("return torch.nn.functional.dropout(args[0])"))
        self.draw([0])
        self.assertEqual(self.expect([0], [7]), self.expect([0], [7]))
        self.assertNotEqual(self.expect([0], [7]), self.expect([0], [8]))

    def test_precisions_and_types(self):
        for precision, dtype in (("bf16", "bfloat16"), ("fp16", "float16")):
            spec = self.load(LINEAR, precision=precision)
            self.assertEqual({d["dtype"] for d in spec["inputs"] + spec["outputs"] + spec["params"]}, {dtype})
        names = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]
        made = ", ".join(f"torch.ones(3, 1, dtype=torch.{name})" for name in names)
        self.load(problem("return args", f"[torch.empty(0, 3), torch.tensor(2), {made}]"))
        self.draw([0])
        self.assertEqual(self.expect([0]), [[[], [2]] + [[1, 1, 1]] * 10])

    def test_attaching_again_frees_what_was_mapped(self):
        source = problem("return args[0].sum()", "[torch.rand(1 << 28)]")  # 1 GiB
        for round_ in range(3):
            self.load(source, slots=2)
            if round_ == 0:
                before = cuda_judge.free_bytes()
        self.assertLess(abs(before - cuda_judge.free_bytes()), 1 << 29)

    def test_errors(self):
        text = self.fails("problem", self.worker.load_problem, problem("return args[0].cpu()"))
        self.assertIn("forward returned a tensor on cpu; the model runs on cuda", text)
        self.fails("out_of_memory", self.worker.load_problem, problem("return args[0]", "[torch.empty(1 << 50)]"))
        self.fails("protocol", self.worker.load_problem, RELU, device="cpu")
        self.load(RELU)


@unittest.skipUnless(cuda_judge.has_gpu(), "there is no GPU")
@unittest.skipUnless(os.path.exists(cuda_judge.HEAP_LIBRARY), f"{cuda_judge.HEAP_LIBRARY} has not been built")
class Candidate(GpuTest):
    """Each case has a worker of its own: a heap is attached once."""

    SPEC = {"inputs": [{"kind": "tensor", "dtype": "float32", "shape": [4, 8]}],
            "outputs": [{"dtype": "float32", "shape": [4, 8]}], "params": []}

    def candidate(self, forward, init="pass", spec=None, reference=RELU, extra=""):
        """Returns a worker in turn mode with known inputs: slot s has 32 numbers from 100 s on."""
        spec = spec or self.SPEC
        worker = GpuCandidate()
        self.addCleanup(worker.__exit__)
        worker.attach(spec)
        for slot, (item,) in enumerate(worker.layout["inputs"]):
            worker.write_data(item["offset"], struct.pack("32f", *range(100 * slot, 100 * slot + 32)))
        worker.load_candidate(as_candidate(problem(forward, init=init, extra=extra)), reference)
        worker.enter_turns()
        return worker

    def check(self, worker, slots, function, relative_to=2):
        for slot, (output,) in zip(slots, worker.run(slots)):
            self.assertEqual(output.relative_to, relative_to)
            self.assertEqual(output.values(), [function(x) for x in worker.inputs(slot)[0]])

    def test_outputs_lie_in_the_heap(self):
        worker = self.candidate("return args[0] * 2")
        for slots in ([0], [3, 1], [0, 1, 2, 3] * 4):
            self.check(worker, slots, lambda x: 2 * x)
        places = {worker.published(call, 0).place for call in range(16)}
        self.assertEqual(len(places), 16)
        worker.leave()
        worker.send({"op": "exit"})
        self.assertEqual(worker.process.wait(30), 0)

    def test_events(self):
        worker = self.candidate("return args[0] * 2")
        worker.leave()
        for mode, count in (("event", 4), ("do_bench", 1), ("host", 4)):
            times = worker.request("time", mode=mode, slots=[1, 3], warmup=1, reps=4)["times_us"]
            self.assertEqual(len(times), count)
            self.assertTrue(all(0 < time < 10_000 for time in times), (mode, times))
        worker.enter_turns()
        self.check(worker, [0, 1], lambda x: 2 * x)

    def test_weights(self):
        spec = {**self.SPEC, "outputs": [{"dtype": "float32", "shape": [4, 3]}],
                "params": [{"name": "linear.weight", "dtype": "float32", "shape": [3, 8]},
                           {"name": "linear.bias", "dtype": "float32", "shape": [3]}]}
        worker = GpuCandidate()
        self.addCleanup(worker.__exit__)
        worker.attach(spec)
        reply = worker.load_candidate(as_candidate(LINEAR), LINEAR)
        self.assertEqual((reply["matched"], reply["unmatched"]), (2, []))
        worker.enter_turns()
        (output,), = worker.run([0])
        self.assertEqual((output.relative_to, output.shape, output.values()), (2, [4, 3], [0.0] * 12))

    def test_an_alias_of_an_input(self):
        worker = self.candidate("return args[0]")
        (output,), = worker.run([2])
        self.assertEqual((output.relative_to, output.place), (1, worker.layout["inputs"][2][0]["offset"]))
        worker = self.candidate("return args[0][1:, ::2]")
        (output,), = worker.run([1])
        self.assertEqual(output.relative_to, 1)
        self.assertEqual(output.place, worker.layout["inputs"][1][0]["offset"] + 32)
        self.assertEqual(output.values(), [100.0 + i for r in range(1, 4) for i in range(8 * r, 8 * r + 8, 2)])

    def test_other_returned_things(self):
        worker = self.candidate("return 7")
        (output,), = worker.run([0])
        self.assertEqual((output.relative_to, output.values(), output.dtype), (2, [7], "int64"))
        worker = self.candidate("return args[0][:0]")
        (output,), = worker.run([0])
        self.assertEqual((output.values(), output.shape), ([], [0, 8]))
        text = self.fails("runtime", self.candidate("return args[0].cpu()").run, [0])
        self.assertIn("forward returned a tensor on cpu; the model runs on cuda", text)

    def test_memory_from_elsewhere_is_copied(self):
        # Memory that the heap's allocator has not handed out: taken from the driver directly.
        worker = self.candidate("""
            class Foreign:
                __cuda_array_interface__ = {
                    "shape": (4, 8), "typestr": "<f4", "data": (self.place, False), "version": 3}
            y = torch.as_tensor(Foreign(), device='cuda')
            return y.copy_(args[0] + 1)""", init="""
            import ctypes
            place = ctypes.c_uint64()
            torch.cuda.synchronize()
            assert ctypes.CDLL('libcuda.so.1').cuMemAlloc_v2(ctypes.byref(place), ctypes.c_size_t(4096)) == 0
            self.place = place.value""")
        self.check(worker, [0, 1], lambda x: x + 1)

    def test_threads_allocate_in_the_heap(self):
        worker = self.candidate("""
            import threading
            def compute(): self.y = args[0] - 1
            thread = threading.Thread(target=compute)
            thread.start(); thread.join()
            return self.y""")
        self.check(worker, [0, 1], lambda x: x - 1)

    def test_too_much_memory(self):
        for size in ("1 << 42", "600 << 20"):
            worker = self.candidate(f"return torch.empty({size}, dtype=torch.uint8, device='cuda')")
            text = self.fails("out_of_memory", worker.run, [0])
            self.assertIn("out of memory", text)
        worker = self.candidate("""
            try: torch.empty(600 << 20, dtype=torch.uint8, device='cuda')
            except torch.OutOfMemoryError: return args[0] * 3""")
        self.check(worker, [0, 1], lambda x: 3 * x)

    def test_an_asynchronous_error(self):
        worker = self.candidate("return args[0].view(-1)[torch.full((32,), 1 << 30, device='cuda')]")
        text = self.fails("runtime", worker.run, [0])
        self.assertIn("device-side assert triggered", text)

    def test_side_streams_are_waited_for(self):
        worker = self.candidate("""
            y = torch.empty_like(args[0])
            with torch.cuda.stream(self.side):
                torch.cuda._sleep(100_000_000)
                y.copy_(args[0])
            return y""", init=SIDE_STREAM)
        self.check(worker, [0, 1], lambda x: x)

    def test_recorded_streams_do_not_leak(self):
        worker = self.candidate("""
            y = torch.empty(100 << 20, dtype=torch.uint8, device='cuda')
            y.record_stream(self.side)
            return args[0] + 1""", init=SIDE_STREAM)
        for _ in range(20):
            self.check(worker, [0], lambda x: x + 1)

    def test_cuda_graphs_keyed_by_pointer(self):
        for returned in ("y", "y.clone()"):
            worker = self.candidate(f"""
                x = args[0]
                if x.data_ptr() not in self.graphs:
                    y = (x * 2 + 1) - x.sum() * 0
                    torch.cuda.synchronize()
                    graph = torch.cuda.CUDAGraph()
                    with torch.cuda.graph(graph):
                        y = (x * 2 + 1) - x.sum() * 0
                    self.graphs[x.data_ptr()] = graph, y
                graph, y = self.graphs[x.data_ptr()]
                graph.replay()
                return {returned}""", init="self.graphs = {}")
            for slots in ([0, 1, 2, 3], [3, 2, 1, 0], [1], [2, 0]):
                self.check(worker, slots, lambda x: 2 * x + 1)

    def test_torch_compile(self):
        try:
            import triton  # noqa: F401
        except ImportError:
            self.skipTest("there is no triton")
        for mode in ("default", "reduce-overhead"):
            with self.subTest(mode):
                worker = self.candidate("""
                    if self.f is None:
                        self.f = torch.compile(lambda x: torch.relu(x * 2) + 1, mode=%r)
                    return self.f(args[0]).clone()""" % mode, init="self.f = None")
                worker.ring(RUN, [0], limit_s=300)
                for _ in range(4):
                    self.check(worker, [0, 1, 0, 2], lambda x: 2 * x + 1)


@unittest.skipUnless(cuda_judge.has_gpu(), "there is no GPU")
class Once(GpuTest):
    def test_problem_after_problem_until_one_loses_the_device(self):
        worker = TestWorker()
        self.addCleanup(worker.__exit__)

        def once(source):
            return worker.request("once", source=source, path="p.py", size="public", set={}, precision="fp32",
                                  device="cuda", weight_seed="42", threads=1, memory_bytes=4 << 30)

        self.assertEqual(once(RELU)["findings"], [])
        self.fails("out_of_memory", once, problem("return args[0]", "[torch.rand(1 << 40)]"))
        self.assertGreaterEqual(once(problem("return args[0] * 2", "[torch.rand(1 << 28)]"))["peak_bytes"], 2 << 30)
        self.assertLess(once(CONVOLUTION)["peak_bytes"], 1 << 30, "what earlier problems took is given back")
        finding, = once(problem("return torch.sqrt(args[0] - 0.5)"))["findings"]
        self.assertEqual(finding["text"], "output 0 holds NaN")
        self.fails("problem", once, problem("return args[0] @ args[0]"))
        self.fails("runtime", once, problem("return args[0][torch.tensor([99], device=args[0].device)]"))


if __name__ == "__main__":
    unittest.main()

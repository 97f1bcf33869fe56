"""The torch worker, driven as a process over a socket and an arena, as the judge drives it."""
import math
import os
import struct
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from torch_worker_judge import LOCK, PREPARE, ROOT, RUN, TestWorker, WorkerFailed  # noqa: E402

HEAD = "import torch\nimport torch.nn as nn\n"


def problem(forward, inputs="[torch.rand(4, 8)]", init="pass", extra=""):
    """A problem file with one method body and one get_inputs expression."""
    return (f"{HEAD}{textwrap.dedent(extra)}\n"
            f"class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            f"{textwrap.indent(textwrap.dedent(init), ' ' * 8)}\n"
            f"    def forward(self, *args):\n{textwrap.indent(textwrap.dedent(forward), ' ' * 8)}\n"
            f"def get_inputs():\n    return {inputs}\n"
            f"def get_init_inputs():\n    return []\n")


def as_candidate(source):
    return source.replace("class Model(", "class ModelNew(")


RELU = problem("return torch.relu(args[0] - 0.5)")
LINEAR = problem("return self.linear(args[0])", init="self.linear = nn.Linear(8, 3)")
BATCH_NORM = problem("return self.bn(args[0])", init="self.bn = nn.BatchNorm1d(8)")
RUNNING_SUM = problem("self.total.add_(args[0]); return self.total * 1",
                      init="self.register_buffer('total', torch.zeros(4, 8))")


class WorkerTest(unittest.TestCase):
    """Tests that share one worker process; each loads its own model."""

    @classmethod
    def setUpClass(cls):
        cls.worker = TestWorker()
        cls.addClassCleanup(cls.worker.__exit__)

    def load(self, source, slots=4, **fields):
        spec = self.worker.load_problem(source, **fields)
        self.worker.attach(spec, slots)
        return spec

    def fails(self, kind, call, *args, **fields):
        with self.assertRaises(WorkerFailed) as caught:
            call(*args, **fields)
        self.assertEqual(caught.exception.kind, kind, caught.exception.text)
        return caught.exception.text

    def draw(self, slots, first_seed=100):
        self.worker.request("inputs", slots=slots, seeds=[str(first_seed + s) for s in slots])

    def expect(self, slots, seeds, mode="default", into="expected"):
        self.worker.request("expect", slots=slots, call_seeds=[str(s) for s in seeds], mode=mode, into=into)
        return [self.worker.region(into, slot) for slot in slots]

    def assert_close(self, left, right, tolerance=1e-6):
        self.assertEqual(len(left), len(right))
        for a, b in zip(left, right):
            self.assertAlmostEqual(a, b, delta=tolerance * max(1.0, abs(b)))


class Control(WorkerTest):
    def test_open(self):
        self.assertEqual(self.worker.request("open", device="cpu"), {"ok": True})
        with self.assertRaises(WorkerFailed) as caught:
            self.worker.request("open", device="abacus")
        self.assertEqual(caught.exception.kind, "unsupported")

    def test_hello(self):
        hello = self.worker.hello
        self.assertEqual((hello["hello"], hello["protocol"], hello["pid"]), ("torch", 1, self.worker.process.pid))
        self.assertRegex(hello["torch"], r"^\d+\.\d+")
        self.assertRegex(hello["python"], r"^3\.\d+\.\d+")

    def test_unknown_op_and_bad_json_are_protocol_errors(self):
        self.fails("protocol", self.worker.request, "sing")
        self.worker.socket.sendall(struct.pack("<I", 3) + b"[1]")
        self.assertEqual(self.worker.receive()["error"]["kind"], "protocol")
        self.worker.socket.sendall(struct.pack("<I", 2) + b"{]")
        self.assertEqual(self.worker.receive()["error"]["kind"], "protocol")
        self.load(RELU)

    def test_descriptors_must_be_as_announced(self):
        self.worker.send({"op": "attach", "layout": {}, "fds": 1})
        self.assertEqual(self.worker.receive()["error"]["kind"], "protocol")

    def test_broken_frame_ends_the_worker(self):
        with TestWorker() as worker:
            worker.socket.sendall(struct.pack("<I", 1 << 30))
            self.assertEqual(worker.receive()["error"]["kind"], "protocol")
            self.assertEqual(worker.process.wait(10), 2)

    def test_exit_and_end_of_file(self):
        with TestWorker() as worker:
            worker.send({"op": "exit"})
            self.assertEqual(worker.process.wait(10), 0)
        with TestWorker() as worker:
            worker.socket.close()
            self.assertEqual(worker.process.wait(10), 0)

    def test_attach_needs_two_descriptors(self):
        self.worker.send({"op": "attach", "layout": {"device": "cpu", "heap_size": 0}})
        self.assertEqual(self.worker.receive()["error"]["kind"], "protocol")

    def test_measure_tells_the_rate_of_each_precision(self):
        with TestWorker() as worker:
            rates = worker.request("measure", device="cpu", threads=1)["operations_per_s"]
            self.assertEqual(set(rates), {"fp32", "fp16", "bf16"})
            for precision, rate in rates.items():
                self.assertTrue(math.isfinite(rate) and rate > 0, f"{precision}: {rate}")
            self.fails("unsupported", worker.request, "measure", device="tpu", threads=1)

    def test_operations_in_the_wrong_order(self):
        with TestWorker() as worker:
            for op, fields in (("turns", {}), ("export_params", {}), ("inputs", {"slots": [], "seeds": []})):
                self.fails("protocol", worker.request, op, **fields)


class Shapes(unittest.TestCase):
    SCRIPT = textwrap.dedent("""
        import sys
        from kernelbench_worker.device import open_device
        from kernelbench_worker.problem import Problem
        source = sys.stdin.read()
        request = {"source": source, "path": "p.py", "size": "public", "set": {}, "precision": "fp32", "weight_seed": "42"}
        print(Problem(request, open_device("cpu")).input_bytes(), "sympy" in sys.modules)
        """)

    def test_sizes_of_inputs_are_known_without_sympy(self):
        inputs = ("[torch.rand(2, 3), torch.randn(4, 5), torch.randn((4, 5), dtype=torch.float64), torch.randn(size=(2,)), "
                  "torch.randint(9, (7,)), torch.randint(0, 9, (7, 2), dtype=torch.int32), torch.randint(low=0, high=2, size=(3,)), "
                  "torch.randn_like(torch.zeros(6)), torch.rand_like(torch.zeros(6)), 3]")
        bytes_ = 4 * 6 + 4 * 20 + 8 * 20 + 4 * 2 + 8 * 7 + 4 * 14 + 8 * 3 + 4 * 6 + 4 * 6
        done = subprocess.run([sys.executable, "-c", self.SCRIPT], input=problem("return 1", inputs), text=True,
                              env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "python")}, capture_output=True)
        self.assertEqual(done.stdout.split(), [str(bytes_), "False"], done.stderr)


class Spec(WorkerTest):
    def test_spec_of_a_plain_problem(self):
        spec = self.load(LINEAR)
        self.assertEqual(spec, {
            "inputs": [{"kind": "tensor", "dtype": "float32", "shape": [4, 8]}],
            "outputs": [{"dtype": "float32", "shape": [4, 3]}],
            "params": [{"name": "linear.weight", "dtype": "float32", "shape": [3, 8], "buffer": False},
                       {"name": "linear.bias", "dtype": "float32", "shape": [3], "buffer": False}],
            "uses_rng": False, "repeatable": True, "mutates_inputs": False, "flops": 2 * 4 * 8 * 3,
            "sizes": []})

    def test_bundled_problems_load(self):
        for level in ("level1", "level2", "level3"):
            folder = os.path.join(ROOT, "problems", level)
            for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
                if not name.endswith(".py"):
                    continue
                with self.subTest(name), open(os.path.join(folder, name), encoding="utf-8") as file:
                    source = file.read()
                    if "SIZES" in source:
                        self.assertIn("small", self.load(source, size="small", slots=1)["sizes"])

    def test_values_beside_tensors(self):
        source = problem("x, scale, flag, none, name = args\nassert flag is True and none is None and name == 'n'\n"
                         "return x * scale", inputs="[torch.ones(2), 3.0, True, None, 'n']")
        spec = self.load(source)
        self.assertEqual(spec["inputs"][1:], [{"kind": "value", "value": v} for v in (3.0, True, None, "n")])
        self.draw([0])
        self.assertEqual(self.expect([0], [1]), [[[3.0, 3.0]]])
        self.assertEqual(self.worker.turn([0]), [[[3.0, 3.0]]])

    def test_nested_outputs(self):
        source = problem("x = args[0]\nreturn {'b': (x, None, [x.sum(), 7]), 'a': x.argmax(), 'c': True, 'd': 2.5}")
        spec = self.load(source)
        self.assertEqual([(o["dtype"], o["shape"]) for o in spec["outputs"]], [
            ("float32", [4, 8]), ("float32", []), ("int64", []), ("int64", []), ("bool", []), ("float32", [])])
        self.draw([0, 1])
        expected = self.expect([0, 1], [1, 2])
        self.assertEqual(expected[0][2], [7])
        self.assertEqual(self.worker.turn([0, 1]), expected)

    def test_rng_repeatability_mutation(self):
        for source, uses_rng, repeatable, mutates in (
                (problem("return torch.nn.functional.dropout(args[0])"), True, True, False),
                (BATCH_NORM, False, True, False),
                (RUNNING_SUM, False, False, False),
                (problem("self.total.add_(args[0]); return self.total",
                         init="self.register_buffer('total', torch.zeros(4, 8))"), False, False, False),
                (problem("return args[0].mul_(2)"), False, True, True),
                (problem("return args[0] * float('nan')"), False, True, False)):
            with self.subTest(source):
                spec = self.load(source)
                self.assertEqual((spec["uses_rng"], spec["repeatable"], spec["mutates_inputs"]),
                                 (uses_rng, repeatable, mutates))

    def test_init_inputs(self):
        body = ("class Model(nn.Module):\n    def __init__(self, n, scale):\n        super().__init__()\n"
                "        self.n, self.scale = n, scale\n    def forward(self, x):\n        return x * self.scale\n"
                "def get_inputs():\n    return [torch.ones(2)]\n")
        for init in ("[1, torch.tensor(3.0)]", "{'scale': 3.0, 'n': 1}", "(1, 3.0)"):
            self.load(f"{HEAD}{body}def get_init_inputs():\n    return {init}\n")
            self.draw([0])
            self.assertEqual(self.expect([0], [1]), [[[3.0, 3.0]]])
        text = self.fails("problem", self.worker.load_problem, f"{HEAD}{body}def get_init_inputs():\n    return 3\n")
        self.assertIn("get_init_inputs() returned a int", text)

    def test_dataclasses_and_source_lookup(self):
        self.load(problem("return args[0]", init="import inspect; assert 'width' in inspect.getsource(Shape)", extra="""
            from __future__ import annotations
            import dataclasses, pickle
            @dataclasses.dataclass
            class Shape:
                width: int = 3
            assert pickle.loads(pickle.dumps(Shape(4))) == Shape(4)
            """).replace(HEAD, "", 1).replace("import dataclasses", HEAD + "import dataclasses", 1))


class SizesAndSet(WorkerTest):
    SOURCE = problem("return args[0] * scale", inputs="[torch.ones(n, *tail)]", extra="""
        n = 6
        tail = (2,)
        scale = 1.0
        SIZES = {"small": {"n": 3}}
        """)

    def shape(self, **fields):
        return self.load(self.SOURCE, **fields)["inputs"][0]["shape"]

    def test_size_then_set(self):
        self.assertEqual(self.shape(), [6, 2])
        self.assertEqual(self.shape(size="small"), [3, 2])
        self.assertEqual(self.shape(size="small", set={"n": 2, "tail": [5, 1]}), [2, 5, 1])

    def test_unknown_names_say_what_exists(self):
        text = self.fails("problem", self.shape, size="huge")
        self.assertEqual(text, '1_Test.py: there is no size "huge"; the sizes are public, small')
        text = self.fails("problem", self.shape, set={"m": 2})
        self.assertIn('set names the constant "m", which the file does not define; '
                      "its constants are n, tail, scale", text)


class ProblemErrors(WorkerTest):
    def text(self, source, **fields):
        text = self.fails("problem", self.worker.load_problem, source, **fields)
        self.assertNotIn("\n", text)
        return text

    def test_each_is_one_sentence(self):
        self.assertIn("1_Test.py, line 2: the file raised SyntaxError", self.text("x = 1\ndef f(:\n"))
        self.assertIn("does not define a class Model", self.text("x = 1\n"))
        self.assertIn("does not define a function get_inputs()", self.text(RELU.replace("get_inputs", "inputs")))
        self.assertIn("get_inputs() returned a Tensor", self.text(RELU.replace("[torch.rand(4, 8)]", "torch.rand(4)")))
        self.assertIn("dtype torch.complex64", self.text(problem("return args[0]", "[torch.ones(2) * 1j]")))
        self.assertIn("9 dimensions", self.text(problem("return args[0]", "[torch.ones(*[1] * 9)]")))
        self.assertIn("9 dimensions", self.text(problem("return torch.ones(*[1] * 9)")))
        self.assertIn("input 1 of get_inputs() is a list",
                      self.text(problem("return args[0]", "[torch.ones(2), []]")))
        self.assertIn("is inf", self.text(problem("return args[0]", "[torch.ones(2), float('inf')]")))
        self.assertIn("returns no tensor", self.text(problem("return None")))
        self.assertIn("forward returned a set", self.text(problem("return {1}")))
        self.assertIn("line 9: Model.forward raised RuntimeError: The size of tensor",
                      self.text(problem("return args[0] + torch.ones(5)")))
        self.assertIn("SystemExit", self.text("import sys; sys.exit(0)"))
        self.assertIn("SIZES must map", self.text(RELU + "SIZES = 3"))

    def test_out_of_memory(self):
        text = self.fails("out_of_memory", self.worker.load_problem,
                          problem("return args[0]", "[torch.empty(1 << 50)]"))
        self.assertIn("get_inputs()", text)

    def test_unsupported_device(self):
        self.fails("unsupported", self.worker.load_problem, RELU, device="cuda:0")
        self.load(RELU)
        self.fails("protocol", self.worker.load_problem, RELU, device="cuda")

    def test_output_shape_must_not_depend_on_values(self):
        self.load(problem("return args[0][args[0] > 0.5]"))
        self.draw([0])
        self.assertIn("must not depend on values", self.fails("problem", self.expect, [0], [1]))


class Reference(WorkerTest):
    def test_inputs_follow_their_seeds(self):
        self.load(RELU)
        self.draw([0, 1])
        first = self.worker.inputs(0), self.worker.inputs(1)
        self.assertNotEqual(*first)
        self.worker.request("inputs", slots=[1, 0], seeds=["100", str(2**64 - 1)])
        self.assertEqual(self.worker.inputs(1), first[0])

    def test_params_follow_the_weight_seed(self):
        weights = []
        for seed in (42, 42, 43):
            self.load(LINEAR, weight_seed=seed)
            self.worker.request("export_params")
            weights.append([self.worker.values(p) for p in self.worker.layout["params"]])
        self.assertEqual(weights[0], weights[1])
        self.assertNotEqual(weights[0], weights[2])

    def test_expect_and_turns_agree(self):
        self.load(LINEAR)
        self.draw([0, 1, 2])
        self.worker.request("export_params")
        expected = self.expect([0, 1, 2], [1, 2, 3])
        weight, bias = (self.worker.values(p) for p in self.worker.layout["params"])
        x = self.worker.inputs(0)[0]
        by_hand = [sum(x[8 * r + k] * weight[8 * c + k] for k in range(8)) + bias[c]
                   for r in range(4) for c in range(3)]
        self.assert_close(expected[0][0], by_hand)
        self.assertEqual(self.worker.turn([0]), [expected[0]])
        self.assertEqual(self.worker.turn([2, 0, 1]), [expected[2], expected[0], expected[1]])
        self.assertEqual(self.worker.turn([1] * 16), [expected[1]] * 16)

    def test_strict_is_the_default_on_a_cpu(self):
        self.load(LINEAR)
        self.draw([0])
        self.assertEqual(self.expect([0], [1], "strict"), self.expect([0], [1]))
        self.fails("protocol", self.expect, [0], [1], "lenient")

    def test_truth(self):
        self.load(LINEAR)
        self.draw([0, 3])
        expected = self.expect([0, 3], [1, 2])
        truth = self.expect([0, 3], [1, 2], "truth", "truth")
        for slot in range(2):
            self.assertNotEqual(truth[slot], expected[slot])
            self.assert_close(truth[slot][0], expected[slot][0])
        self.assertEqual(self.expect([0, 3], [1, 2]), expected)

    def test_truth_of_a_cached_attribute_and_tensors_made_in_forward(self):
        self.load(problem("return args[0] / 3 + self.third + torch.full((8,), 1 / 7)",
                          init="self.third = torch.tensor(1.0) / 3"))
        self.draw([0])
        (truth,) = self.expect([0], [1], "truth", "truth")
        third = struct.unpack("f", struct.pack("f", 1 / 3))[0]
        self.assert_close(truth[0], [x / 3 + third + 1 / 7 for x in self.worker.inputs(0)[0]], 1e-15)
        self.load(RELU)  # the default type is back
        self.draw([0])
        self.expect([0], [1])

    def test_truth_where_there_is_none(self):
        self.load(problem("assert args[0].dtype == torch.float32; return args[0] * 1"))
        self.draw([0])
        text = self.fails("unsupported", self.expect, [0], [1], "truth", "truth")
        self.assertIn("does not run in float64", text)
        self.expect([0], [1])

    def test_buffers_are_restored(self):
        self.load(RUNNING_SUM)
        self.draw([0, 1])
        expected = self.expect([0, 1], [1, 2])
        self.assertEqual(expected, [[self.worker.inputs(0)[0]], [self.worker.inputs(1)[0]]])
        self.assertEqual(self.worker.turn([0]), [expected[0]])
        self.worker.enter_turns()
        for _ in range(2):
            self.assertEqual([[o.values() for o in call] for call in self.worker.run([1])], [expected[1]])
        twice = self.worker.run([1, 1])
        self.assert_close(twice[1][0].values(), [2 * x for x in expected[1][0]])
        self.worker.leave()

    def test_replaced_buffers_are_restored(self):
        self.load(problem("self.total = self.total + args[0]; return self.total",
                          init="self.register_buffer('total', torch.zeros(4, 8))"))
        self.draw([0])
        self.worker.turn([0, 0])
        self.assertEqual(self.worker.turn([0]), [self.worker.inputs(0)])

    def test_a_rehearsed_call_leaves_no_trace(self):
        self.load(problem("self.total += args[0]; torch.set_grad_enabled(True); return self.total.clone()",
                          init="self.register_buffer('total', torch.zeros(4, 8))"))
        self.draw([0])
        self.worker.enter_turns()
        self.worker.ring(PREPARE, [0])
        self.worker.ring(RUN, [0])
        self.assertEqual([self.worker.published(0, 0).values()], self.worker.inputs(0))
        self.worker.leave()

    def test_a_rehearsed_call_may_fail(self):
        self.load(problem("assert args[0].any(), 'not now'; return args[0] * 2"))
        self.draw([0])  # and not slot 1, which has zeros
        self.worker.enter_turns()
        self.worker.ring(PREPARE, [0])
        with self.assertRaisesRegex(WorkerFailed, "not now"):
            self.worker.ring(PREPARE, [1])

    def test_batch_norm_stays_in_train_mode(self):
        spec = self.load(BATCH_NORM)
        self.assertEqual([p["buffer"] for p in spec["params"]], [False, False, True, True, True])
        self.draw([0])
        expected = self.expect([0], [1])
        self.assertAlmostEqual(sum(expected[0][0]), 0.0, delta=1e-4)
        self.assertEqual(self.worker.turn([0, 0]), expected * 2)
        self.worker.request("export_params")
        self.assertEqual(self.worker.values(self.worker.layout["params"][2]), [0.0] * 8)

    def test_dropout_follows_the_call_seed(self):
        self.load(problem("return torch.nn.functional.dropout(args[0])"))
        self.draw([0])
        self.worker.request("inputs", slots=[1], seeds=["100"])
        expected = self.expect([0, 1], [7, 8])
        self.assertNotEqual(expected[0], expected[1])
        self.assertEqual(self.worker.turn([0, 1], [7, 8]), expected)
        self.assertEqual(self.worker.turn([1, 0], [7, 7]), [expected[0]] * 2)
        self.assertNotEqual(self.worker.turn([0]), [expected[0]])

    def test_expect_leaves_the_inputs_alone(self):
        self.load(problem("return args[0].mul_(2)"))
        self.draw([0])
        before = self.worker.inputs(0)
        self.expect([0], [1])
        self.expect([0], [1], "truth", "truth")
        self.assertEqual(self.worker.inputs(0), before)

    def test_integers_and_labels(self):
        spec = self.load(problem("return torch.nn.functional.cross_entropy(*args), args[1].argsort()",
                                 "[torch.rand(4, 8), torch.randint(0, 8, (4,))]"), precision="bf16")
        self.assertEqual([i["dtype"] for i in spec["inputs"]], ["bfloat16", "int64"])
        self.draw([0, 1])
        expected = self.expect([0, 1], [1, 2])
        self.assertEqual(self.worker.turn([0, 1]), expected)

    def test_precisions(self):
        for precision, dtype in (("bf16", "bfloat16"), ("fp16", "float16")):
            spec = self.load(LINEAR, precision=precision)
            self.assertEqual({d["dtype"] for d in spec["inputs"] + spec["outputs"] + spec["params"]}, {dtype})
            self.draw([0])
            expected, truth = self.expect([0], [1]), self.expect([0], [1], "truth", "truth")
            self.assert_close(expected[0][0], truth[0][0], 2e-2)
            self.assertEqual(self.worker.turn([0]), expected)

    def test_empty_tensors_and_all_dtypes(self):
        names = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]
        made = ", ".join(f"torch.ones(3, 1, dtype=torch.{name})" for name in names)
        spec = self.load(problem("return args", f"[torch.empty(0, 3), {made}]"))
        self.assertEqual([o["dtype"] for o in spec["outputs"]], ["float32", *names])
        self.draw([0])
        (outputs,) = self.worker.turn([0])
        self.assertEqual(outputs, [[]] + [[1, 1, 1]] * 10)


class Turns(WorkerTest):
    def test_stub(self):
        spec = self.load(problem("return args[0] * 1, args[0].sum(1).long()"))
        self.draw([0, 1])
        self.worker.enter_turns(stub=spec["outputs"])
        for outputs in self.worker.run([0, 1, 0]):
            self.assertEqual([(o.dtype, o.shape) for o in outputs], [("float32", [4, 8]), ("int64", [4])])
        self.worker.leave()

    def test_records(self):
        self.load(problem("return args[0].t(), args[0][1:, ::2], args[0].sum()"))
        self.draw([0, 1])
        self.worker.enter_turns()
        for slots in ([0, 1, 0], [1]):
            for slot, (turned, strided, total) in zip(slots, self.worker.run(slots)):
                x = self.worker.inputs(slot)[0]
                self.assertEqual((turned.shape, turned.strides, turned.count), ([8, 4], [1, 8], 3))
                self.assertEqual(turned.values(), [x[8 * r + c] for c in range(8) for r in range(4)])
                self.assertEqual((strided.shape, strided.strides), ([3, 4], [8, 2]))
                self.assertEqual(strided.values(), [x[8 * r + c] for r in range(1, 4) for c in range(0, 8, 2)])
                self.assertEqual((total.shape, total.strides, total.dtype), ([], [], "float32"))
        self.worker.leave()

    def test_outputs_of_a_turn_are_all_alive(self):
        self.load(RELU)
        self.draw([0])
        self.worker.enter_turns()
        addresses = {call[0].place for call in self.worker.run([0] * 16)}
        self.assertEqual(len(addresses), 16)
        self.worker.leave()

    def test_metadata_follows_what_changes(self):
        self.load(problem("return args[0] * 1"))
        self.worker.load_candidate(as_candidate(problem(
            "self.n += 1\nreturn args[0][:self.n]" , init="self.n = 0")), RELU)
        self.worker.enter_turns()
        self.assertEqual([c[0].shape for c in self.worker.run([0, 0])], [[1, 8], [2, 8]])
        self.assertEqual([c[0].shape for c in self.worker.run([0])], [[3, 8]])
        self.worker.leave()

    def test_number_of_outputs(self):
        self.load(problem("return args[0], args[0]"))
        for returned, count in (("args[0]", 1), ("[args[0]] * 5", 5), ("None", 0), ("args[0], args[0]", 2)):
            self.worker.load_candidate(as_candidate(problem(f"return {returned}")), RELU)
            self.worker.enter_turns()
            self.assertEqual([call[0].count for call in self.worker.run([0, 1])], [count, count])
            self.worker.leave()

    def candidate_turn(self, forward, extra=""):
        self.worker.load_candidate(as_candidate(problem(forward, extra=extra)), RELU)
        self.draw([0])
        return self.worker.turn([0])[0][0]

    def test_unusual_tensors_are_made_plain(self):
        self.load(RELU)
        self.draw([0])
        x = self.worker.inputs(0)[0]
        self.load(RELU)
        for forward in ("return args[0].to_sparse()", "return nn.Parameter(args[0])", "return args[0].to_sparse_csr()",
                        "return args[0].as_subclass(type('Mine', (torch.Tensor,), {}))",
                        "return torch.complex(-args[0], -args[0]).conj().imag", "return args[0].to_mkldnn()"):
            with self.subTest(forward):
                self.assertEqual(self.candidate_turn(forward), x)

    def test_tensors_without_values_are_errors(self):
        self.load(RELU)
        lazy = """
            class Lazy(torch.Tensor):
                @staticmethod
                def __new__(cls, x):
                    return torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype)
                @classmethod
                def __torch_dispatch__(cls, f, types, args=(), kwargs=None):
                    raise NotImplementedError
            """
        for forward, text in (("return args[0].to('meta')", "meta device"), ("return args[0] + 1j", "complex64"),
                              ("return torch.quantize_per_tensor(args[0], 1., 0, torch.qint8)", "qint8"),
                              ("return torch.ones(*[1] * 9)", "9 dimensions"), ("return 'x'", "returned a str"),
                              ("return Lazy(args[0])", "")):
            with self.subTest(forward):
                self.assertIn(text, self.fails("runtime", self.candidate_turn, forward, extra=lazy))

    def test_exception_in_forward(self):
        self.load(RELU)
        self.worker.load_candidate(as_candidate(problem("x = 1\nraise ValueError('no \\ud800 luck')")), RELU)
        self.worker.enter_turns()
        text = self.fails("runtime", self.worker.run, [0])
        self.assertIn('File "/candidates/candidate.py", line 10, in forward\n', text)
        self.assertIn("raise ValueError('no", text)
        self.assertTrue(text.endswith("ValueError: no ? luck"), text)
        self.assertNotIn("kernelbench_worker", text)
        self.assertNotIn("_call_impl", text)
        self.fails("protocol", self.worker.request, "sing")  # it has left turn mode

    def test_other_ways_to_fail(self):
        self.load(RELU)
        for forward, kind in (("raise SystemExit(0)", "runtime"), ("raise KeyboardInterrupt", "runtime"),
                              ("raise EOFError", "runtime"), ("return torch.empty(1 << 50)", "out_of_memory"),
                              ("raise MemoryError", "out_of_memory"), ("return self.forward(*args)", "runtime"),
                              ("raise type('E', (Exception,), {'__str__': lambda s: 1 / 0})()", "runtime")):
            with self.subTest(forward):
                text = self.fails(kind, self.candidate_turn, forward)
                self.assertLessEqual(len(text.encode()), 16384)

    def test_long_texts_keep_their_end(self):
        self.load(RELU)
        text = self.fails("runtime", self.candidate_turn, "raise ValueError('é' * 20000 + 'the end')")
        self.assertLessEqual(len(text.encode()), 16384)
        self.assertTrue(text.startswith("[...]\n") and text.endswith("the end"))

    def test_unknown_command(self):
        self.load(RELU)
        self.worker.enter_turns()
        self.fails("protocol", self.worker.ring, 9)

    def test_gradients_stay_off(self):
        self.load(LINEAR)
        self.worker.load_candidate(as_candidate(problem(
            "assert not torch.is_grad_enabled(); torch.set_grad_enabled(True); return self.linear(args[0])",
            init="self.linear = nn.Linear(8, 3)")), RELU)
        self.worker.turn([0])
        self.worker.turn([0])

    def test_judge_gone_ends_the_worker(self):
        with TestWorker() as worker:
            worker.attach(worker.load_problem(RELU))
            worker.enter_turns()
            worker.socket.close()
            self.assertEqual(worker.process.wait(15), 0)


class Time(WorkerTest):
    def time(self, mode="host", slots=(0, 1), warmup=2, reps=5):
        return self.worker.request("time", mode=mode, slots=slots, warmup=warmup, reps=reps)["times_us"]

    def test_both_roles_time_themselves_between_turns(self):
        self.load(RUNNING_SUM)
        self.draw([0, 1])
        for load in (lambda: None, lambda: self.worker.load_candidate(as_candidate(RUNNING_SUM), RUNNING_SUM)):
            load()
            times = self.time()
            self.assertEqual(len(times), 5)
            self.assertTrue(all(0 < time < 1e6 for time in times), times)
            (total,), = self.worker.turn([0])
            self.assert_close(total, self.worker.inputs(0)[0])

    def test_slots_go_round(self):
        self.load(problem("args[0].add_(1); return args[0] * 1"))
        self.draw([0, 1, 2])
        before = [self.worker.inputs(slot)[0][0] for slot in range(3)]
        self.time(slots=[2, 0], warmup=1, reps=2)
        after = [self.worker.inputs(slot)[0][0] for slot in range(3)]
        self.assert_close([a - b for a, b in zip(after, before)], [1, 0, 2], 1e-5)

    def test_what_cannot_be_timed(self):
        self.load(RELU)
        self.draw([0, 1])
        for mode in ("event", "do_bench"):
            self.fails("unsupported", self.time, mode)
        self.fails("protocol", self.time, "sundial")
        self.load(RELU)
        self.worker.load_candidate(as_candidate(problem("raise ValueError('deliberate')")), RELU)
        self.assertIn("deliberate", self.fails("runtime", self.time))


class Lock(unittest.TestCase):
    """Has workers of its own: a filter cannot be taken off."""

    # fork, vfork, execve, and clone without CLONE_THREAD: EPERM; clone3: ENOSYS. (x86-64)
    PROGRAM = b"".join(struct.pack("<HBBI", *i) for i in (
        (0x20, 0, 0, 0), (0x15, 7, 0, 57), (0x15, 6, 0, 58), (0x15, 5, 0, 59), (0x15, 5, 0, 435),
        (0x15, 0, 2, 56), (0x20, 0, 0, 16), (0x45, 0, 1, 0x10000), (0x06, 0, 0, 0x7FFF0000),
        (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x00050026)))

    def locked(self, forward):
        with TestWorker() as worker:
            worker.attach(worker.load_problem(RELU))
            worker.load_candidate(as_candidate(problem(forward)), RELU)
            worker.enter_turns(self.PROGRAM)
            worker.run([0])  # free to fork
            worker.ring(LOCK)
            try:
                return worker.run([0, 1])
            except WorkerFailed as failed:
                return failed.text

    @unittest.skipUnless(os.uname().machine == "x86_64", "the test's filter is for x86-64")
    def test_no_new_processes(self):
        text = self.locked("import os\nif os.fork() == 0: os._exit(0)\nos.wait()\nreturn args[0]")
        self.assertIn("PermissionError", text)
        text = self.locked("import subprocess\nsubprocess.run(['true'], check=True)\nreturn args[0]")
        self.assertIn("PermissionError", text)

    @unittest.skipUnless(os.uname().machine == "x86_64", "the test's filter is for x86-64")
    def test_threads_still_work(self):
        outputs = self.locked("import threading\nt = threading.Thread(target=int)\nt.start(); t.join()\nreturn args[0]")
        self.assertEqual(len(outputs), 2)

    def test_lock_without_a_program(self):
        with TestWorker() as worker:
            worker.attach(worker.load_problem(RELU))
            worker.enter_turns()
            with self.assertRaises(WorkerFailed) as caught:
                worker.ring(LOCK)
            self.assertEqual(caught.exception.kind, "protocol")

    def test_a_bad_program(self):
        with TestWorker() as worker:
            worker.attach(worker.load_problem(RELU))
            worker.enter_turns(b"\xff" * 16)
            with self.assertRaises(WorkerFailed) as caught:
                worker.ring(LOCK)
            self.assertEqual(caught.exception.kind, "unsupported")


class Candidate(WorkerTest):
    def test_weights_are_the_references(self):
        self.load(LINEAR)
        self.draw([0])
        self.worker.request("export_params")
        expected = self.expect([0], [1])
        other = LINEAR.replace("self.linear = ", "torch.rand(3); self.linear = ")  # draws other weights of its own
        reply = self.worker.load_candidate(as_candidate(other), LINEAR)
        self.assertEqual((reply["matched"], reply["unmatched"]), (2, []))
        self.assertEqual(self.worker.turn([0]), [expected[0]])

    def test_weights_that_find_no_place(self):
        self.load(LINEAR)
        other = LINEAR.replace("nn.Linear(8, 3)", "nn.Linear(8, 3, bias=False)")
        reply = self.worker.load_candidate(as_candidate(other), LINEAR)
        self.assertEqual((reply["matched"], reply["unmatched"]), (1, ["linear.bias"]))

    def test_seeding_is_the_references(self):
        """A candidate that constructs the same things gets the same tensors that have no names."""
        source = problem("return args[0] + self.h", init="self.h = torch.randn(8)")
        self.load(source)
        self.draw([0])
        expected = self.expect([0], [1])
        self.worker.load_candidate(as_candidate(source), source)
        self.assertEqual(self.worker.turn([0]), [expected[0]])

    def test_size_set_and_precision_reach_the_constructor(self):
        source = (f"{HEAD}n = 3\nSIZES = {{'small': {{'n': 2}}}}\nclass Model(nn.Module):\n"
                  "    def __init__(self, n):\n        super().__init__(); self.fc = nn.Linear(n, n)\n"
                  "    def forward(self, x):\n        return self.fc(x)\n"
                  "def get_inputs():\n    return [torch.rand(1, n)]\ndef get_init_inputs():\n    return [n]\n")
        for fields, n in (({}, 3), ({"size": "small"}, 2),
                          ({"size": "small", "set": {"n": 5}, "precision": "bf16"}, 5)):
            spec = self.load(source, **fields)
            self.assertEqual(spec["outputs"][0]["shape"], [1, n])
            self.draw([0])
            self.worker.request("export_params")
            expected = self.expect([0], [1])
            self.assertEqual(self.worker.load_candidate(as_candidate(source), source, **fields)["matched"], 2)
            self.assertEqual(self.worker.turn([0]), [expected[0]])

    def load_error(self, candidate, kind="load"):
        return self.fails(kind, self.worker.load_candidate, candidate, RELU)

    def test_load_errors(self):
        self.load(RELU)
        self.assertEqual(self.load_error(RELU), "the candidate does not define a class ModelNew")
        self.assertIn("SyntaxError", self.load_error("def f(:\n"))
        text = self.load_error("x = 1\nimport nonexistent\n")
        self.assertIn('File "/candidates/candidate.py", line 2', text)
        self.assertIn("ModuleNotFoundError: No module named 'nonexistent'", text)
        self.assertNotIn("kernelbench_worker", text)
        self.assertIn("SystemExit", self.load_error("import sys\nsys.exit(0)\n"))
        self.assertIn("not a torch.nn.Module", self.load_error("def ModelNew():\n    return 3\n"))
        text = self.load_error(as_candidate(problem("return 1", init="1 / 0")))
        self.assertIn("line 7, in __init__\n    1 / 0", text)
        self.load_error(as_candidate(problem("return 1", init="self.x = torch.empty(1 << 50)")), "out_of_memory")
        self.fails("protocol", self.worker.request, "turns")  # no model is left over

    def test_problem_errors_are_not_the_candidates(self):
        self.fails("problem", self.worker.load_candidate, as_candidate(RELU), "x = \n")

    def test_extensions_that_were_not_built(self):
        text = self.load_error("from torch.utils.cpp_extension import load_inline\n"
                               "module = load_inline(name='mine', cpp_sources='int f();', functions=['f'])\n")
        self.assertIn('there is no prebuilt module for the extension "mine"', text)
        self.assertIn("module = load_inline(", text)

    def test_no_shadowing_of_torch(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "torch.py"), "w", encoding="utf-8") as file:
                file.write("raise RuntimeError('shadowed')")
            with TestWorker({"PYTHONPATH": folder}) as worker:
                self.assertEqual(worker.hello["hello"], "torch")


if __name__ == "__main__":
    unittest.main()

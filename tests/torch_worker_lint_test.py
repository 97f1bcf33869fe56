"""The lint of the torch worker: what it finds in a problem, and what it must not."""
import os
import sys
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from torch_worker_judge import TestWorker, WorkerFailed  # noqa: E402

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def problem(forward, init="pass", inputs="[torch.rand(16, 8)]", arguments="x", extra=""):
    return (f"{HEAD}{textwrap.dedent(extra)}\n"
            f"class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            f"{textwrap.indent(textwrap.dedent(init), ' ' * 8)}\n"
            f"    def forward(self, {arguments}):\n{textwrap.indent(textwrap.dedent(forward), ' ' * 8)}\n"
            f"def get_inputs():\n    return {inputs}\n"
            f"def get_init_inputs():\n    return []\n")


CONV_BATCH_NORM = {"forward": "return self.bn(self.conv(x))", "inputs": "[torch.rand(4, 3, 8, 8)]",
                   "init": "self.conv = nn.Conv2d(3, 5, 3)\nself.bn = nn.BatchNorm2d(5)"}
ATTENTION = {"init": "self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)",
             "forward": "return F.softmax(self.q(x) @ self.k(x).mT, dim=-1) @ self.v(x)",
             "inputs": "[torch.rand(2, 16, 8)]"}


class Lint(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.worker = TestWorker()
        cls.addClassCleanup(cls.worker.__exit__)

    def lint(self, source, **fields):
        request = {"source": source, "path": "p.py", "size": "auto", "set": {}, "precision": "fp32", "device": "cpu",
                   "weight_seed": "42", "threads": 1, "memory_bytes": 1 << 30, **fields}
        return self.worker.request("lint", **request)

    def rules(self, *args, **kwargs):
        self.reply = self.lint(problem(*args, **kwargs))
        return [finding["rule"] for finding in self.reply["findings"]]

    def text(self):
        return " ".join(finding["text"] for finding in self.reply["findings"])

    # ---- outputs ----

    def test_an_output_without_information(self):
        self.assertEqual(self.rules("return x * 0"), ["zero", "input"])
        self.assertIn("constant", self.rules("return x * 1e-7 + 5"))
        self.assertIn("constant", self.rules("return (x > -1).float().sum()"))
        self.assertIn("constant", self.rules("return (x > -1)"))
        self.assertIn("seed", self.rules("return torch.arange(8.0) + 0 * x"))
        self.assertIn("seed", self.rules("return x * 2", inputs="[torch.arange(8.0)]"))

    def test_small_outputs_are_outputs(self):
        # Each element is below the absolute tolerance: the bound on the norm decides, as it does for the judge.
        self.assertEqual(self.rules("return torch.softmax(x, -1)", inputs="[torch.randn(2, 20000)]"), [])
        self.assertEqual(self.rules("return x * 1e-9"), [])

    def test_each_output_is_looked_at(self):
        self.assertEqual(self.rules("return x, x * 0"), ["zero"])
        self.assertIn("output 1", self.text())
        self.assertEqual(self.rules("return {'a': x.argmax(-1), 'b': [x.sum()]}"), [])

    def test_not_finite(self):
        self.assertEqual(self.rules("return torch.log(x - 0.5)"), ["finite"])
        self.assertEqual(self.rules("return x / (x > 0.5)"), ["finite"])
        self.assertIn("infinity", self.text())

    def test_repeat(self):
        self.assertIn("repeat", self.rules("return x + random.random()", extra="import random\nrandom.seed()"
                                           "\nrandom = random.SystemRandom()"))
        self.assertEqual(self.rules("return F.dropout(x * 3, 0.5)"), [])
        self.assertEqual(self.rules("self.total += x; return self.total * 1",
                                    init="self.register_buffer('total', torch.zeros(16, 8))"), [])

    def test_shapes_that_depend_on_values(self):
        self.assertEqual(self.rules("return x[x > 0.5]"), ["shape"])

    # ---- float64 ----

    def test_float32_that_is_not_float64(self):
        self.assertEqual(self.rules("return (x + 1e6) - 1e6"), ["float64"])
        self.assertEqual(self.rules("return x @ torch.ones(8, 8, dtype=torch.float32)"), ["float64"])
        self.assertIn("does not run", self.text())
        self.assertEqual(self.rules("return x @ torch.ones(8, 8)"), [])

    # ---- inputs ----

    def test_inputs_without_effect(self):
        self.assertEqual(self.rules("return x * 2", arguments="x, mask",
                                    inputs="[torch.rand(4), torch.rand(4)]"), ["input"])
        self.assertIn("input 1 (mask)", self.text())
        self.assertEqual(self.rules("return x * 2", arguments="x, n", inputs="[torch.rand(4), 3]"), ["input"])
        self.assertEqual(self.rules("return x * 2", arguments="x, i",
                                    inputs="[torch.rand(4), torch.randint(0, 4, (4,))]"), ["input"])
        self.assertEqual(self.rules("return x * 2", arguments="x, b",
                                    inputs="[torch.rand(4), torch.rand(4) > 0.5]"), ["input"])

    def test_inputs_with_effect(self):
        for forward, more in (("return x * n", "3.5"), ("return x.roll(n)", "3"), ("return x if n else x * 2", "True"),
                              ("return x[n]", "torch.randint(0, 4, (7,))"), ("return x.view(n, -1) * 2", "2"),
                              ("return x.masked_fill(n, 0)", "torch.rand(4) > 0.5"),
                              ("return x.masked_fill(n, 0)", "torch.arange(4) > 2"),
                              ("return x + torch.sign(n)", "torch.randn(4)"),
                              ("return x + (n > 0.5).float()", "torch.rand(4)"),
                              ("n.mul_(2); return x + n", "torch.rand(4)"),
                              ("return F.one_hot(n, 4) + x", "torch.randint(0, 4, (4,))")):
            with self.subTest(forward):
                self.assertEqual(self.rules(forward, arguments="x, n", inputs=f"[torch.rand(4), {more}]"), [])

    # ---- weights ----

    def test_weights_without_effect(self):
        unused = "self.a, self.b = nn.Linear(8, 4), nn.Linear(8, 4)"
        self.assertEqual(self.rules("return self.a(x)", init=unused), ["weight"])
        self.assertIn("b.weight, b.bias", self.text())
        self.assertEqual(self.rules("with torch.no_grad(): return self.a(x)", init=unused), ["weight"])
        self.assertEqual(self.rules("return self.a(x).argmax(-1)", init=unused), ["weight"])
        self.assertEqual(self.rules("return self.a(x) + 0 * self.b(x)", init=unused), ["weight"])
        self.assertEqual(self.rules(**CONV_BATCH_NORM), ["weight"])
        self.assertIn("conv.bias", self.text())

    def test_weights_with_effect(self):
        stubborn = ("class Stubborn(torch.autograd.Function):\n    @staticmethod\n    def forward(_, x): return x * 2\n"
                    "    @staticmethod\n    def backward(_, g): assert False\n")
        for init, forward in (
                ("self.a = nn.Linear(8, 9)", "with torch.no_grad(): return self.a(x)"),
                ("self.a = nn.Linear(8, 9)", "return self.a(x).argmax(-1)"),
                ("self.a = nn.Linear(8, 9)", "return Stubborn.apply(self.a(x))"),
                ("self.a = nn.Linear(8, 9)", "return torch.round(self.a(x) * 4)"),
                ("self.a = nn.Linear(8, 9).requires_grad_(False)", "return self.a(x)"),
                ("self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8); self.b.weight = self.a.weight",
                 "return self.b(self.a(x))"),
                ("self.a = nn.Parameter(torch.rand(8))", "x.mul_(self.a); return x + 1"),
                ("self.a = nn.Parameter(torch.rand(8))", "return x + F.relu(self.a - 5)"),
                ("self.a = nn.Parameter(torch.rand(8))", "self.a.data.clamp_(0, 1); return x * self.a"),
                ("self.a = nn.Embedding(16, 4)", "return self.a(x.long()) + x.sum()"),
                ("self.a = nn.LSTM(8, 4)", "return self.a(x)[0]"),
                ("self.a = nn.Parameter(torch.rand(16, 8))", "return self.a, x")):
            with self.subTest(forward):
                found = self.rules(forward, init=init, extra=stubborn)
                # Of a weight that is returned as it is the output is the same for all inputs.
                self.assertEqual(found, ["seed"] if forward == "return self.a, x" else [], self.reply["findings"])

    def test_inert_weights_are_named_and_must_be_inert(self):
        self.assertEqual(self.rules(**CONV_BATCH_NORM, extra="INERT = ('conv.bias',)"), [])
        self.assertEqual(self.rules(**ATTENTION), ["weight"])
        self.assertIn("k.bias", self.text())
        self.assertEqual(self.rules(**ATTENTION, extra="INERT = ('k.b*',)"), [])
        self.assertEqual(self.rules(**ATTENTION, extra="INERT = ('*.bias',)"), ["inert"])
        self.assertIn("q.bias, v.bias", self.text())
        self.assertEqual(self.rules(**ATTENTION, extra="INERT = ('k.bias', 'z.bias')"), ["inert"])
        self.assertIn("z.bias", self.text())
        # No gradient, and an effect: of a step.
        self.assertEqual(self.rules("return x + torch.round(self.a)", init="self.a = nn.Parameter(torch.rand(8))",
                                    extra="INERT = ('a',)"), ["inert"])

    def test_the_weakest_weight(self):
        self.rules("return x @ self.a + 1e-5 * self.b", init="self.a = nn.Parameter(torch.rand(8, 8))\n"
                   "self.b = nn.Parameter(torch.rand(8))")
        self.assertEqual(self.reply["weakest"][0], "b")
        self.assertLess(self.reply["weakest"][1], 1e-4)

    # ---- the file ----

    def test_sizes(self):
        source = problem("return x + n", inputs="[torch.rand(n, n)]", extra="n = 4\nSIZES = {'small': {'n': 2}}")
        self.assertEqual(self.lint(source)["size"], "small")
        self.assertEqual(self.lint(source)["spec"]["outputs"][0]["shape"], [2, 2])
        self.assertEqual(self.lint(source, set={"n": 3})["spec"]["outputs"][0]["shape"], [3, 3])
        self.assertEqual(self.lint(source, size="public")["spec"]["outputs"][0]["shape"], [4, 4])
        self.assertEqual(self.lint(problem("return x + 1"))["size"], "public")

    def test_what_the_file_says(self):
        self.assertEqual(self.lint(problem("return x + 1", extra="ALTERED = 'why'"))["altered"], "why")
        for extra in ("ALTERED = 3", "INERT = 'conv.bias'", "INERT = (1,)", "raise SystemExit"):
            with self.subTest(extra), self.assertRaises(WorkerFailed) as caught:
                self.lint(problem("return x + 1", extra=extra))
            self.assertEqual(caught.exception.kind, "problem")

    def test_a_file_cannot_reach_the_next_one(self):
        for hostile in ("torch.relu = lambda x: x * 0", "torch.set_default_dtype(torch.float64)",
                        "import os; [os.close(f) for f in range(3, 64) if f != 3]", "import os; os._exit(3)"):
            with self.subTest(hostile):
                try:
                    self.lint(problem("return x + 1", extra=hostile))
                except WorkerFailed as failed:
                    self.assertEqual(failed.kind, "problem")
                self.assertEqual(self.rules("return torch.relu(x - 0.5)"), [])


if __name__ == "__main__":
    unittest.main()

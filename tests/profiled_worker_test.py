"""The worker that runs a model for a profiler: native calls from Python, and what it answers. On the CPU."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import torch

ROOT = os.environ.get("KERNELBENCH_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "python"))

from kernelbench_worker.errors import WorkerError  # noqa: E402
from kernelbench_worker.native_call import NativeModel  # noqa: E402

AFFINE = """
#include <kernelbench/kernel.h>
#include <cstring>
struct State { const float* bias; };
KB_EXPORT int kb_create(const kb_call* call, void** state) {
  if (call->num_inputs || call->num_outputs || call->abi_version != 1 || call->struct_size != sizeof *call) return 5;
  *state = new State{kb_param_f32(call, "bias")};
  return 0;
}
KB_EXPORT int kb_run(const kb_call* call) {
  const DLTensor& x = call->inputs[0];
  if (x.ndim != 2 || x.shape[1] != 3 || x.strides[0] != 3 || x.dtype.code != kDLFloat || x.dtype.bits != 32) return 6;
  if (call->inputs[1].dtype.code != kDLInt || call->inputs[1].dtype.bits != 64 || call->stream) return 7;
  if (call->num_scalars != 3 || call->scalars[0].kind != KB_SCALAR_INT || call->scalars[0].position != 1) return 8;
  if (call->scalars[1].kind != KB_SCALAR_FLOAT || call->scalars[1].f != 0.5 || call->scalars[2].i != 1) return 9;
  const int64_t* more = (const int64_t*)kb_data(&call->inputs[1]);
  for (int64_t i = 0; i < kb_numel(&x); ++i)
    kb_output_f32(call, 0)[i] = kb_input_f32(call, 0)[i] * call->scalars[0].i + *((State*)call->state)->bias + more[0];
  return 0;
}
"""
PROBLEM = """
import torch
n = 64
SIZES = {"small": {"n": 8}}
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
    def forward(self, x):
        return torch.relu(self.linear(x))
def get_inputs():
    return [torch.rand(n, 8)]
"""
TERMS = {"size": "small", "set": {}, "precision": "fp32", "device": "cpu", "weight_seed": 42, "threads": 1,
         "problem_source": PROBLEM, "problem_path": "p.py", "mode": "operators"}


def build(folder, source, name="kernel.so"):
    path = os.path.join(folder, name)  # a path that is loaded already would not be loaded anew
    subprocess.run(["g++", "-std=c++20", "-shared", "-fPIC", "-I", os.path.join(ROOT, "include"), "-o", path, "-x", "c++",
                    "-"], input=source.encode(), check=True)
    return path


class NativeCall(unittest.TestCase):
    def test_passes_tensors_scalars_parameters_and_state(self):
        with tempfile.TemporaryDirectory() as folder:
            path = build(folder, AFFINE)
            x = torch.arange(6.0).reshape(3, 2).t()  # not dense: a native kernel sees a dense copy
            output = torch.zeros(2, 3)
            model = NativeModel([path], [x, 4, torch.tensor([7]), 0.5, True], [output], {"bias": torch.tensor(0.25)})
            model()
            self.assertTrue(torch.equal(output, x * 4 + 7.25))
            with self.assertRaisesRegex(WorkerError, "kb_run returned 6"):
                NativeModel([path], [torch.zeros(2, 2), 4, torch.tensor([7]), 0.5, True], [output],
                            {"bias": torch.tensor(0.0)})()

    def test_says_what_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(WorkerError, "no kb_run"):
                NativeModel([build(folder, "int f() { return 0; }", "none.so")], [], [], {})
            path = build(folder, '#include <kernelbench/kernel.h>\nKB_EXPORT int kb_create(const kb_call*, void**) '
                                 '{ return 3; }\nKB_EXPORT int kb_run(const kb_call*) { return 0; }')
            with self.assertRaisesRegex(WorkerError, "kb_create returned 3"):
                NativeModel([path], [], [], {})


class Profiled(unittest.TestCase):
    def profile(self, **request):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "request.json"), "w", encoding="utf-8") as file:
                json.dump({**TERMS, **request}, file)
            out = os.path.join(folder, "out")
            os.mkdir(out)
            program = os.path.join(ROOT, "python", "kernelbench_worker", "__main__.py")
            status = subprocess.run([sys.executable, "-I", "-B", program, "profile", file.name, out], check=False,
                                    timeout=300).returncode
            with open(os.path.join(out, "answer.json"), encoding="utf-8") as file:
                return status, json.load(file), sorted(os.listdir(out))

    def test_names_the_operators_of_one_call(self):
        status, answer, files = self.profile(subject="reference")
        self.assertEqual((status, answer["ok"], files), (0, True, ["answer.json", "trace.json"]))
        calls = {row["name"]: row["calls"] for row in answer["operators"]}
        self.assertEqual((calls["aten::addmm"], calls["aten::relu"]), (1, 1))
        self.assertAlmostEqual(answer["time_us"], sum(row["time_us"] for row in answer["operators"]))

    def test_runs_a_candidate_with_the_references_weights(self):
        source = ("import torch\nclass ModelNew(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                  "        self.linear = torch.nn.Linear(8, 8)\n    def forward(self, x):\n"
                  "        return self.linear(x).clamp(min=0)\n")
        _, answer, files = self.profile(subject="python", source=source, path="c.py", language="torch", extensions=[])
        self.assertIn("aten::clamp", [row["name"] for row in answer["operators"]])
        self.assertEqual(files, ["answer.json"])

    def test_errors_are_answers(self):
        status, answer, _ = self.profile(subject="reference", mode="counters")
        self.assertEqual((status, answer["error"]["kind"]), (1, "unsupported"))
        status, answer, _ = self.profile(subject="python", source="raise SystemExit(3)", path="c.py", language="torch",
                                         extensions=[])
        self.assertEqual((status, answer["ok"]), (1, False))
        self.assertIn("SystemExit", answer["error"]["text"])
        _, answer, _ = self.profile(subject="nobody")
        self.assertEqual(answer["error"]["text"], 'there is no subject "nobody"')


if __name__ == "__main__":
    unittest.main()

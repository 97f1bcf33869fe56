"""A candidate that asks for the GPU while it is imported is executed in the build sandbox, which has none."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from torch_worker_judge import PACKAGE, PYTHON  # noqa: E402

AT_IMPORT = """
import torch, torch.nn as nn
from torch.utils.cpp_extension import load_inline
assert torch.cuda.is_available() and torch.cuda.device_count() == 1
torch.manual_seed(0)
major, minor = torch.cuda.get_device_capability()
assert (major, minor) == (9, 0) and torch.cuda.get_device_properties(0).multi_processor_count > 0
stream, device = torch.cuda.Stream(), torch.device("cuda:0")
with torch.cuda.stream(stream): pass
table = torch.arange(4, device="cuda").cuda().to(device) + torch.tensor([1], device=device)
layer = nn.Linear(4, 4, device="cuda").to("cuda").cuda()
torch.cuda.synchronize()
try:
    load_inline("k", "", cuda_sources="__global__ void f() {}")  # there is no nvcc: it was asked for, at least
except Exception:
    pass
"""


class StandIn(unittest.TestCase):
    def prebuild(self, source, *more):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "candidate.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(source)
            subprocess.run([PYTHON, "-I", "-B", os.path.join(PACKAGE, "prebuild.py"), "--source", path, "--out",
                            os.path.join(folder, "out"), *more], check=True,
                           env={"CUDA_HOME": "/nonexistent", "CUDA_VISIBLE_DEVICES": ""})
            with open(os.path.join(folder, "out", "extensions.json"), encoding="utf-8") as file:
                return json.load(file)

    def test_at_import(self):
        result = self.prebuild(AT_IMPORT, "--architecture", "sm_90a")
        self.assertEqual(result["status"], "ok", result["text"])
        self.assertIn("no CUDA compiler (nvcc)", result["text"])
        self.assertIn("the CPU stood in for it", result["text"])

    def test_for_the_cpu_there_is_none(self):
        result = self.prebuild("import torch\nassert not torch.cuda.is_available()\ntorch.ones(1, device='cuda')\n")
        self.assertEqual(result["status"], "load_error")
        self.assertNotIn("stood in", result["text"])

    def test_it_is_not_mentioned_where_it_was_not_needed(self):
        result = self.prebuild("import torch\nif torch.cuda.is_available():\n    x = torch.ones(2)\n",
                               "--architecture", "sm_90")
        self.assertEqual((result["status"], result["text"]), ("ok", ""))


if __name__ == "__main__":
    unittest.main()

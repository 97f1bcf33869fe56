"""What lean_compiler.py decides for a source, and that the real headers have the last word."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

from kernelbench_worker import lean_compiler

TORCH = os.path.join(os.path.dirname(importlib.util.find_spec("torch").origin), "include")
SCRIPT = lean_compiler.__file__


class TestCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


class Plans(TestCase):
    def plan(self, text, head="#include <torch/extension.h>\n"):
        return lean_compiler.plan(self.write("main.cpp", head + text), [os.path.join(self.folder, "include")], [TORCH])

    def operators(self, text):
        return [h[len("ATen/ops/"):-len(".h")] for h in self.plan(text).includes if h.startswith("ATen/ops/")]

    def test_operators_by_name(self):
        self.assertEqual(self.operators("auto y = torch::empty_like(x); y = at :: relu(x) + torch::nothing(y);"),
                         ["empty_like", "relu"])
        self.assertEqual(self.operators("using namespace torch; auto y = zeros_like(x);"), ["zeros_like"])
        self.assertEqual(self.operators("x.zero_(); p->relu(); // torch::mul(x)\n/* at::add(x) */ f(\"at::sub(x)\");"),
                         [])

    def test_helpers_by_word(self):
        self.assertEqual(self.plan("int f();").includes, [])
        self.assertIn("torch/csrc/utils/pybind.h", self.plan("PYBIND11_MODULE(a, m) {}").includes)
        for text in ("torch::tensor({1.5})", "x.requires_grad()"):  # torch:: has its own
            self.assertIn("torch/csrc/autograd/generated/variable_factories.h", self.plan(text).includes)
        self.assertNotIn("torch/csrc/autograd/generated/variable_factories.h",
                         self.plan('TORCH_CHECK(true, "a tensor (on the GPU), requires_grad");').includes)
        self.assertIn("KERNELBENCH_LEAN_DEVICE_GUARD", self.plan("g(device_of(x));").defines)
        self.assertIn("KERNELBENCH_LEAN_DEVICE_GUARD", self.plan("torch::cat({x, y});").defines)  # takes ITensorListRef
        self.assertNotIn("KERNELBENCH_LEAN_DEVICE_GUARD", self.plan("torch::empty({2});").defines)
        for header in {name for _, headers in lean_compiler._HELPERS for name in headers}:
            self.assertTrue(os.path.isfile(os.path.join(TORCH, header)), header)

    def test_the_users_own_headers_are_read(self):
        self.write("include/mine.h", "#include <ATen/ATen.h>\n#include \"more.h\"\n")
        self.write("include/more.h", "inline at::Tensor f() { return at::ones({2}); }\n#include \"mine.h\"\n")
        plan = self.plan("", '#include "mine.h"\n')
        self.assertEqual((plan.headers, plan.includes), ("lean", ["ATen/ops/ones.h"]))

    def test_what_is_not_tried(self):
        full = self.plan("auto y = torch :: nn::functional::relu(x);")
        self.assertEqual((full.headers, full.why), ("full", "it uses torch::nn"))
        self.assertEqual(self.plan("torch::autograd::Variable v;").headers, "full")
        self.assertEqual(self.plan("torch::Tensor nn; // torch::nn").headers, "lean")
        self.assertEqual(self.plan("", "#include <cuda_runtime.h>\n").headers, "own")


class Compiles(TestCase):
    """With a folder in PyTorch's place, which makes g++ quick."""

    def setUp(self):
        super().setUp()
        for name in ("ATen/Dispatch.h", "ATen/TensorOperators.h", "ATen/core/grad_mode.h", "c10/core/InferenceMode.h",
                     "c10/util/Optional.h", "torch/version.h"):
            self.write(f"torch/{name}", "")
        self.write("torch/ATen/core/Tensor.h", "#include <ATen/Context.h>\nnamespace at {\n"
                   "enum class ScalarType { Byte };\nconstexpr auto kByte = ScalarType::Byte;\n"
                   + "".join(f"constexpr auto k{name} = kByte;\n" for name in (
                       "Char", "Short", "Int", "Long", "UInt16", "UInt32", "UInt64", "Half", "Float", "Double")) + "}\n")
        self.write("torch/ATen/Context.h", "#define FULL_CONTEXT 1\n")
        self.write("torch/ATen/ops/ones.h", "namespace at { inline int ones() { return 1; } }\n")
        self.write("torch/torch/extension.h", "#define FULL 1\nnamespace torch { int anything(); int ones(); }\n")

    def compile(self, text, *more):
        source = self.write("main.cpp", "#include <torch/extension.h>\n" + text)
        ran = subprocess.run([sys.executable, "-I", "-S", SCRIPT, "/usr/bin/g++", "-isystem",
                              os.path.join(self.folder, "torch"), "-c", source, "-o", "main.o", *more],
                             cwd=self.folder, capture_output=True, text=True, check=False)
        with open(os.path.join(self.folder, "main.o.headers.json"), encoding="utf-8") as file:
            return ran, json.load(file)

    def test_lean(self):
        ran, headers = self.compile("#if defined(FULL) || defined(FULL_CONTEXT)\n#error not lean\n#endif\n"
                                    "int f() { return torch::ones(); }\n")
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))
        self.assertEqual((headers["headers"], headers["why"]), ("lean", ""))
        self.assertTrue(os.path.exists(os.path.join(self.folder, "main.o")))

    def test_the_real_headers_of_parts_that_are_asked_for(self):
        ran, headers = self.compile("#ifndef FULL_CONTEXT\n#error no context\n#endif\n"
                                    "namespace at { int globalContext(); }\n")
        self.assertEqual((ran.returncode, headers["headers"]), (0, "lean"), ran.stderr)

    def test_the_real_headers_when_the_lean_do_not_suffice(self):
        ran, headers = self.compile("#ifdef FULL\n#warning full\n#endif\nint f() { return torch::anything(); }\n")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("warning full", ran.stderr)
        self.assertEqual(headers["headers"], "full")
        self.assertRegex(headers["why"], r"did not compile with the lean ones: .*main\.cpp:5:\d+: error: .*anything")

    def test_a_source_that_is_wrong(self):
        ran, headers = self.compile("int f() { return torch::wrong(); }\n")
        self.assertEqual((ran.returncode, headers["headers"]), (1, "full"))
        self.assertEqual(ran.stderr.count("error: "), 1, "the words of the lean compilation are not shown")

    def test_other_commands_are_the_compilers(self):
        ran = subprocess.run([sys.executable, "-I", "-S", SCRIPT, "/usr/bin/g++", "-dumpversion"],
                             capture_output=True, text=True, check=True)
        self.assertRegex(ran.stdout, r"^\d+")


if __name__ == "__main__":
    unittest.main()

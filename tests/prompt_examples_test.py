"""The examples that prompts show to a model: each agrees with its problem, as far as this machine can run it."""
import os
import re
import subprocess
import sys
import unittest

FOLDER = os.path.join(os.environ["KERNELBENCH_SOURCE_DIR"], "prompts", "examples")
PROBLEMS = ("scaled_residual", "row_logsumexp")
EXAMPLES = sorted(name for name in os.listdir(FOLDER) if name.endswith(".py") and name[:-3] not in PROBLEMS)
# Backends that can run on the CPU: the variable that makes their kernels plain Python.
INTERPRETERS = {"triton": "TRITON_INTERPRET", "helion": "HELION_INTERPRET"}

COMPARE = """
import importlib.util, sys, torch

def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module

problem, kernel = load("problem", sys.argv[1]), load("kernel", sys.argv[2])
device = sys.argv[3]
if device == "cpu":
    vars(problem).update(problem.SIZES["small"])
arguments = problem.get_init_inputs()
model, new = problem.Model(*arguments).to(device), kernel.ModelNew(*arguments).to(device)
new.load_state_dict(model.state_dict())
with torch.no_grad():
    for seed in range(3):
        torch.manual_seed(seed)
        inputs = [tensor.to(device) for tensor in problem.get_inputs()]
        torch.testing.assert_close(new(*inputs), model(*inputs), atol=1e-4, rtol=1e-4)
"""


def backend_of(example):
    return re.match(rf"({'|'.join(PROBLEMS)})_(\w+)\.py$", example).groups()


def missing_module(example):
    """The first module that the example imports and this Python lacks; None when it has all."""
    with open(os.path.join(FOLDER, example)) as file:
        names = re.findall(r"^(?:import|from) ([\w.]+)", file.read(), re.M)
    for name in names:
        code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({name.split('.')[0]!r}) is None)"
        if subprocess.run([sys.executable, "-c", code]).returncode:
            return name
    return None


def has_gpu():
    return subprocess.run([sys.executable, "-c", "import sys, torch; sys.exit(not torch.cuda.is_available())"],
                          capture_output=True).returncode == 0


class Examples(unittest.TestCase):
    def test_each_is_python_and_defines_what_it_must(self):
        self.assertGreaterEqual(len(EXAMPLES), 9)
        for example in EXAMPLES:
            with self.subTest(example), open(os.path.join(FOLDER, example)) as file:
                source = file.read()
                compile(source, example, "exec")
                self.assertRegex(source, r"(?m)^class ModelNew\(nn\.Module\):")
                self.assertLess(max(map(len, source.splitlines())), 121)

    def test_interpreted(self):
        for example in EXAMPLES:
            problem, backend = backend_of(example)
            if backend not in INTERPRETERS:
                continue
            with self.subTest(example):
                if missing := missing_module(example):
                    self.skipTest(f"no {missing}")
                self.compare(problem, example, "cpu", {INTERPRETERS[backend]: "1"})

    def test_on_a_gpu(self):
        if not has_gpu():
            self.skipTest("no GPU")
        for example in EXAMPLES:
            problem, backend = backend_of(example)
            if backend == "hip" or backend == "thunderkittens" and "THUNDERKITTENS_ROOT" not in os.environ:
                continue
            with self.subTest(example):
                if missing := missing_module(example):
                    self.skipTest(f"no {missing}")
                self.compare(problem, example, "cuda", {})

    def compare(self, problem, example, device, variables):
        done = subprocess.run(
            [sys.executable, "-c", COMPARE, os.path.join(FOLDER, problem + ".py"), os.path.join(FOLDER, example),
             device], capture_output=True, text=True, env={**os.environ, **variables, "OMP_NUM_THREADS": "1"},
            timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])


if __name__ == "__main__":
    unittest.main()

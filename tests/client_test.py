"""The Python client, against the real program on the CPU."""
import asyncio
import concurrent.futures
import contextlib
import gc
import os
import queue
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import kernelbench_judge
from kernelbench_judge import (InfrastructureError, Judge, NotFound, Source, aevaluate, eval_kernel_against_ref,
                               evaluate, evaluate_each, evaluate_many)
from kernelbench_judge.source import suffix_of

ROOT = Path(os.environ["KERNELBENCH_SOURCE_DIR"])
PROBLEM = '''import torch
import torch.nn as nn

rows = 64


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(rows, 64)]


def get_init_inputs():
    return []
'''
MODEL = '''import os, time
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        {}
'''
RIGHT = MODEL.format("return torch.relu(x)")
NATIVE = '''#include <kernelbench/kernel.h>
extern "C" int kb_run(const kb_call* call) {
  const float* x = kb_input_f32(call, 0);
  float* y = kb_output_f32(call, 0);
  for (int64_t i = 0, n = kb_numel(&call->inputs[0]); i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  return 0;
}
'''
BRIEF = {"no_timing": True, "no_stress": True, "trials": 1}
QUICK = {"device": "cpu", **BRIEF}
BATCH = {"devices": ["cpu"], **BRIEF}


def alive():
    """Programs of evaluations that were started by this process, and their workers."""
    mark = f"KERNELBENCH_CLIENT_TEST={os.getpid()}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def program_of(pid):
    """Empty for one that has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().partition("\0")[0]
    return ""


def below(pids):
    """Everything that descends from `pids`, they included."""
    pids = set(pids)
    while True:
        more = set()
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent in pids and int(entry.name) not in pids:
                    more.add(int(entry.name))
        if not more:
            return pids
        pids |= more


def gone(pids):
    """True when none of `pids` runs, a moment later at most: init reaps when it gets to it."""
    for _ in range(100):
        left = []
        for pid in pids:
            with contextlib.suppress(OSError):
                if (Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]) not in "ZX":
                    left.append(pid)
        if not left:
            return True
        time.sleep(0.1)
    return False


class Client(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        patch = mock.patch.dict(os.environ, {"KERNELBENCH_CLIENT_TEST": str(os.getpid()),
                                             "TMPDIR": folder.name})
        patch.start()
        self.addCleanup(patch.stop)
        tempfile.tempdir, before = None, tempfile.tempdir
        self.addCleanup(setattr, tempfile, "tempdir", before)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def wait_for_workers(self):
        """Returns all processes of an evaluation once it has workers."""
        for _ in range(600):
            family = below(alive())
            if len(family) > 2:
                return family
            time.sleep(0.1)
        self.fail("no evaluation has started")


class Verdicts(Client):
    def test_each_word(self):
        cases = {
            "correct": RIGHT,
            "static_reject": "I would rather not.\n",
            "load_error": "import nonexistent_module\n" + RIGHT,
            "runtime_error": MODEL.format("raise RuntimeError('deliberate')"),
            "wrong_shape": MODEL.format("return torch.relu(x)[:1]"),
            "wrong_dtype": MODEL.format("return torch.relu(x).double()"),
            "wrong_value": MODEL.format("return x"),
            "timeout": MODEL.format("time.sleep(1000)"),
            "compile_error": NATIVE.replace("return 0", "return nonsense"),
        }
        for verdict, text in cases.items():
            with self.subTest(verdict):
                more = {"first_call_timeout": 1} if verdict == "timeout" else {}
                result = evaluate(PROBLEM, text, **QUICK, **more)
                self.assertEqual(result["verdict"], verdict, result["message"])
                self.assertEqual(result["correct"], verdict == "correct")
                self.assertEqual(result["problem"], "problem.py")
        self.assertEqual(list(self.folder.iterdir()), [], "temporary files are left")

    def test_forms_of_sources(self):
        for candidate in (NATIVE, self.write("k.cpp", NATIVE), str(self.folder / "k.cpp"), Source(NATIVE)):
            result = evaluate("level1/19", candidate, size="small", **QUICK)
            self.assertEqual((result["verdict"], result["backend"]), ("correct", "cpp"), result["message"])
        result = evaluate(self.write("p.py", PROBLEM), RIGHT, set={"rows": 3}, **QUICK)
        self.assertEqual(result["verdict"], "correct", result["message"])
        for text in ("", "no line break", "\0\n", "\udcff\n"):
            self.assertEqual(evaluate("level1/19", Source(text), **QUICK)["verdict"], "static_reject", repr(text))

    def test_times(self):
        result = evaluate("level1/19", NATIVE, size="small", pairs=5, device="cpu")
        self.assertEqual(result["verdict"], "correct")
        self.assertGreater(result["speedup"], 0)

    def test_bad_input_is_the_programs_sentence(self):
        for problem, candidate, options, says in (
                ("level1/101", RIGHT, {}, "101"), ("/nonexistent.py", RIGHT, {}, "/nonexistent.py"),
                ("level1/19", "/nonexistent.py", {}, "/nonexistent.py"), ("level1/19", "no path", {}, "Source"),
                ("level1/19", RIGHT, {"size": "enormous"}, "enormous"),
                ("level1/19", RIGHT, {"precision": "fp8"}, "fp8"), ("level1/19", RIGHT, {"sing": 1}, "--sing"),
                ("level1/19", RIGHT, {"device": "tpu; touch x"}, "tpu"), ("level1/19", RIGHT, {"json": True}, "json"),
                ("level1/19", RIGHT, {"timeout": 0}, "timeout"), (PROBLEM.replace("get_inputs", "x"), RIGHT, {},
                                                                  "get_inputs")):
            with self.subTest(says), self.assertRaisesRegex(ValueError, says):
                evaluate(problem, candidate, **{"device": "cpu", **options})


class Ends(Client):
    SLOW = MODEL.format("time.sleep(1000)")

    def test_of_time(self):
        start = time.monotonic()
        result = evaluate(PROBLEM, self.SLOW, timeout=4, first_call_timeout=500, **QUICK)
        self.assertEqual(result["verdict"], "infrastructure_error")
        self.assertIn("within 4 s", result["message"])
        self.assertLess(time.monotonic() - start, 60)
        self.assertEqual(alive(), [])

    def test_a_hanging_kernel_is_the_judges_to_tell(self):
        result = evaluate(PROBLEM, self.SLOW, timeout=240, evaluation_timeout=60, first_call_timeout=2, **QUICK)
        self.assertEqual(result["verdict"], "timeout", result["message"])

    def test_cancelled(self):
        async def judge():
            task = asyncio.ensure_future(aevaluate(PROBLEM, self.SLOW, **QUICK))
            family = await asyncio.to_thread(self.wait_for_workers)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            return family

        self.assertTrue(gone(asyncio.run(judge())))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_interrupted(self):
        code = ("import sys; sys.path.insert(0, sys.argv[1]); from kernelbench_judge import evaluate\n"
                "try: evaluate(sys.argv[2], sys.argv[3], device='cpu')\nexcept KeyboardInterrupt: print('interrupted')")
        caller = subprocess.Popen([sys.executable, "-c", code, str(ROOT / "python"), PROBLEM, self.SLOW],
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(caller.kill)
        for _ in range(600):
            family = below([caller.pid]) - {caller.pid}
            if len(family) > 2:
                break
            time.sleep(0.1)
        caller.send_signal(2)
        self.assertEqual(caller.communicate(timeout=60)[0], "interrupted\n")
        self.assertTrue(gone(family))

    def test_a_batch_that_is_closed(self):
        for problem in ("level1/19", PROBLEM):
            with self.subTest(problem.partition("\n")[0]):
                results = evaluate_each([(problem, Source("")), (problem, self.SLOW)], size="public",
                                        **({"set": {"batch_size": 8, "dim": 8}} if problem != PROBLEM else {}), **BATCH)
                self.assertEqual(next(results)[1]["verdict"], "static_reject")
                family = self.wait_for_workers()
                results.close()
                self.assertTrue(gone(family))
                self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_batch_out_of_time(self):
        results = evaluate_many([("level1/19", self.SLOW)] * 2, size="small", timeout=4, first_call_timeout=500,
                                compile_timeout=1, jobs=2, **BATCH)
        self.assertEqual([result["verdict"] for result in results], ["infrastructure_error"] * 2)
        self.assertIn("within 5 s", results[1]["message"])


class Batches(Client):
    def test_many_come_in_their_order(self):
        pairs = [("level1/19", NATIVE), ("level1/19", MODEL.format("return x")), ("level1/19", Source("")),
                 ("level1/101", RIGHT), ("level1/19", "/nonexistent.py"), ("level1/19", self.write("k.py", RIGHT))]
        results = evaluate_many(pairs, jobs=1, set={"batch_size": 8, "dim": 64}, **BATCH)
        self.assertEqual([result["verdict"] for result in results],
                         ["correct", "wrong_value", "static_reject", "infrastructure_error", "infrastructure_error",
                          "correct"], results)
        self.assertIn("101", results[3]["message"])
        self.assertIn("/nonexistent.py", results[4]["message"])
        self.assertEqual([result["problem"] for result in results], ["level1/19"] * 3 + ["level1/101"] +
                         ["level1/19"] * 2)
        self.assertEqual(results[5]["candidate"], "k.py")

    def test_problems_of_any_form(self):
        pairs = [(PROBLEM, RIGHT), ("level1/19", Source("")), (self.write("p.py", PROBLEM), MODEL.format("return x")),
                 ("/nonexistent.py", RIGHT), ("bundled:level1/19", Source("")),
                 (PROBLEM.replace("get_inputs", "x"), RIGHT), (PROBLEM, MODEL.format("raise OSError"))]
        results = dict(evaluate_each(pairs, **BATCH))
        self.assertEqual([results[index]["verdict"] for index in range(len(pairs))],
                         ["correct", "static_reject", "wrong_value", "infrastructure_error", "static_reject",
                          "infrastructure_error", "runtime_error"], results)
        self.assertEqual([results[index]["problem"] for index in range(6)],
                         ["problem.py", "level1/19", str(self.folder / "p.py"), "/nonexistent.py", "bundled:level1/19",
                          "problem.py"])
        self.assertEqual(results[0]["candidate"], "candidate.py")
        self.assertIn("get_inputs", results[5]["message"])

    def test_options_that_mean_nothing(self):
        with self.assertRaisesRegex(ValueError, "--sing"):
            evaluate_many([("level1/19", RIGHT)], sing=1)
        self.assertEqual(evaluate_many([]), [])

    def test_in_a_loop(self):
        async def judge():
            return evaluate_many([(PROBLEM, Source(""))], **BATCH)

        self.assertEqual(asyncio.run(judge())[0]["verdict"], "static_reject")


class Standing(Client):
    SLOW = MODEL.format("time.sleep(1000)")
    PROBLEM = PROBLEM + '\n\nSIZES = {"small": {"rows": 8}}\n'

    def judge(self, **more):
        judge = Judge(**{"size": "small", **BATCH, **more})
        self.addCleanup(judge.close)
        return judge

    @staticmethod
    def process_of(judge):
        return judge._services[-1]._process.pid  # what runs beside it may be another's, for a moment

    def test_judges_many_in_one_process(self):
        judge = self.judge()
        first = self.process_of(judge)
        cases = [("level1/19", NATIVE, "correct", "level1/19", "candidate.cpp"),
                 ("level1/19", MODEL.format("return x"), "wrong_value", "level1/19", "candidate.py"),
                 (self.PROBLEM, self.write("k.py", RIGHT), "correct", "problem.py", "k.py"),
                 (self.PROBLEM, MODEL.format("raise OSError"), "runtime_error", "problem.py", "candidate.py"),
                 (self.write("p.py", self.PROBLEM), Source(""), "static_reject", str(self.folder / "p.py"),
                  "candidate.py"),
                 ("level1/19", NATIVE.replace("return 0", "return nonsense"), "compile_error", "level1/19",
                  "candidate.cpp")]
        judge.evaluate(*cases[0][:2])
        with concurrent.futures.ThreadPoolExecutor() as pool:
            results = list(pool.map(lambda case: judge.evaluate(*case[:2]), cases))

        async def again():
            return await asyncio.gather(*(judge.aevaluate(*case[:2]) for case in cases))

        for result, case in zip(results + asyncio.run(again()), cases + cases):
            self.assertEqual((result["verdict"], result["problem"], result["candidate"]), case[2:], result["message"])
        self.assertEqual(self.process_of(judge), first)
        self.assertIn(first, alive())
        family = below([first])
        judge.close()
        judge.close()
        self.assertTrue(gone(family))
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["k.py", "p.py"])

    def test_the_second_finds_all_ready(self):
        judge = self.judge()
        first, second = (judge.evaluate("level1/19", NATIVE)["phases_ms"] for _ in range(2))
        self.assertGreater(first["reference_import"], 0)
        self.assertEqual(second["reference_import"], 0)

    def test_bad_input_is_the_programs_sentence(self):
        for options, says in (({"size": "small", "sing": 1}, "--sing"), ({"devices": ["tpu"]}, "tpu"),
                              ({"devices": ["cpu", "cuda:0"]}, "both"), ({"timeout": 0}, "timeout")):
            with self.subTest(says), self.assertRaisesRegex(ValueError, says):
                self.judge(**options)
        self.assertEqual(list(self.folder.iterdir()), [])
        judge = self.judge()
        for problem, candidate, options, says in (
                ("level1/101", RIGHT, {}, "101"), ("/nonexistent.py", RIGHT, {}, "/nonexistent.py"),
                ("level1/19", "/nonexistent.py", {}, "/nonexistent.py"), ("level1/19", "no path", {}, "Source"),
                ("level1/19", RIGHT, {"backend": "cobol"}, "cobol"), ("level1/19", "/no\udcff.cpp", {}, "utf-8"),
                (self.PROBLEM.replace("get_inputs", "x"), RIGHT, {}, "get_inputs")):
            with self.subTest(says), self.assertRaisesRegex(ValueError, says):
                judge.evaluate(problem, candidate, **options)
        judge.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            judge.evaluate("level1/19", RIGHT)

    def test_one_that_is_killed_is_followed_by_another(self):
        judge = self.judge(first_call_timeout=500)
        pid = self.process_of(judge)
        lost = judge.submit(self.PROBLEM, self.SLOW)
        self.wait_for_workers()
        os.kill(pid, 9)
        self.assertEqual(lost.result(60)["verdict"], "infrastructure_error")
        self.assertIn("code -9", lost.result()["message"])
        self.assertEqual(judge.evaluate(self.PROBLEM, RIGHT)["verdict"], "correct")
        self.assertNotIn(pid, alive())

    def test_one_that_hangs_is_killed(self):
        judge = self.judge(timeout=4, first_call_timeout=500, compile_timeout=1)
        results = [future.result(120) for future in [judge.submit(self.PROBLEM, self.SLOW) for _ in range(2)]]
        self.assertEqual([result["verdict"] for result in results], ["infrastructure_error"] * 2)
        self.assertIn("within 5 s", results[1]["message"])

    def test_one_whose_caller_is_killed_ends(self):
        code = ("import os, sys, time; sys.path.insert(0, sys.argv[1]); from kernelbench_judge import Judge\n"
                "judge = Judge(size='small', devices=['cpu'])\njudge.submit(sys.argv[2], sys.argv[3])\n"
                "if os.fork() > 0: print(flush=True)\n"  # the child holds the ends of all pipes
                "time.sleep(600)")
        caller = subprocess.Popen([sys.executable, "-c", code, str(ROOT / "python"), self.PROBLEM, self.SLOW],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(os.killpg, caller.pid, 9)  # the child is left
        self.addCleanup(caller.stdout.close)
        caller.stdout.readline()
        for _ in range(600):
            family = below([caller.pid]) - {caller.pid}
            if len(family) > 4:
                break
            time.sleep(0.1)
        judging = {pid for pid in family if os.path.basename(program_of(pid)).startswith("kernelbench")}
        self.assertNotEqual(judging, set())
        caller.kill()
        caller.wait()
        self.assertTrue(gone(judging))

    def test_a_fork_cannot_use_it_and_leaves_it_alone(self):
        judge = self.judge()
        child = os.fork()
        if child == 0:
            with contextlib.suppress(ValueError):
                judge.submit("level1/19", NATIVE)
                os._exit(1)
            judge.close()
            os._exit(0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(judge.evaluate("level1/19", NATIVE)["verdict"], "correct")

    def test_a_callback_may_submit_and_not_wait(self):
        judge = self.judge()
        seen = queue.SimpleQueue()

        def then(_):
            with contextlib.suppress(RuntimeError):
                judge.evaluate("level1/19", NATIVE)
                seen.put(None)
            judge.submit("level1/19", Source("")).add_done_callback(seen.put)

        judge.submit("level1/19", NATIVE).add_done_callback(then)
        self.assertEqual(seen.get(timeout=120).result()["verdict"], "static_reject")

    def test_many_descriptors(self):
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, before[1]), before[1]))
        for _ in range(1100):
            self.addCleanup(os.close, os.open("/dev/null", os.O_RDONLY))
        self.assertEqual(self.judge().evaluate("level1/19", NATIVE)["verdict"], "correct")

    def test_no_second_one_beside_the_first(self):
        judge = self.judge(timeout=4, first_call_timeout=500, compile_timeout=1)
        pid = self.process_of(judge)
        lost = judge.submit(self.PROBLEM, self.SLOW)
        there = queue.SimpleQueue()
        lost.add_done_callback(lambda _: there.put(pid in alive()))
        self.assertFalse(there.get(timeout=120))

    def test_what_waits_when_it_is_closed(self):
        judge = Judge(size="small", first_call_timeout=500, **BATCH)
        future = judge.submit(self.PROBLEM, self.SLOW)
        family = self.wait_for_workers()
        del judge
        gc.collect()
        self.assertIn("closed", future.result(60)["message"])
        self.assertTrue(gone(family))


class KernelBench(Client):
    def test_fields(self):
        torch_device = type("Device", (), {"__str__": lambda self: "cpu"})()
        dtype = type("Dtype", (), {"__str__": lambda self: "torch.bfloat16"})()
        result = eval_kernel_against_ref(PROBLEM, RIGHT, seed_num=1, num_correct_trials=2, num_perf_trials=3,
                                         verbose=False, measure_performance=True, build_dir="x", device=torch_device,
                                         backend="triton", precision=dtype, pairs=5)
        self.assertTrue(result.compiled and result.correctness, result)
        self.assertGreater(result.runtime, 0)
        self.assertGreater(result.ref_runtime, 0)
        self.assertEqual(result.runtime_stats["num_trials"], 5)
        self.assertLessEqual(result.runtime_stats["min"], result.runtime_stats["mean"])
        self.assertEqual(result.metadata["correctness_trials"], "(2 / 2)")
        self.assertEqual(result.model_dump()["runtime"], result.runtime)

    def test_failures(self):
        wrong = eval_kernel_against_ref(PROBLEM, MODEL.format("return x"), device="cpu")
        self.assertEqual((wrong.compiled, wrong.correctness, wrong.runtime), (True, False, -1.0))
        self.assertIn("correctness_issue", wrong.metadata)
        none = eval_kernel_against_ref(PROBLEM, "", device="cpu")
        self.assertEqual((none.compiled, none.correctness), (False, False))
        self.assertIn("compilation_error", none.metadata)
        with self.assertRaises(InfrastructureError):
            eval_kernel_against_ref(PROBLEM, RIGHT, device="cpu", timeout=0.01)
        with self.assertRaisesRegex(ValueError, "fp8"):
            eval_kernel_against_ref(PROBLEM, RIGHT, device="cpu", precision="torch.fp8")


class Programs(Client):
    def test_missing_and_wrong_ones(self):
        plain = self.write("plain", "")
        for chosen in (str(self.folder / "missing"), str(plain), "/bin/true", "/bin/false", "/bin/ls"):
            with self.subTest(chosen), mock.patch.dict(os.environ, {"KERNELBENCH_BINARY": chosen}):
                with self.assertRaisesRegex(NotFound, "KERNELBENCH_BINARY"):
                    evaluate("level1/19", RIGHT)
                with self.assertRaisesRegex(NotFound, "KERNELBENCH_BINARY"):
                    Judge()

    def test_none(self):
        with mock.patch.dict(os.environ, {"PATH": "/nonexistent"}), \
                mock.patch.object(kernelbench_judge.binary, "__file__", str(self.folder / "a" / "b" / "binary.py")):
            del os.environ["KERNELBENCH_BINARY"]
            with self.assertRaisesRegex(NotFound, "make build"):
                evaluate("level1/19", RIGHT)

    def test_one_that_dies(self):
        program = self.write("kernelbench", "#!/bin/sh\nkill -9 $$\n")
        program.chmod(0o755)
        with mock.patch.dict(os.environ, {"PATH": f"{self.folder}:/usr/bin:/bin"}):
            del os.environ["KERNELBENCH_BINARY"]
            result = evaluate("level1/19", RIGHT)
        self.assertEqual(result["verdict"], "infrastructure_error")
        self.assertIn("signal 9", result["message"])


class Languages(unittest.TestCase):
    def test_native_hip_is_known_by_what_it_includes(self):
        hip = "#include <hip/hip_runtime.h>\n" + NATIVE
        for text, backend, suffix in [(hip, None, ".hip"), (hip, "hip", ".hip"), (hip, "cuda_cpp", ".cu"),
                                      (RIGHT, "hip", ".py"), (NATIVE, None, ".cpp"), (RIGHT, None, ".py")]:
            self.assertEqual(suffix_of(text, backend), suffix)


class Package(unittest.TestCase):
    def test_installs_with_pip_and_imports_no_torch(self):
        try:
            import setuptools
        except ImportError:
            self.skipTest("this Python has no setuptools")
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            source = folder / "python"
            source.mkdir()
            shutil.copy(ROOT / "python" / "pyproject.toml", source)
            shutil.copytree(ROOT / "python" / "kernelbench_judge", source / "kernelbench_judge",
                            ignore=shutil.ignore_patterns("__pycache__"))
            python = folder / "venv" / "bin" / "python"
            if subprocess.run([sys.executable, "-m", "venv", folder / "venv"]).returncode:
                self.skipTest("this Python cannot make a virtual environment")
            # What builds the package comes from here: nothing is fetched.
            packages = Path(setuptools.__file__).parents[1]
            for part in ("setuptools", "_distutils_hack", "pkg_resources", "wheel"):
                if (packages / part).is_dir():
                    (folder / "tools").mkdir(exist_ok=True)
                    os.symlink(packages / part, folder / "tools" / part)
            for info in [*packages.glob("setuptools-*.dist-info"), *packages.glob("wheel-*.dist-info")]:
                os.symlink(info, folder / "tools" / info.name)
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            done = subprocess.run(
                [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--no-deps", source],
                env={**environment, "PYTHONPATH": str(folder / "tools")}, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            code = ("import sys, kernelbench_judge as k, pathlib\n"
                    "assert pathlib.Path(k.__file__).with_name('py.typed').exists()\n"
                    "print(k.__file__, k.evaluate('level1/19', k.Source(''))['verdict'], 'torch' in sys.modules)")
            done = subprocess.run([python, "-c", code], env=environment, cwd=name, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            where, verdict, imported = done.stdout.split()
            self.assertTrue(where.startswith(name))
            self.assertEqual((verdict, imported), ("static_reject", "False"))


class Tutorial(Client):
    def test_its_python_runs(self):
        problems = self.folder / "KernelBench" / "KernelBench" / "level1"
        run = self.folder / "KernelBench" / "runs" / "my_run"
        problems.mkdir(parents=True)
        run.mkdir(parents=True)
        shutil.copy(next((ROOT / "problems" / "level1").glob("19_*.py")), problems / "19_ReLU.py")
        (run / "level_1_problem_19_sample_0_kernel.py").write_text(MODEL.format("return x.clamp(min=0)"))
        blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "tutorial.md").read_text(), re.M | re.S)
        self.assertGreaterEqual(len(blocks), 4)
        done = subprocess.run([sys.executable, "-c", "\n".join(blocks)], cwd=self.folder, capture_output=True,
                              text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^correct \d")
        self.assertRegex(lines[1], r"^True True \d.* correct$")
        self.assertEqual([line.split()[:2] for line in sorted(lines[2:5])],
                         [["0", "correct"], ["1", "wrong_value"], ["2", "static_reject"]], done.stdout)
        self.assertEqual(lines[5:8], ["correct", "wrong_value", "static_reject"])
        self.assertEqual(lines[8:], ["wrong_value"])


if __name__ == "__main__":
    unittest.main()

"""`kernelbench refine` and `bench`: a model server on this machine (llm_server.py), real judging on the CPU."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from model_server import ModelServer

HERE = pathlib.Path(__file__).resolve().parent
BINARY = os.environ.get("KERNELBENCH_BINARY", str(HERE.parent / "build/release/kernelbench"))
KEY = "test-key-0123456789"
QUICK = ["--size", "small", "--set", "batch_size=8", "--set", "dim=4096", "--trials", "2", "--no-stress"]


def answer(body):
    """A ReLU kernel with this loop body, as a model would hand it in."""
    return ("<think>Not this:\n```cpp\nextern \"C\" int kb_run(const kb_call*) { return 1; }\n```\n</think>\n"
            "Try this.\n\n```cpp\n#include <kernelbench/kernel.h>\n\nextern \"C\" int kb_run(const kb_call* call) {\n"
            "  const float* x = kb_input_f32(call, 0);\n  float* y = kb_output_f32(call, 0);\n"
            "  const int64_t n = kb_numel(&call->inputs[0]);\n"
            f"  for (int64_t i = 0; i < n; ++i) {body}\n  return 0;\n}}\n```\n")


NO_COMPILE = answer("y[i] = undeclared_thing(x[i]);")
WRONG = answer("y[i] = x[i];")
FAST = answer("y[i] = x[i] < 0 ? 0 : x[i];")
# Hundreds of times as slow, so that no noise makes it the faster one.
SLOW = answer("for (volatile int k = 0; k < 2000; k = k + 1) y[i] = x[i] < 0 ? 0 : x[i];")
NO_CODE = "I would rather not."


class LoopTest(unittest.TestCase):
    """A folder, and a server that answers by turns."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="kernelbench-test-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.run_folder = self.folder / "run"
        self.environment = {**os.environ, "KERNELBENCH_API_KEY": KEY}

    def serve(self, *answers):
        """A server that gives these answers by turn."""
        turns = self.folder / "turns"
        turns.mkdir()
        for number, text in enumerate(answers, 1):
            (turns / f"{number}.md").write_text(text, encoding="utf-8")
        self.server = ModelServer(self.folder, "--turns", str(turns))
        self.addCleanup(self.server.stop)

    def run_command(self, command):
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=self.environment,
                              timeout=900, check=False)
        self.assertNotIn(KEY, done.stdout + done.stderr)
        return done

    def kill_when(self, command, answers):
        """Kills the command as soon as it has so many answers on the disk; returns how many it had by then."""
        folder = self.run_folder / "answers"
        process = subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=subprocess.DEVNULL)
        while process.poll() is None and len(list(folder.glob("level*.json"))) < answers:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        return len(list(folder.glob("level*.json")))

    def interrupt(self, command):
        """Ctrl-C at the first request: whatever reached the server has its answer on the disk; returns the output."""
        process = subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not self.server.requests():
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("waiting for the answers under way", err)
        self.assertIn("run the same command again", out)
        self.assertEqual(len(list((self.run_folder / "answers").glob("level*.json"))), len(self.server.requests()))
        return out


class RefineTest(LoopTest):
    def command(self, *more, model="turns", what=("level1/19", "--out")):
        where = [what] if isinstance(what, str) else [*what, str(self.run_folder)]
        return [BINARY, "refine", *where, "--base-url", self.server.url, "--model", model, "--backend", "cpp",
                "--retries", "0", *QUICK, *more]

    def refine(self, *more, **options):
        return self.run_command(self.command(*more, **options))

    def file(self, suffix, sample=0):
        return (self.run_folder / f"level_1_problem_19_sample_{sample}{suffix}").read_text(encoding="utf-8")

    def verdict(self):
        """Of what stands in the run folder, as `score` sees it: it judges nothing itself."""
        done = subprocess.run([BINARY, "score", str(self.run_folder), "--csv", "-"], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads((self.run_folder / "eval_results.json").read_text())["19"]
        self.assertEqual(len(results), 1)
        return results[0]["compiled"], results[0]["correctness"]

    def test_improves_over_turns_and_stops_at_the_target(self):
        self.serve(NO_COMPILE, NO_CODE, WRONG, FAST, WRONG)
        done = self.refine("--turns", "6", "--no-timing")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the best of 4 is turn 4: correct", done.stdout)
        sent = [request["body"]["messages"] for request in self.server.requests()]
        self.assertEqual([len(messages) for messages in sent], [2, 4, 6, 8])
        self.assertIn("undeclared_thing", sent[1][2]["content"], "the model sees its own kernel")
        self.assertIn("error: 'undeclared_thing' was not declared",
                      sent[1][3]["content"].replace("‘", "'").replace("’", "'"))
        self.assertNotIn("<think>", json.dumps(sent), "and none of its reasoning")
        self.assertIn("element", sent[3][7]["content"], "the first wrong one")
        self.assertEqual(sent[3][:6], sent[2], "a conversation grows at its end")
        for turn, mark in {1: "undeclared_thing", 3: "y[i] = x[i];", 4: "< 0 ? 0"}.items():
            self.assertIn(mark, self.file(f"_turn_{turn}.cpp"))
        self.assertEqual(self.file("_turn_2.cpp"), "")
        self.assertEqual(self.file("_kernel.cpp"), self.file("_turn_4.cpp"))
        self.assertEqual(self.verdict(), (True, True))
        self.assertNotIn(str(self.folder), json.dumps(sent), "nor where it lies")
        # The same folder in other words.
        self.run_folder = self.folder / ".." / self.folder.name / "run"
        again = self.refine("--turns", "6", "--no-timing")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(len(self.server.requests()), 4)

    def test_many_conversations_at_a_time(self):
        self.serve(WRONG, FAST)
        done = self.refine("--no-timing", "--samples", "12", "--workers", "12")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("reached the target: the best of 2 is turn 2: correct"), 12)
        self.assertEqual(len(self.server.requests()), 24)
        results = json.loads((self.run_folder / "eval_results.json").read_text())["19"]
        self.assertEqual([sample["correctness"] for sample in results], [True] * 12)

    def test_keeps_the_best(self):
        self.serve(SLOW, FAST, SLOW, WRONG)
        done = self.refine("--turns", "4", "--target-speedup", "100000", "--pairs", "10")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("used up its turns: the best of 4 is turn 2", done.stdout)
        self.assertEqual(self.file("_kernel.cpp"), self.file("_turn_2.cpp"))
        self.assertEqual(self.verdict(), (True, True))
        messages = self.server.requests()[1]["body"]["messages"]
        self.assertIn("slower than PyTorch", messages[3]["content"])

    def test_goes_on_from_a_folder_of_samples(self):
        self.serve("never sent", FAST)
        self.run_folder.mkdir()
        mine = WRONG.split("```cpp\n")[2].split("```")[0]
        (self.run_folder / "level_1_problem_19_sample_0_kernel.cc").write_text(mine, encoding="utf-8")
        done = self.refine("--no-timing", what=())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.server.requests()), 1)
        self.assertEqual(self.file("_turn_1.cc"), mine)
        self.assertEqual(self.file("_kernel.cc"), self.file("_turn_2.cc"))
        self.assertIn("< 0 ? 0", self.file("_kernel.cc"))
        # The turns are no samples, and what stands has been judged.
        done = subprocess.run([BINARY, "run", str(self.run_folder), "--no-timing", *QUICK], capture_output=True,
                              text=True, timeout=300, check=False)
        self.assertIn("1 of 1 samples have been judged already", done.stdout)

    def test_a_killed_run_asks_for_no_answer_twice(self):
        self.serve(NO_COMPILE, WRONG, NO_COMPILE, FAST)
        had = self.kill_when(self.command("--no-timing", model="slow_turns"), 2)
        self.assertIn(had, (2, 3))
        before = len(self.server.requests())
        done = self.refine("--no-timing", model="slow_turns")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.server.requests()) - before, 4 - had)
        self.assertIn("the best of 4 is turn 4: correct", done.stdout)

    def test_an_interrupted_run_keeps_what_is_paid_for(self):
        self.serve(WRONG, FAST)
        words = ["--no-timing", "--samples", "4", "--workers", "2"]
        self.interrupt(self.command(*words, model="slow_turns"))
        before = len(self.server.requests())
        self.assertLess(before, 8)
        done = self.refine(*words, model="slow_turns")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.server.requests()), 8)
        self.assertEqual(done.stdout.count("the best of 2 is turn 2: correct"), 4)

    def test_a_fault_at_a_turn_leaves_the_best_and_is_asked_again(self):
        self.serve(WRONG, NO_COMPILE, FAST)
        model = "seq.turns.500.html.turns"
        for status in ("server_error", "not_an_answer"):
            done = self.refine("--no-timing", model=model)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(status, done.stdout)
            self.assertIn("is not finished: the best of 1 is turn 1: wrong_value", done.stdout)
            self.assertEqual(self.file("_kernel.cpp"), self.file("_turn_1.cpp"))
            self.assertEqual(self.verdict(), (True, False))
        done = self.refine("--no-timing", model=model)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the best of 3 is turn 3: correct", done.stdout)
        self.assertEqual(len(self.server.requests()), 5)

    def test_other_settings_are_refused_in_one_sentence(self):
        self.serve(FAST)
        self.assertEqual(self.refine("--no-timing").returncode, 0)
        done = self.refine("--no-timing", "--precision", "fp16")
        self.assertEqual(done.returncode, 2)
        self.assertIn("precision is \"fp32\" there and \"fp16\" now", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertEqual(self.refine("--no-timing", "--turns", "2", "--samples", "2").returncode, 0)
        self.assertEqual(len(self.server.requests()), 2)

    def test_bad_words_are_one_sentence(self):
        self.serve(FAST)
        self.run_folder.mkdir()
        (self.run_folder / "level_1_problem_19_sample_0_kernel.py").write_text("pass\n", encoding="utf-8")
        cases = {("level1/9999", "--out"): "9999",
                 ("nothing", "--out"): "no problem's id",
                 ("one",): "give one folder of samples",
                 "level1/19": "as --out DIR",
                 (): "is no cpp kernel"}
        for what, sentence in cases.items():
            done = self.refine("--no-timing", what=what)
            with self.subTest(what=what):
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(sentence, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)
        self.assertEqual(self.server.requests(), [])


class BenchTest(LoopTest):
    def recorded(self, *more, answers=HERE.parent / "examples/answers"):
        return self.run_command([BINARY, "bench", str(self.run_folder), "--provider", f"replay:{answers}", "--level",
                                 "1", "--size", "small", *more])

    def asking(self, *more):
        return [BINARY, "bench", str(self.run_folder), "--base-url", self.server.url, "--model", "slow_turns",
                "--backend", "cpp", "--level", "1", "--ids", "19", "--samples", "4", "--workers", "1", "--no-timing",
                *QUICK, *more]

    def test_the_recorded_answers_come_to_a_score(self):
        report = self.folder / "report.html"
        words = ["--backend", "cpp", "--ids", "19,26,36,47", "--samples", "2", "--pairs", "5", "--html", str(report)]
        self.environment = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
        done = self.recorded(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads((self.run_folder / "eval_results.json").read_text())
        outcome = {(int(problem), sample["sample_id"]): (sample["compiled"], sample["correctness"])
                   for problem, samples in results.items() for sample in samples}
        good, wrong, broken = (True, True), (True, False), (False, False)
        self.assertEqual(outcome, {(19, 0): good, (19, 1): broken, (26, 0): good, (26, 1): wrong,
                                   (36, 0): good, (36, 1): wrong, (47, 0): good, (47, 1): broken})
        self.assertIn("7 answered, 1 truncated", done.stdout)
        self.assertIn("pass@2 1.000", done.stdout)
        self.assertIn("level1/26", report.read_text(encoding="utf-8"))
        again = self.recorded(*words)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("8 of 8 questions have been answered already", again.stdout)
        self.assertIn("8 of 8 samples have been judged already", again.stdout)

    def test_the_problems_of_another_set_are_those_that_judge(self):
        mine = self.folder / "mine/level1"
        mine.mkdir(parents=True)
        (mine / "26_Minus.py").write_text(
            "import torch\n\nn = 8\nSIZES = {\"small\": {\"n\": 4}}\n\n\n"
            "class Model(torch.nn.Module):\n    def forward(self, x):\n        return -x\n\n\n"
            "def get_inputs():\n    return [torch.rand(n, n)]\n\n\ndef get_init_inputs():\n    return []\n",
            encoding="utf-8")
        done = self.recorded("--backend", "cpp", "--ids", "26", "--problems", str(mine.parent),
                             "--no-timing")
        self.assertEqual(done.returncode, 0, done.stderr)
        # What is right for the bundled level1/26 is wrong here.
        self.assertIn("wrong_value", done.stdout)

    def test_the_words_of_a_prompt_are_those_of_its_judgement(self):
        answers = self.folder / "answers"
        answers.mkdir()
        (answers / "level_1_problem_19_sample_0.md").write_text(
            "```python\nimport torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
            "        return torch.relu(x)\n```\n", encoding="utf-8")
        words = ["--backend", "triton", "--ids", "19", "--device", "cpu", "--no-timing"]
        done = self.recorded(*words, "--precision", "fp16", answers=answers)
        self.assertEqual(done.returncode, 0, done.stderr)
        prompt = json.loads((self.run_folder / "generate.json").read_text())["prompt"]
        self.assertEqual([prompt["backend"], prompt["precision"], prompt["size"]], ["triton", "fp16", "small"])
        self.assertRegex(done.stdout, r"level1/19 sample 0 +triton +correct")
        done = self.recorded(*words, "--precision", "bf16", answers=answers)
        self.assertEqual(done.returncode, 2)
        self.assertIn("bf16", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_a_report_that_cannot_be_written_is_not_paid_for(self):
        self.serve(FAST)
        done = self.run_command(self.asking("--html", str(self.folder / "nowhere/report.html")))
        self.assertEqual(done.returncode, 2)
        self.assertIn("nowhere/report.html cannot be written: No such file or directory", done.stderr)
        self.assertEqual(self.server.requests(), [])

    def test_kernels_for_a_gpu_are_not_paid_for_without_one(self):
        self.serve("```python\n```\n")
        self.environment = {**self.environment, "CUDA_VISIBLE_DEVICES": ""}
        words = self.asking()
        for backend in ("cuda", "triton", "hip", "cute"):
            words[words.index("--backend") + 1] = backend
            done = self.run_command(words)
            with self.subTest(backend=backend):
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("GPU", done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)
        self.assertEqual(self.server.requests(), [])

    def test_a_question_without_an_answer_does_not_keep_the_others_from_a_score(self):
        done = self.recorded("--backend", "cpp", "--ids", "20,47", "--no-timing")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("1 answered, 1 not_recorded", done.stdout)
        self.assertIn("pass@1 1.000", done.stdout)
        self.run_folder = self.folder / "nothing"
        done = self.recorded("--backend", "cpp", "--ids", "20")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertNotIn("pass@1", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_a_killed_bench_goes_on_where_it_was(self):
        self.serve(FAST)
        had = self.kill_when(self.asking(), 2)
        before = len(self.server.requests())
        done = self.run_command(self.asking())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.server.requests()) - before, 4 - had)
        self.assertIn(f"{had} of 4 questions have been answered already", done.stdout)
        self.assertIn("pass@4 1.000", done.stdout)

    def test_an_interrupted_bench_judges_nothing(self):
        self.serve(FAST)
        self.interrupt(self.asking())
        self.assertFalse((self.run_folder / "kernelbench.db").exists())


if __name__ == "__main__":
    unittest.main()

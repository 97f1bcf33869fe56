"""`kernelbench generate` against a model server on this machine (llm_server.py)."""
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

NATIVE = """Use the restrict pointers.

```cpp
#include <kernelbench/kernel.h>

extern "C" int kb_run(const kb_call* call) {
  const float* x = kb_input_f32(call, 0);
  float* y = kb_output_f32(call, 0);
  const int64_t n = kb_numel(&call->inputs[0]);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  return 0;
}
```
"""


class GenerateTest(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="kernelbench-test-")
        self.addCleanup(self.scratch.cleanup)
        self.folder = pathlib.Path(self.scratch.name)
        answer = self.folder / "answer.md"
        answer.write_text(NATIVE, encoding="utf-8")
        self.server = ModelServer(self.folder, "--answer", str(answer))
        self.addCleanup(self.server.stop)
        self.run_folder = self.folder / "run"
        self.environment = {**os.environ, "KERNELBENCH_API_KEY": KEY}

    def command(self, model, *more):
        retries = [] if "--retries" in more else ["--retries", "1"]
        return [BINARY, "generate", str(self.run_folder), "--base-url", self.server.url, "--model", model,
                "--backend", "cpp", "--level", "1", "--ids", "19", *retries, *more]

    def generate(self, model, *more, **options):
        options.setdefault("env", self.environment)
        done = subprocess.run(self.command(model, *more), capture_output=True, text=True, cwd=self.folder,
                              timeout=120, check=False, **options)
        # The key is in no output and in no file, whatever happened.
        self.assertNotIn(KEY, done.stdout + done.stderr)
        if self.run_folder.exists():
            for path in self.run_folder.rglob("*"):
                if path.is_file():
                    self.assertNotIn(KEY.encode(), path.read_bytes(), path)
        return done

    def answer(self, sample=0, problem=19):
        path = self.run_folder / f"answers/level_1_problem_{problem}_sample_{sample}.json"
        return json.loads(path.read_text(encoding="utf-8"))

    def kernel(self, sample=0, problem=19):
        return self.run_folder / f"level_1_problem_{problem}_sample_{sample}_kernel.cpp"

    def test_a_run_folder_holds_everything(self):
        done = self.generate("good", "--samples", "2", "--temperature", "0.7")
        self.assertEqual(done.returncode, 0, done.stderr)
        configuration = json.loads((self.run_folder / "generate.json").read_text())
        self.assertEqual(configuration["settings"], {"model": "good", "temperature": 0.7})
        prompt = json.loads((self.run_folder / "prompts/level_1_problem_19.json").read_text())
        self.assertIn("torch.relu(x)", prompt["messages"][0]["text"])
        answer = self.answer(1)
        self.assertEqual(answer["status"], "answered")
        self.assertEqual(answer["text"], NATIVE)
        self.assertEqual(answer["prompt_sha256"], prompt["sha256"])
        self.assertEqual(answer["usage"]["input_tokens"], 1000)
        self.assertIsNone(answer["cost_usd"], "an unknown price is not zero")
        self.assertEqual(answer["code"]["how"], "fenced")
        self.assertTrue(self.kernel(0).read_text().startswith("#include <kernelbench/kernel.h>"))
        sent = self.server.requests()
        self.assertEqual(len(sent), 2)
        self.assertEqual(sent[0]["body"]["messages"][-1]["content"], prompt["messages"][0]["text"])

    def test_the_kernels_can_be_judged(self):
        self.assertEqual(self.generate("good").returncode, 0)
        done = subprocess.run([BINARY, "run", str(self.run_folder), "--size", "small", "--no-timing"],
                              capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("correct", done.stdout)

    def test_a_second_run_asks_nothing_and_a_larger_one_only_the_rest(self):
        self.generate("good", "--samples", "2")
        again = self.generate("good", "--samples", "2")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("2 of 2 questions have been answered already", again.stdout)
        self.assertEqual(len(self.server.requests()), 2)
        self.generate("good", "--samples", "3")
        self.assertEqual(len(self.server.requests()), 3)

    def test_a_lost_kernel_comes_back_from_its_answer(self):
        self.generate("good")
        before = self.kernel().read_text()
        self.kernel().unlink()
        self.assertEqual(self.generate("good").returncode, 0)
        self.assertEqual(self.kernel().read_text(), before)
        self.assertEqual(len(self.server.requests()), 1)

    def test_a_killed_run_asks_for_no_answer_twice(self):
        process = subprocess.Popen(self.command("slow", "--samples", "12", "--workers", "2"),
                                   env=self.environment, cwd=self.folder, stdout=subprocess.DEVNULL)
        answers = self.run_folder / "answers"
        while process.poll() is None and len(list(answers.glob("level*.json"))) < 3:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        had = {path.name for path in answers.glob("level*.json")}
        self.assertGreaterEqual(len(had), 3)
        self.assertLess(len(had), 12)
        for path in answers.glob("level*.json"):
            self.assertEqual(json.loads(path.read_text())["status"], "answered")
        before = len(self.server.requests())
        done = self.generate("slow", "--samples", "12")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.server.requests()) - before, 12 - len(had))
        self.assertEqual(len(list(self.run_folder.glob("*_kernel.cpp"))), 12)

    def test_an_interrupted_run_keeps_what_is_under_way(self):
        process = subprocess.Popen(self.command("slow", "--samples", "12", "--workers", "2"), env=self.environment,
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and len(self.server.requests()) < 4:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        self.assertIn("waiting for the answers under way", err)
        self.assertIn("not_asked", out)
        # Every request that reached the server has its answer on the disk.
        self.assertEqual(len(list((self.run_folder / "answers").glob("level*.json"))), len(self.server.requests()))

    def test_other_settings_are_refused_in_one_sentence(self):
        self.generate("good", "--temperature", "0.7")
        done = self.generate("good", "--temperature", "1.0")
        self.assertEqual(done.returncode, 2)
        self.assertIn("temperature is 0.7 there and 1.0 now", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertEqual(self.generate("good", "--temperature", "0.7", "--workers", "3").returncode, 0)
        self.assertEqual(len(self.server.requests()), 1)

    def test_a_changed_prompt_is_refused(self):
        self.generate("good")
        path = self.run_folder / "answers/level_1_problem_19_sample_0.json"
        record = json.loads(path.read_text())
        record["prompt_sha256"] = "0" * 64
        path.write_text(json.dumps(record))
        done = self.generate("good")
        self.assertEqual(done.returncode, 2)
        self.assertIn("answers to other prompts", done.stderr)

    def test_two_at_a_time_are_refused(self):
        first = subprocess.Popen(self.command("slow", "--samples", "6", "--workers", "1"), env=self.environment,
                                 cwd=self.folder, stdout=subprocess.DEVNULL)
        while first.poll() is None and not self.server.requests():
            time.sleep(0.05)
        second = self.generate("slow", "--samples", "6")
        self.assertEqual(second.returncode, 2)
        self.assertIn("another kernelbench", second.stderr)
        self.assertEqual(first.wait(timeout=60), 0)

    def test_a_bad_sample_does_not_stop_the_others(self):
        """One fault after the other, each with its own status; the last question is answered."""
        faults = {"html": "not_an_answer", "half_json": "not_an_answer", "400": "bad_request",
                  "refused": "refused", "empty": "empty", "endless": "too_large", "truncated": "truncated",
                  "invalid_utf8": "answered", "good": "answered"}
        done = self.generate("seq." + ".".join(faults), "--samples", str(len(faults)), "--workers", "1",
                             "--max-answer-bytes", "65536", "--retries", "0")
        self.assertEqual(done.returncode, 1, done.stderr)
        statuses = [self.answer(sample)["status"] for sample in range(len(faults))]
        self.assertEqual(statuses, list(faults.values()))
        # Whatever was answered without code is a sample that failed, not one that is missing.
        self.assertEqual(self.kernel(3).read_bytes(), b"")
        self.assertEqual(self.kernel(4).read_bytes(), b"")
        self.assertFalse(self.kernel(0).exists())
        self.assertIn("kb_run", self.kernel(8).read_text())

    def test_the_same_wall_is_not_run_into_forever(self):
        self.environment["KERNELBENCH_API_KEY"] = "wrong"
        done = self.generate("good", "--samples", "20", "--workers", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the first 3 questions ended as wrong_key", done.stderr)
        self.assertIn("17 not_asked, 3 wrong_key", done.stdout)
        self.assertEqual(len(self.server.requests()), 3)
        self.environment["KERNELBENCH_API_KEY"] = KEY
        self.assertEqual(self.generate("good", "--samples", "20").returncode, 0)

    def test_no_network(self):
        self.server.url = "http://127.0.0.1:9/v1"
        done = self.generate("good", "--retries", "0")
        self.assertEqual(done.returncode, 1)
        self.assertIn("unreachable", done.stdout)

    def test_the_key_from_dotenv(self):
        del self.environment["KERNELBENCH_API_KEY"]
        (self.folder / ".env").write_text(f"# mine\nexport KERNELBENCH_API_KEY='{KEY}'\n", encoding="utf-8")
        self.assertEqual(self.generate("good").returncode, 0)
        (self.folder / ".env").write_text("what is this\n", encoding="utf-8")
        done = self.generate("good")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "kernelbench: .env: line 1 is not of the form KEY=VALUE\n")

    def test_prices(self):
        prices = self.folder / "prices.toml"
        prices.write_text('[custom]\n"good" = { input = 10, cached_input = 1.0, output = 100 }\n', encoding="utf-8")
        done = self.generate("good", "--prices", str(prices))
        self.assertEqual(done.returncode, 0, done.stderr)
        # 600 fresh and 400 cached tokens in, 200 out.
        self.assertAlmostEqual(self.answer()["cost_usd"], (600 * 10 + 400 * 1 + 200 * 100) / 1e6)
        prices.write_text("[custom\n", encoding="utf-8")
        done = self.generate("good", "--prices", str(prices))
        self.assertEqual(done.returncode, 2)
        self.assertIn("is not valid TOML", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_problems_of_another_set(self):
        mine = self.folder / "mine"
        (mine / "level1").mkdir(parents=True)
        (mine / "level1" / "19_Twice.py").write_text(
            "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
            "        return twice_as_much * x\n\n\ntwice_as_much = 2\n\n\ndef get_inputs():\n"
            "    return [torch.rand(8, 8)]\n\n\ndef get_init_inputs():\n    return []\n", encoding="utf-8")
        done = self.generate("good", "--problems", str(mine))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"kernelbench run {self.run_folder} --problems {mine}\n", done.stdout)
        self.assertIn("twice_as_much", (self.run_folder / "prompts/level_1_problem_19.json").read_text())
        # The ids of two sets do not meet in one folder.
        done = self.generate("good")
        self.assertEqual(done.returncode, 2)
        self.assertIn(f'problems is "{mine}" there and not set now', done.stderr)
        self.assertEqual(len(self.server.requests()), 1)
        self.assertEqual(self.generate("good", "--problems", "nowhere").returncode, 2)
        # What judges the folder without a word takes its problems, not the bundled ones: ReLU is not twice x.
        run = subprocess.run([BINARY, "run", str(self.run_folder), "--device", "cpu", "--pairs", "1", "--no-stress"],
                             capture_output=True, text=True, timeout=300, check=False)
        self.assertIn("wrong_value", run.stdout, run.stderr)

    def test_a_subset(self):
        command = [BINARY, "generate", str(self.run_folder), "--base-url", self.server.url, "--model", "good",
                   "--backend", "cpp", "--dry-run", "--level", "1", "--subset"]
        done = subprocess.run([*command, "representative"], capture_output=True, text=True, timeout=60, check=False,
                              env=self.environment, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("17 questions to", done.stdout)
        done = subprocess.run([*command, "nonsense"], capture_output=True, text=True, timeout=60, check=False,
                              env=self.environment, cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("has no subset 'nonsense'", done.stderr)
        self.assertEqual(self.server.requests(), [])

    def test_replay(self):
        self.generate("good", "--samples", "2")
        first = self.run_folder
        self.run_folder = self.folder / "replayed"
        done = subprocess.run(
            [BINARY, "generate", str(self.run_folder), "--provider", f"replay:{first}", "--backend", "cpp",
             "--level", "1", "--ids", "19,23", "--samples", "2"],
            capture_output=True, text=True, timeout=60, check=False, env={"PATH": os.environ["PATH"]})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("2 answered, 2 not_recorded", done.stdout)
        self.assertIn("nothing was spent", done.stdout)
        self.assertEqual(self.answer(1)["text"], NATIVE)
        self.assertIn("kb_run", self.kernel(1).read_text())
        self.assertEqual(len(self.server.requests()), 2)

    def test_bad_words_are_one_sentence(self):
        cases = {("--provider", "nobody"): "there is no provider nobody",
                 ("--provider", "openai", "--base-url", "https://x.invalid"): "no key",
                 ("--extra", "[]"): "--extra is a JSON object",
                 ("--api", "soap"): "--api is one of",
                 ("--base-url", "ftp://x"): "--base-url begins with",
                 ("--base-url", "http://192.0.2.1/v1"): "unencrypted",
                 ("--thinking-budget", "2000"): "no thinking budget",
                 ("--backend", "fortran"): "there is no backend",
                 ("--ids", "999"): "no problem is selected",
                 ("--provider", "replay:/nowhere"): "there is no folder",
                 ("--prices", "/nowhere"): "does not exist"}
        for words, sentence in cases.items():
            command = self.command("good")
            for option, value in zip(words[::2], words[1::2]):
                if option in command:
                    command[command.index(option) + 1] = value
                else:
                    command += [option, value]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=self.folder,
                                  env={k: v for k, v in self.environment.items() if k != "OPENAI_API_KEY"})
            with self.subTest(words=words):
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(sentence, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)
        self.assertEqual(self.server.requests(), [])

    def test_a_folder_that_cannot_be_written(self):
        self.run_folder = pathlib.Path("/proc/nowhere")
        done = subprocess.run(self.command("good"), capture_output=True, text=True, timeout=60, check=False,
                              env=self.environment, cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot be made", done.stderr)
        self.assertEqual(self.server.requests(), [])


if __name__ == "__main__":
    unittest.main()

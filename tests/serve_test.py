"""kernelbench serve, line by line, on the CPU."""
import json
import os
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

BINARY = os.environ["KERNELBENCH_BINARY"]
ROOT = Path(os.environ["KERNELBENCH_SOURCE_DIR"])
BRIEF = ["--size", "small", "--device", "cpu", "--no-timing", "--no-stress", "--trials", "1"]
RELU = str(ROOT / "examples/run_cpu/level_1_problem_19_sample_0_kernel.cpp")
SOFTMAX = str(ROOT / "examples/run_cpu/level_1_problem_23_sample_0_kernel.cpp")
NOTHING = "#include <kernelbench/kernel.h>\nKB_EXPORT int kb_run(const kb_call*) { return 0; }\n"


def asking(number, problem="level1/19", candidate=RELU, **more):
    return json.dumps({"id": number, "problem": problem, "candidate": candidate, **more})


def serve(lines, *options, temporary=None):
    """Returns the exit code, the greeting, the answers in their order, and stderr."""
    done = subprocess.run([BINARY, "serve", *(options or BRIEF)], input="\n".join(lines), capture_output=True,
                          text=True, timeout=600, check=False,
                          env=os.environ if temporary is None else {**os.environ, "TMPDIR": temporary})
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, answers[:1], answers[1:], done.stderr


class ServeTest(unittest.TestCase):
    def test_answers_each_line_and_ends_with_its_input(self):
        given = [7, "a", None, -1.5, 7]
        code, greeting, answers, err = serve([asking(one) for one in given])
        self.assertEqual((code, err), (0, ""))
        self.assertEqual((greeting[0]["ready"], greeting[0]["devices"]), (True, ["cpu"]))
        self.assertEqual(sorted(json.dumps(answer["id"]) for answer in answers),
                         sorted(json.dumps(one) for one in given))
        for answer in answers:
            self.assertEqual((answer["verdict"], answer["problem"], answer["backend"]),
                             ("correct", "level1/19", "cpp"), answer["message"])

    def test_a_bad_line_is_one_sentence_and_loses_no_other(self):
        python = str(ROOT / "tests/data/extensions/relu_types.py")
        bad = {"no": "one JSON object", "[1]": "one JSON object", '"level1/19"': "one JSON object",
               '{"id": 1, "problem": "level1/19"}': "its candidate", '{"id": 1, "candidate": "x"}': "its problem",
               asking(1, size="small"): "'size'", asking(1, problem=19): "is a string",
               asking(1, problem="level9/1"): "no level 9", asking(1, problem="none:level1/19"): "none",
               asking(1, candidate="/nonexistent.py"): "/nonexistent.py", asking(1, candidate="/"): "folder",
               asking(1, candidate="/dev/zero"): "regular file", asking(1, candidate=RELU + "\0.py"): "NUL",
               asking({"any": ["thing"]}): "a string or a number",
               '{"id": ' + "[" * 200_000 + "]" * 200_000 + "}": "a string or a number",
               asking(1, candidate=python, backend="cobol"): "cobol",
               asking(1, candidate=str(ROOT / "examples/run_gpu/level_1_problem_19_sample_0_kernel.cu")): "GPU"}
        code, _, answers, err = serve([asking(2), "", "  ", *bad, asking(3)])
        self.assertEqual((code, err, len(answers)), (0, "", len(bad) + 2))
        judged = [answer for answer in answers if "verdict" in answer]
        self.assertEqual({answer["id"]: answer["verdict"] for answer in judged}, {2: "correct", 3: "correct"})
        refusals = [answer["error"] for answer in answers if set(answer) == {"error", "id"}]
        self.assertEqual(len(refusals), len(bad), answers)
        for line, says in bad.items():
            with self.subTest(line):
                self.assertTrue(any(says in refusal for refusal in refusals), refusals)

    def test_what_is_no_candidate_has_a_verdict(self):
        _, _, answers, _ = serve([asking(1, candidate=str(ROOT / "LICENSE")),
                                  asking(2, candidate=str(ROOT / "python/kernelbench_worker/__init__.py"))])
        self.assertEqual([answer["verdict"] for answer in answers], ["static_reject"] * 2)

    def test_texts_in_the_place_of_files(self):
        relu = Path(RELU).read_text(encoding="utf-8")
        problem = ("import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
                   "        return torch.relu(x)\n\n\ndef get_inputs():\n    return [torch.randn(8, 64)]\n\n\n"
                   "def get_init_inputs():\n    return []\n\n\nSIZES = {\"small\": {}}\n")
        own = {"problem": "my relu.py", "problem_source": problem}
        lines = [asking(1, candidate="kernel.cpp", source=relu),
                 asking(2, candidate="kernel.cpp", source=relu, **own),
                 asking(3, candidate="kernel.cpp", source=NOTHING, **own),
                 asking(4, candidate="kernel.cpp", source=relu.replace("return 0", "return nonsense"), **own),
                 asking(5, candidate="kernel.py", source="Sorry."), asking(6, candidate="kernel.py", source="\0"),
                 asking(7, candidate="kernel.txt", source=relu), asking(8, candidate="../kernel.cpp", source=relu),
                 asking(9, candidate="/tmp/kernel.cpp", source=relu), asking(10, candidate="..", source=relu),
                 asking(11, candidate="kernel.cpp", source=relu, problem="level1/19", problem_source=problem),
                 asking(12, candidate="kernel.cpp", source=relu, problem="p.py", problem_source="Sorry."),
                 asking(13, candidate="kernel.cpp", source=19)]
        with tempfile.TemporaryDirectory() as folder:
            done = serve(lines, temporary=folder)
            self.assertEqual(list(Path(folder).iterdir()), [])
            self.assertNotIn(folder, json.dumps(done))
        self.assertEqual(done[0], 0)
        answers = {answer["id"]: answer for answer in done[2]}
        self.assertEqual([answers[number].get("verdict") for number in range(1, 14)],
                         ["correct", "correct", "wrong_value", "compile_error", "static_reject", "static_reject",
                          "static_reject", None, None, None, None, None, None])
        self.assertEqual((answers[2]["problem"], answers[2]["candidate"]), ("my relu.py", "kernel.cpp"))
        self.assertLessEqual(sum(answer.get("phases_ms", {}).get("reference_import", 0) > 0 for answer in
                                 answers.values()), 3)
        for number, says in ((8, "plain file name"), (9, "plain file name"), (10, "plain file name"),
                             (11, "plain file name"), (12, "p.py"), (13, "is a string")):
            self.assertIn(says, answers[number]["error"])

    def test_one_problem_after_the_other_but_none_waits_for_ever(self):
        lines = [asking(0), asking("other", "level1/23", SOFTMAX), *(asking(number) for number in range(1, 60))]
        _, _, answers, _ = serve(lines)
        self.assertEqual({answer["verdict"] for answer in answers}, {"correct"})
        place = [answer["id"] for answer in answers].index("other")
        self.assertLess(place, 45)
        loaded = sum(answer["phases_ms"]["reference_import"] > 0 for answer in answers)
        self.assertLessEqual(loaded, 3)

    def test_words_that_mean_nothing(self):
        for options, says in ((["--device", "tpu"], "tpu"), (["--device", "cpu,cuda:0"], "both"),
                              (["--size", "small", "--timer", "event", "--device", "cpu"], "events of a GPU")):
            with self.subTest(says):
                code, greeting, _, err = serve([], *options)
                self.assertEqual((code, greeting), (2, []))
                self.assertIn(says, err)

    def test_ends_when_nobody_reads(self):
        with subprocess.Popen([BINARY, "serve", *BRIEF], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as process:
            process.stdout.readline()
            process.stdin.write("".join(asking(number) + "\n" for number in range(300)))
            process.stdin.flush()
            process.stdout.close()
            self.assertEqual(process.wait(timeout=60), 1)

    def test_ends_in_mid_evaluation_when_nobody_reads(self):
        with subprocess.Popen([BINARY, "serve", *BRIEF], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as process, tempfile.NamedTemporaryFile("w", suffix=".cpp") as endless:
            endless.write(NOTHING.replace("return 0;", "for (;;) {}"))
            endless.flush()
            process.stdout.readline()
            process.stdin.write(asking(1, candidate=endless.name) + "\n")
            process.stdin.flush()
            time.sleep(2)
            process.stdout.close()
            self.assertEqual(process.wait(timeout=60), 1)


if __name__ == "__main__":
    unittest.main()

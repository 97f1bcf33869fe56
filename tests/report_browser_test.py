"""The HTML report of `score --html`, in a headless Chromium: what a reader does, what a stranger's text must not."""
import hashlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time
import unittest

try:
    from playwright.sync_api import Error, sync_playwright
except ImportError:
    sync_playwright = None

BINARY = os.environ["KERNELBENCH_BINARY"]

# As src/store/store.cpp makes it: a change there must change this test, and the reports of older runs.
SCHEMA = """
PRAGMA application_id = 1801610606;
PRAGMA user_version = 1;
CREATE TABLE evaluations (id INTEGER PRIMARY KEY, problem TEXT NOT NULL, sample INTEGER NOT NULL,
    problem_hash TEXT NOT NULL, candidate_hash TEXT NOT NULL, device TEXT NOT NULL, settings TEXT NOT NULL,
    verdict TEXT NOT NULL, result_json TEXT NOT NULL, finished_at TEXT NOT NULL,
    UNIQUE (problem, sample, problem_hash, candidate_hash, device, settings));
"""

# Each would set window.hacked, or break the page, if it were ever taken for markup or code.
ATTACKS = [
    "</script><img src=x onerror=\"window.hacked=1\">",
    "<script>window.hacked=2</script>",
    "<!-- <script> ", "--><svg onload=window.hacked=3>", "]]>", "${window.hacked=4}", "`+(window.hacked=5)+`",
    "\"><iframe srcdoc='<script>parent.hacked=6</script>'>", "javascript:window.hacked=7", "&lt;b&gt;&amp;",
    "'\"\\\u2028\u2029",
    "{{code}}", "{{run}}", "</span><b>bold</b>", "</textarea></style></title><h1>x</h1>", "__proto__", "constructor",
]
ATTACK = " ".join(ATTACKS)


def result(problem, sample=0, verdict="correct", speedup=None, flags=(), backend="cpp", source=None, **more):
    """An object as `eval --json` prints it."""
    correct = verdict == "correct"
    made = {
        "problem": problem, "sample": sample, "backend": backend, "verdict": verdict, "correct": correct,
        "compiled": verdict != "compile_error", "public": {"compiled": True, "correct": correct}, "flags": list(flags),
        "device": "cuda:0", "device_info": {"name": "NVIDIA H200"}, "precision": "fp32", "size": "public",
        "timer": "sealed",
        "message": "", "candidate": "", "candidate_hash": hashlib.sha256((source or "").encode()).hexdigest(),
    }
    if speedup:
        reference, own = 1000.0, 1000.0 / speedup
        made |= {
            "speedup": speedup, "speedup_ci95": [speedup * 0.98, speedup * 1.03], "time_us": own,
            "reference_time_us": reference, "solo_time_us": 990.0, "speed_of_light_us": 100.0, "pairs": 40,
            "calls_per_turn": 2,
            "turns": [[2, 2 * reference * (1 + 0.01 * (i % 5)) + 10, 2 * own * (1 + 0.02 * (i % 3)) + 8]
                      for i in range(40)],
            "overhead_us": {"reference": 10.0, "candidate": 8.0}, "max_abs_error": 1e-6, "max_rel_error": 1e-4,
            "norm_error_vs_truth": 2e-7, "reference_norm_error_vs_truth": 2.5e-7,
            "tolerance": {"atol": 1e-4, "rtol": 1e-4, "norm_rtol": 1e-4, "widened": 1.0},
            "trials": [{"kind": "random", "seed": 7014686208535364899, "counted": True, "passed": True,
                        "max_abs_error": 1e-6},
                       {"kind": "planted", "seed": 2, "counted": False, "passed": False, "max_abs_error": 0.0}],
            "phases_ms": {"evaluation": 2000.0, "compile": 700.0, "timing": 900.6},
            "telemetry": [{"sm_mhz": 1980, "power_w": 300.5, "temperature_c": 50, "throttle_reasons": []}],
            "work": {"bytes": 3e8, "operations": 6e10, "copy_bytes_per_s": 4e12},
        }
    return made | more


class Run:
    """A run's folder, as `kernelbench run` leaves it, and its report."""

    def __init__(self, results, files=None):
        self.folder = tempfile.mkdtemp(prefix="kernelbench-report-")
        self.page = os.path.join(self.folder, "report.html")
        database = sqlite3.connect(os.path.join(self.folder, "kernelbench.db"))
        database.executescript(SCHEMA)
        database.executemany(
            "INSERT INTO evaluations VALUES (NULL, ?, ?, '', ?, 'cuda', '{}', ?, ?, '2026-01-02T03:04:05Z')",
            [(one["problem"], one["sample"], one["candidate_hash"], one["verdict"], json.dumps(one))
             for one in results])
        database.commit()
        database.close()
        for name, text in (files or {}).items():
            with open(os.path.join(self.folder, name), "w", encoding="utf-8", newline="") as file:
                file.write(text)
        done = subprocess.run([BINARY, "score", self.folder, "--html", self.page], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert f"HTML report: {self.page}" in done.stdout.splitlines()[-1], done.stdout

    def remove(self):
        shutil.rmtree(self.folder)


def chromium():
    """Command of a Chromium that is installed; None: Playwright's own, if it has one."""
    if os.environ.get("KERNELBENCH_CHROMIUM"):
        return os.environ["KERNELBENCH_CHROMIUM"]
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        # Ubuntu's is a snap, which sees neither /tmp nor the pipe that drives it.
        if (path := shutil.which(name)) and "/snap/" not in os.path.realpath(path):
            return path
    return None


SOURCE = """#include <kernelbench/kernel.h>
// adds one: a < b && c > d
extern "C" int kb_run(const kb_call* call) {
  return 0;
}
"""
EARLIER = SOURCE.replace("return 0;", "return 1;").replace("adds one", "adds two")


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if sync_playwright is None:
            raise unittest.SkipTest("playwright is not installed: pip install -r tests/requirements.txt")
        cls.playwright = sync_playwright().start()
        cls.addClassCleanup(cls.playwright.stop)
        try:
            # Chromium's own sandbox does not work for root.
            cls.browser = cls.playwright.chromium.launch(
                executable_path=chromium(), args=["--no-sandbox"] if os.geteuid() == 0 else [])
        except Error as error:
            reason = str(error).splitlines()[0]
            raise unittest.SkipTest(f"no Chromium: install the package chromium ({reason})") from None
        cls.addClassCleanup(cls.browser.close)
        cls.run_folder = Run(
            [result("level1/2", speedup=2.0, source=SOURCE, candidate="level_1_problem_2_sample_0_kernel.cpp"),
             result("level1/2", 1, speedup=0.5, flags=["noisy"], backend="python"),
             result("level1/19", speedup=8.0, flags=["reduced_precision", "noisy"]),
             result("level1/100", verdict="wrong_value", backend="cuda_cpp", message="output 0 differs at [3, 4]"),
             result("level2/7", verdict="compile_error",
                    message="kernel.cpp:3:1: error: expected ';'\nkernel.cpp:9: note"),
             result("level2/9", speedup=1.2, source="old text")],
            {"level_1_problem_2_sample_0_kernel.cpp": SOURCE, "level_1_problem_2_sample_0_turn_1.cpp": EARLIER,
             "level_2_problem_9_sample_0_kernel.cpp": "new text\n"})
        cls.addClassCleanup(cls.run_folder.remove)

    def open(self, run=None, hash_="", **context):
        """A page of its own; whatever it complains of or asks for is collected, and there must be nothing."""
        context = self.browser.new_context(**context)
        self.addCleanup(context.close)
        page = context.new_page()
        page.set_default_timeout(10_000)
        self.complaints = []
        address = "file://" + (run or self.run_folder).page
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append("a dialog") or dialog.dismiss())
        page.on("request", lambda request: request.url.split("#")[0] in (address, "data:,") or
                self.complaints.append("asks for " + request.url))
        page.goto(address + hash_)
        self.addCleanup(lambda: self.assertEqual(self.complaints, []))
        return page

    def shown(self, page):
        """What the table's first column and the sample's say, row by row."""
        sample = [heading.strip() for heading in page.locator("#table thead th").all_inner_texts()].index("sample")
        return [f"{row.locator('td').nth(0).inner_text()}/{row.locator('td').nth(sample).inner_text()}"
                for row in page.locator("#table tbody tr").all()]

    ALL = ["level1/2/0", "level1/2/1", "level1/19/0", "level1/100/0", "level2/7/0", "level2/9/0"]

    def test_shows_the_summary_and_the_charts(self):
        page = self.open()
        self.assertEqual(page.title(), os.path.basename(self.run_folder.folder) + " – kernelbench")
        figures = page.locator("#figures").inner_text()
        self.assertRegex(figures, r"problems\s+5")
        self.assertRegex(figures, r"correct\s+3")
        self.assertRegex(figures, r"fast_1\s+0\.500")  # (0.5 + 1 + 1) / 5
        self.assertEqual(page.locator("#groups tbody th").all_inner_texts()[:3], ["all", "level1", "level2"])
        self.assertIn("fast_p of all: 0.5", page.locator("#curve").get_attribute("aria-label"))
        self.assertIn("4 correct samples: 3 over 1", page.locator("#speedups").get_attribute("aria-label"))
        for chart in ("#curve", "#speedups"):
            self.assertGreater(self.painted(page, chart), 500)
        page.select_option("#curve-group", label="level2")
        self.assertIn("fast_p of level2: 0.5", page.locator("#curve").get_attribute("aria-label"))

    def painted(self, page, canvas):
        """Pixels of a canvas that are not empty."""
        return page.locator(canvas).evaluate(
            "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 === 3 && v)"
            ".length")

    def test_filters(self):
        page = self.open()
        self.assertEqual(self.shown(page), self.ALL)
        self.assertEqual(page.locator("#count").inner_text(), "6 samples")
        page.select_option("#filter-level", label="2")
        self.assertEqual(self.shown(page), ["level2/7/0", "level2/9/0"])
        self.assertEqual(page.locator("#count").inner_text(), "2 of 6 samples")
        page.select_option("#filter-verdict", label="compile_error")
        self.assertEqual(self.shown(page), ["level2/7/0"])
        page.get_by_role("button", name="Reset").click()
        page.locator("#count", has_text=re.compile("^6 samples")).wait_for()
        page.select_option("#filter-backend", label="cuda_cpp")
        self.assertEqual(self.shown(page), ["level1/100/0"])
        page.select_option("#filter-backend", label="all")
        page.select_option("#filter-flag", label="noisy")
        self.assertEqual(self.shown(page), ["level1/2/1", "level1/19/0"])
        page.select_option("#filter-flag", label="no flag")
        self.assertEqual(self.shown(page), ["level1/2/0", "level1/100/0", "level2/7/0", "level2/9/0"])
        page.select_option("#filter-level", label="1")
        page.select_option("#filter-verdict", label="compile_error")
        self.assertEqual(self.shown(page), [])
        self.assertTrue(page.locator("#none").is_visible())

    def test_searches(self):
        page = self.open()
        for words, found in (("LEVEL1/19", ["level1/19/0"]), ("expected ';'", ["level2/7/0"]),
                             ("matrix", ["level1/2/0", "level1/2/1"]), ("noisy python", ["level1/2/1"]),
                             ("nowhere", [])):
            page.fill("#search", words)
            self.assertEqual(self.shown(page), found, words)

    def test_sorts(self):
        page = self.open()

        def sort(name):
            page.locator("#table thead button", has_text=re.compile(f"^{name}$")).click()
            return self.shown(page)

        untimed = ["level1/100/0", "level2/7/0"]  # last, whichever way
        self.assertEqual(sort("speedup"), ["level1/19/0", "level1/2/0", "level2/9/0", "level1/2/1", *untimed])
        heading = page.locator("#table thead th", has_text="speedup")
        self.assertEqual(heading.get_attribute("aria-sort"), "descending")
        self.assertEqual(sort("speedup"), ["level1/2/1", "level2/9/0", "level1/2/0", "level1/19/0", *untimed])
        self.assertEqual(heading.get_attribute("aria-sort"), "ascending")
        self.assertEqual(sort("verdict")[-1], "level1/100/0")
        self.assertEqual(sort("problem"), self.ALL)
        self.assertEqual(sort("problem"), self.ALL[::-1])
        for name in page.locator("#table thead button").all_inner_texts():
            self.assertEqual(sorted(sort(name)), sorted(self.ALL), name)

    def test_opens_a_sample(self):
        page = self.open()
        page.get_by_role("link", name="level1/2").first.click()
        panel = page.locator("#panel")
        panel.wait_for()
        self.assertTrue(page.url.endswith("#level1/2/0"))
        words = panel.inner_text()
        for part in ("2.000×", "1.960 – 2.060", "NVIDIA H200", "40 pairs of 2 calls", "speed of light",
                     "7014686208535364899", "not counted", "timing", "901 ms", "kb_run", "tolerance", "1980 MHz"):
            self.assertIn(part, words)
        labels = [canvas.get_attribute("aria-label") for canvas in panel.locator("canvas").all()]
        self.assertEqual([label.split(":")[0] for label in labels],
                         ["Speedup of each pair", "Time of a call, in each turn", "Roofline"])
        self.assertIn("200 operations a byte", labels[2])
        # The source, line by line as it is, and coloured.
        source = panel.locator("pre.code:not(.diff)")
        self.assertEqual([line.text_content() for line in source.locator(".line").all()], SOURCE.rstrip().split("\n"))
        self.assertEqual(source.locator(".token-comment").inner_text(), "// adds one: a < b && c > d")
        self.assertEqual([line.text_content() for line in panel.locator(".added").all()],
                         ["// adds one: a < b && c > d", "  return 0;"])
        self.assertEqual([line.text_content() for line in panel.locator(".removed").all()],
                         ["// adds two: a < b && c > d", "  return 1;"])
        page.locator("#close").click()
        self.assertFalse(panel.is_visible())
        self.assertNotIn("#", page.url)

    def test_says_what_it_does_not_have(self):
        page = self.open(hash_="#level2/9/0")
        self.assertIn("level_2_problem_9_sample_0_kernel.cpp has changed since it was judged",
                      page.locator("#panel").inner_text())
        self.assertEqual(page.locator("#panel pre.code").count(), 0)
        page.goto(page.url.split("#")[0] + "#level2/7/0")
        page.locator("#panel-title", has_text="level2/7").wait_for()
        words = page.locator("#panel").inner_text()
        self.assertIn("Compiler log", words)
        self.assertIn("kernel.cpp:3:1: error: expected ';'\nkernel.cpp:9: note", words)
        self.assertIn("Its file is not in the run's folder", words)
        self.assertEqual(page.locator("#panel canvas").count(), 0)

    def test_is_usable_by_keyboard(self):
        page = self.open()

        def focused():
            return page.evaluate("document.activeElement.id || decodeURI(document.activeElement.hash || '')")

        page.keyboard.press("/")
        self.assertEqual(focused(), "search")
        for _ in range(40):
            page.keyboard.press("Tab")
            if focused().startswith("#level"):
                break
        self.assertEqual(focused(), "#level1/2/0")  # one stop for the whole table
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        self.assertEqual(outline, "solid")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        self.assertEqual(focused(), "#level1/19/0")
        page.keyboard.press("End")
        self.assertEqual(focused(), "#level2/9/0")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        page.locator("#panel").wait_for()
        self.assertEqual(focused(), "panel-title")
        self.assertIn("level2/7", page.locator("#panel-title").inner_text())
        page.keyboard.press("Tab")
        self.assertEqual(focused(), "previous")
        page.keyboard.press("Enter")
        page.locator("#panel-title", has_text="level1/100").wait_for()
        page.keyboard.press("Escape")
        self.assertFalse(page.locator("#panel").is_visible())
        self.assertEqual(focused(), "#level1/100/0")
        page.keyboard.press("Home")
        self.assertEqual(focused(), "#level1/2/0")
        page.keyboard.press("Tab")
        self.assertFalse(focused().startswith("#level"))
        for control in page.locator("button, select, input, canvas").all():
            named = control.evaluate(
                "e => e.getAttribute('aria-label') || e.textContent.trim() || (e.labels || []).length")
            self.assertTrue(named, control.evaluate("e => e.outerHTML"))

    def test_is_dark_where_the_system_or_the_reader_wants_it(self):
        light, dark = "rgb(247, 248, 250)", "rgb(16, 19, 23)"

        def has_background(page, colour):
            page.locator(f"html[data-theme={'dark' if colour == dark else 'light'}]").wait_for()
            self.assertEqual(page.evaluate("getComputedStyle(document.body).backgroundColor"), colour)

        page = self.open(color_scheme="dark")
        has_background(page, dark)
        page.emulate_media(color_scheme="light")
        has_background(page, light)
        page = self.open(color_scheme="light")
        has_background(page, light)
        page.locator("#theme").click()
        self.assertEqual(page.locator("#theme").inner_text(), "Theme: light")
        page.locator("#theme").click()
        has_background(page, dark)
        page.reload()
        has_background(page, dark)

    def test_text_of_strangers_is_text(self):
        source = ATTACK + "\n# " + ATTACK + "\nx = '''" + ATTACK + "'''\ny = \"\u202e\u0007\"\n"
        hostile = result(ATTACK, verdict=ATTACK, flags=[ATTACK, "__proto__"], backend=ATTACK, message=ATTACK,
                         size=ATTACK)
        hostile |= {"device_info": {"name": ATTACK}, "candidate": ATTACK,
                    "trials": [{"kind": ATTACK, "seed": 1, "passed": True}], "phases_ms": {ATTACK: 1.0},
                    "telemetry": [{"throttle_reasons": [ATTACK]}], "time_us": 5.0}
        # Of no type that anything expects.
        odd = result("level1/3", message={"a": ATTACK}, trials={"length": 3}, turns=[], phases_ms=[ATTACK],
                     telemetry=ATTACK, device_info=[ATTACK], work={"bytes": ATTACK}, tolerance=ATTACK,
                     overhead_us=ATTACK)
        run = Run([hostile, odd, result("level1/4", backend="python", source=source, speedup=3.0)],
                  {"level_1_problem_4_sample_0_kernel.py": source, "level_1_problem_4_sample_0_turn_1.py": ATTACK})
        self.addCleanup(run.remove)
        page = self.open(run)
        self.assertEqual(page.locator("#table tbody tr").count(), 3)
        for row in page.locator("#table tbody tr").all():
            row.locator("a").click()
            page.locator("#panel").wait_for()
            page.locator("#close").click()
        page.goto(page.url.split("#")[0] + "#level1/4/0")
        page.locator("#panel").wait_for()
        lines = [line.text_content() for line in page.locator("#panel pre.code:not(.diff) .line").all()]
        shown = source.replace("\u202e", "⟨U+202E⟩").replace("\u0007", "⟨U+0007⟩")
        self.assertEqual(lines, shown.rstrip("\n").split("\n"))
        self.assertGreater(page.locator("#panel .token-triple-quoted-string").count(), 0)
        self.assertIn("<img src=x onerror", page.locator("#panel .diff").text_content())
        page.locator("#close").click()
        page.get_by_role("row").filter(has_text="onerror").locator("a").click()
        page.locator("#panel").wait_for()
        words = page.locator("#panel").text_content()
        for attack in ATTACKS:
            self.assertIn(attack, words)
        # Nothing came of it: no element that we did not make, no script that ran.
        self.assertIsNone(page.evaluate("window.hacked === undefined ? null : window.hacked"))
        self.assertEqual(page.locator("img, iframe, svg, b, body h1 ~ h1, style:not(head style)").count(), 0)
        self.assertEqual(page.locator("script:not([type])").count(), 3)
        self.assertEqual(page.evaluate("[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
                                       ".filter(name => name.startsWith('on') || name.startsWith('src'))"), [])

    def test_a_script_that_got_in_would_not_run(self):
        page = self.open()
        for markup in ("'<img src=x onerror=\"window.hacked=1\">'", "'<b>x</b>'"):
            refused = page.evaluate(f"(() => {{ try {{ document.body.innerHTML += {markup}; return 'taken'; }}"
                                    " catch (error) { return error.name; } })()")
            self.assertEqual(refused, "TypeError")
        page.evaluate("document.body.append(Object.assign(document.createElement('img'),"
                      " {src: 'http://127.0.0.1:9/x.png'}))")
        page.wait_for_timeout(100)
        self.assertTrue(any("img-src" in complaint for complaint in self.complaints), self.complaints)
        self.complaints.clear()

    def test_a_large_run_opens_quickly(self):
        kernel = "".join(f"  y[{i}] = x[{i}] > 0 ? x[{i}] : 0;  // line {i}\n" for i in range(420))
        source = "#include <kernelbench/kernel.h>\n" + kernel
        self.assertGreater(len(source), 18_000)
        results, files = [], {}
        for i in range(2000):
            level, number, sample = 1 + i // 1000, 1 + i // 10 % 100, i % 10
            results.append(result(f"level{level}/{number}", sample, speedup=0.3 + i % 97 / 20, source=source))
            files[f"level_{level}_problem_{number}_sample_{sample}_kernel.cpp"] = source
        run = Run(results, files)
        self.addCleanup(run.remove)
        start = time.monotonic()
        page = self.open(run)
        page.locator("#count", has_text="2000 samples").wait_for()
        opened = time.monotonic() - start
        page.locator("#search").fill("level2/77")
        self.assertEqual(page.locator("#table tbody tr").count(), 10)
        page.locator("#table tbody tr a").nth(3).click()
        page.locator("#panel pre.code").wait_for()
        self.assertEqual(page.locator("#panel pre.code .line").count(), 421)
        # A time is no matter of a test; this is for the reader of its log.
        print(f"{os.path.getsize(run.page) / 1e6:.0f} MB opened in {opened:.2f} s")

    def test_reads_in_a_narrow_window(self):
        page = self.open(viewport={"width": 360, "height": 740})
        self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 360)
        page.locator("#table tbody a").first.click()
        page.locator("#panel").wait_for()
        self.assertLessEqual(page.evaluate("document.querySelector('#panel-body').scrollWidth"), 360)

    def test_kernelbenchs_own_results(self):
        folder = tempfile.mkdtemp(prefix="kernelbench-report-")
        self.addCleanup(shutil.rmtree, folder)
        with open(os.path.join(folder, "eval_results.json"), "w", encoding="utf-8") as file:
            json.dump({"19": [{"sample_id": 0, "compiled": True, "correctness": True, "metadata": {}, "runtime": 2.0,
                               "ref_runtime": 3.0, "runtime_stats": {}}]}, file)
        with open(os.path.join(folder, "level_1_problem_19_sample_0_kernel.py"), "w", encoding="utf-8") as file:
            file.write("class ModelNew: pass\n")
        target = os.path.join(folder, "out.html")
        done = subprocess.run([BINARY, "score", folder, "--json", "--html", target], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        json.loads(done.stdout)
        self.assertIn("HTML report: ", done.stderr)
        context = self.browser.new_context()
        self.addCleanup(context.close)
        page = context.new_page()
        page.goto(f"file://{target}#level1/19/0")
        words = page.locator("#panel").inner_text()
        self.assertIn("1.500×", words)
        self.assertIn("Of this sample only the score is known", words)
        self.assertIn("does not say which version", words)
        self.assertIn("class ModelNew", words)


if __name__ == "__main__":
    unittest.main()

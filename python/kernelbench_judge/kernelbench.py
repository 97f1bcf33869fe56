"""KernelBench's function, for code that calls it today: same arguments, same fields, another judge."""
from __future__ import annotations

import dataclasses
import os
import statistics
from typing import Any

from .command import Result
from .evaluation import TIMEOUT_S, evaluate
from .source import Source

PRECISIONS = {"float32": "fp32", "float": "fp32", "fp32": "fp32", "float16": "fp16", "half": "fp16", "fp16": "fp16",
              "bfloat16": "bf16", "bf16": "bf16"}


class InfrastructureError(RuntimeError):
    """Nothing was learnt about the candidate: try again, or leave the sample out, but do not count it."""


@dataclasses.dataclass
class KernelExecResult:
    """compiled, correctness; metadata: what is known beside that; times in milliseconds, -1 where none was taken."""

    compiled: bool = False
    correctness: bool = False
    metadata: dict[str, Any] = dataclasses.field(default_factory=dict)
    runtime: float = -1.0
    runtime_stats: dict[str, Any] = dataclasses.field(default_factory=dict)
    ref_runtime: float = -1.0
    ref_runtime_stats: dict[str, Any] = dataclasses.field(default_factory=dict)

    def model_dump(self) -> dict[str, Any]:
        """A plain dict, as the method of this name gives it for KernelBench's class."""
        return dataclasses.asdict(self)

    dict = model_dump


def eval_kernel_against_ref(original_model_src: str, custom_model_src: str, seed_num: int = 42,
                            num_correct_trials: int = 1, num_perf_trials: int = 10, verbose: bool = False,
                            measure_performance: bool = False, build_dir: str | os.PathLike[str] | None = None,
                            device: Any = None, backend: str = "cuda", precision: Any = "float32",
                            timing_method: str = "cuda_event", check_for_excessive_speedup: bool = True,
                            excessive_speedup_threshold: float = 10, *, rules: str = "kernelbench",
                            size: str | None = None, timeout: float = TIMEOUT_S, **options: Any) -> KernelExecResult:
    """Judges the source text of a ModelNew against the source text of a problem.

    num_correct_trials, measure_performance and excessive_speedup_threshold mean what they mean in KernelBench. device
    and precision may be objects of PyTorch, of which only str() is used ("cuda:0", "torch.float16"), or such words;
    device may be a number; None is a GPU where there is one. verbose prints the verdict.

    Accepted, and without effect: seed_num (inputs are drawn under fresh secret seeds, which are in the result),
    num_perf_trials and timing_method (the judge times pairs of turns by its own clock, as many as an interval takes),
    build_dir (builds are cached by content), backend (a ModelNew says itself what it uses).

    By keyword only: rules ("kernelbench": correctness is KernelBench's own rule; "own": the judge's, with stress
    trials), and size, timeout and options as for evaluate().

    metadata has the judge's "verdict" and "flags", "hardware", "device", "correctness_trials", "max_difference",
    "speedup", "speedup_ci95", "excessive_speedup" where it is flagged, and, under KernelBench's names
    (compilation_error, runtime_error, correctness_issue), why a candidate failed.

    Raises InfrastructureError in the place of a result that says nothing about the candidate, and what evaluate()
    raises.
    """
    result = evaluate(Source(original_model_src), Source(custom_model_src), device=device_name(device), size=size,
                      timeout=timeout,
                      **{"precision": precision_name(precision), "rules": rules, "trials": num_correct_trials,
                         "no_timing": not measure_performance, "excessive_speedup": excessive_speedup_threshold,
                         **options})
    if verbose:
        print(f"[kernelbench] {result['verdict']}{': ' if result['message'] else ''}{result['message']}")
    if result["verdict"] == "infrastructure_error":
        raise InfrastructureError(result["message"])
    return exec_result(result, check_for_excessive_speedup)


def device_name(device: Any) -> str | None:
    if device is None:
        return None
    name = f"cuda:{device}" if isinstance(device, int) else str(device)
    return "cuda:0" if name == "cuda" else name


def precision_name(precision: Any) -> str:
    """ValueError comes from the program, which knows what it can do."""
    name = str(precision).removeprefix("torch.")
    return PRECISIONS.get(name, name)


def exec_result(result: Result, check_for_excessive_speedup: bool = True) -> KernelExecResult:
    """A result of evaluate() in KernelBench's form."""
    correct = result["correct"]
    hardware = result.get("device_info") or {}
    metadata = {"evaluator": "kernelbench", "verdict": result["verdict"], "flags": result["flags"],
                "hardware": hardware.get("name", result.get("device", "")), "device": result.get("device", "")}
    if trials := [trial for trial in result["trials"] if trial["counted"]]:
        metadata["correctness_trials"] = f"({sum(trial['passed'] for trial in trials)} / {len(trials)})"
        if not correct:
            metadata["max_difference"] = [f"{trial['max_abs_error']:.6f}" for trial in trials
                                          if not trial["passed"] and trial["max_abs_error"] is not None]
    if result["speedup"] is not None:
        metadata["speedup"] = result["speedup"]
        metadata["speedup_ci95"] = result["speedup_ci95"]
    if check_for_excessive_speedup and "excessive_speedup" in result["flags"]:
        metadata["excessive_speedup"] = True
    if result["message"]:
        metadata["message" if correct else reason_name(result)] = result["message"]
    answer = KernelExecResult(compiled=result["compiled"], correctness=correct, metadata=metadata)
    if correct and result["time_us"] is not None:
        answer.runtime = result["time_us"] / 1000
        answer.runtime_stats = stats(result, 2, "candidate", answer.runtime, metadata)
    if result["reference_time_us"] is not None:
        answer.ref_runtime = result["reference_time_us"] / 1000
        answer.ref_runtime_stats = stats(result, 1, "reference", answer.ref_runtime, metadata)
    return answer


def reason_name(result: Result) -> str:
    """The name under which KernelBench's metadata has the reason."""
    if not result["compiled"]:
        return "compilation_error"
    return "correctness_issue" if result["verdict"].startswith("wrong_") else "runtime_error"


def stats(result: Result, side: int, name: str, median_ms: float, metadata: dict[str, Any]) -> dict[str, Any]:
    """Over the turns of the usual length: milliseconds of a call. The judge's own figure is the median."""
    calls = result.get("calls_per_turn", 0)
    overhead_us = result.get("overhead_us", {}).get(name, 0.0)
    times = [max(turn[side] - overhead_us, 0.0) / calls / 1000 for turn in result["turns"] if turn[0] == calls]
    found = {"median": median_ms, "num_trials": len(times), "hardware": metadata["hardware"],
             "device": metadata["device"]}
    if times:
        found.update(mean=statistics.fmean(times), std=statistics.stdev(times) if len(times) > 1 else 0.0,
                     min=min(times), max=max(times))
    return found

"""Runs one model for a profiler: calls to warm up, then those that are looked at.

    python -I <folder>/kernelbench_worker/__main__.py profile REQUEST OUT

REQUEST is a JSON file: size, set, precision, device, weight_seed, threads, problem_source, problem_path, and

    subject     "reference", "compiled" (the reference through torch.compile), "python" or "native"
    mode        "counters": one call between cudaProfilerStart and cudaProfilerStop, for `ncu --profile-from-start off`
                "operators": several calls under PyTorch's own profiler
    source, path, language, extensions [{name, path}]      of a Python candidate
    libraries                                              of a native one: its own is the last

Writes OUT/answer.json: {"ok": true, "calls": N, ...}, with "operators" also {"operators": [{"name", "calls",
"time_us"}], "time_us"}, each of one call; or {"ok": false, "error": {"kind", "text"}}. The subject "compiled" writes
OUT/compiled.txt, the code that torch.compile has made, and both of the reference's OUT/trace.json in the mode
"operators". Nothing here is evidence: the candidate shares the process.
"""
import argparse
import json
import os

import torch

from . import languages
from .candidate import Candidate
from .device import open_device
from .errors import WorkerError, error_of
from .native_call import NativeModel
from .outputs import flatten
from .problem import Problem
from .state import state_tensors

WARM_UP_CALLS = 3
PROFILED_CALLS = 5
MAX_OPERATORS = 60
MAX_NAME = 400


def main(argv=None):
    parser = argparse.ArgumentParser(prog="kernelbench_worker profile", description="Runs a model for a profiler.")
    parser.add_argument("command", choices=["profile"])
    parser.add_argument("request", help="a JSON file")
    parser.add_argument("out", help="the folder to write to")
    options = parser.parse_args(argv)
    with open(options.request, encoding="utf-8") as file:
        request = json.load(file)
    try:
        answer = {"ok": True, **profile(request, options.out)}
    except BaseException as exception:  # a candidate may raise SystemExit, or anything
        answer = {"ok": False, "error": error_of(exception, "runtime")}
    with open(os.path.join(options.out, "answer.json"), "w", encoding="utf-8") as file:
        json.dump(answer, file)
    return 0 if answer["ok"] else 1


def profile(request, out):
    """Returns what there is to answer beside `ok`."""
    torch.set_num_threads(request["threads"])
    device = open_device(request["device"])
    call, code = _make_call(request, device)
    for _ in range(WARM_UP_CALLS):
        call()
    device.synchronize()
    if code is not None:
        with open(os.path.join(out, "compiled.txt"), "w", encoding="utf-8") as file:
            file.write(code)
    if request["mode"] == "counters":
        _profile_one(call, device)
        return {"calls": 1}
    trace = os.path.join(out, "trace.json") if request["subject"] in ("reference", "compiled") else None
    return _profile_operators(call, device, trace)


def _make_call(request, device):
    """Returns call(), which makes or enqueues one call, and the code that torch.compile made, or None."""
    subject = request["subject"]
    problem = Problem(request, device, source="problem_source", path="problem_path")
    model = problem.model()
    inputs = problem.draw_inputs(problem.weight_seed + 1)
    if subject == "python":
        prebuilt = {e["name"]: os.open(e["path"], os.O_RDONLY) for e in request["extensions"]}
        params = state_tensors(model)
        model = Candidate(request, device, prebuilt, params).model
    elif subject == "native":
        outputs = [t.clone() for t in flatten(problem.call(model, inputs), device)]
        return NativeModel(request["libraries"], inputs, outputs, state_tensors(model)), None
    elif subject == "compiled":
        languages.prepare(device, None)
        model.forward = torch.compile(model.forward)
        code = _compile(model, inputs)
        return lambda: problem.call(model, inputs), code
    elif subject != "reference":
        raise WorkerError("protocol", f'there is no subject "{subject}"')

    @torch.no_grad()
    def call():
        model(*inputs)

    return call, None


def _compile(model, inputs):
    """Makes the first call, and returns the code that it had generated."""
    try:
        from torch._inductor.utils import run_and_get_code
    except ImportError:  # not a public function
        model(*inputs)
        return ""
    with torch.no_grad():
        _, sources = run_and_get_code(model, *inputs)
    return "\n\n".join(sources)


def _profile_one(call, device):
    if device.torch_device.type != "cuda":
        raise WorkerError("unsupported", "hardware counters are read on a GPU")
    torch.cuda.profiler.start()
    try:
        call()
        device.synchronize()
    finally:
        torch.cuda.profiler.stop()


def _profile_operators(call, device, trace):
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as torch_profile

    on_gpu = device.torch_device.type == "cuda"
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if on_gpu else [])
    # The first use pays for the profiler's own start.
    for count in (1, PROFILED_CALLS):
        with torch_profile(activities=activities) as profiler:
            for _ in range(count):
                call()
            device.synchronize()
    if trace:
        profiler.export_chrome_trace(trace)
    return summary(profiler.key_averages(), on_gpu, PROFILED_CALLS)


def summary(averages, on_gpu, calls):
    """The operators (CPU) or kernels (GPU) that took time, longest first, in microseconds of one call."""
    rows = []
    for event in averages:
        is_kernel = event.device_type == torch.autograd.DeviceType.CUDA
        if is_kernel != on_gpu:
            continue
        time_us = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        rows.append({"name": event.key[:MAX_NAME], "calls": event.count / calls, "time_us": time_us / calls})
    rows.sort(key=lambda row: -row["time_us"])
    return {"calls": calls, "time_us": sum(row["time_us"] for row in rows), "operators": rows[:MAX_OPERATORS]}

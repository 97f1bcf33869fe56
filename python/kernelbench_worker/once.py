"""Does a problem run where it is to be judged? Its model is built and called once, on inputs drawn there.

On a GPU one process runs one problem after the other, since a context costs more than most calls: what a problem
leaves behind (cached memory, garbage) goes before the next one begins.
"""
import gc
import math

import torch

from .errors import WorkerError, blame_problem, error_of
from .outputs import describe, flatten, plain
from .problem import Problem
from .reference import describe_load


def run_once(request, device):
    """Returns the reply: `spec`, `size`, `findings` ([{rule, text}]) and `peak_bytes`.

    A `runtime` error says that the process has lost its device, and can run nothing more.
    """
    torch.set_num_threads(request["threads"])
    gc.collect()
    try:
        device.begin_peak()
        return _run(request, device)
    except BaseException as exception:
        try:
            device.synchronize()
        except Exception as lost:
            raise WorkerError("runtime", error_of(exception, "runtime")["text"]) from lost
        raise


def _run(request, device):
    problem = Problem(request, device)
    model = problem.model()
    inputs = problem.draw_inputs(problem.weight_seed)
    spec = describe_load(problem, model, inputs)
    device.seed(problem.weight_seed)
    result = problem.call(model, inputs)
    with blame_problem(problem.path, "reading the outputs"):
        outputs = [plain(tensor, device) for tensor in flatten(result, device)]
        device.synchronize()
    if not outputs:
        raise WorkerError("problem", "Model.forward returns no tensor")
    spec["outputs"] = [describe(t, f"output {i}") for i, t in enumerate(outputs)]
    peak = device.peak_bytes()
    return {"spec": spec, "size": problem.size_name, "findings": _findings(outputs), "peak_bytes": peak}


def _findings(outputs):
    if not sum(t.numel() for t in outputs):
        return [{"rule": "shape", "text": "the outputs have no element"}]
    return [{"rule": "finite", "text": f"output {i} holds {what}"}
            for i, t in enumerate(outputs) if (what := _not_finite(t))]


def _not_finite(tensor):
    """Names what a tensor holds beside finite numbers; without another tensor of its size."""
    if not tensor.is_floating_point() or not tensor.numel():
        return ""
    least, most = (float(value) for value in torch.aminmax(tensor.detach()))
    if math.isnan(least):
        return "NaN"
    return "" if math.isfinite(least) and math.isfinite(most) else "infinity"

"""A model that is only called: a candidate's `ModelNew`, or the problem's own `Model` to race it against.

Both are constructed by the same steps and given the same weights, so that their processes differ in nothing
but the model: who had also examined the problem would be 1 to 4 % slower on a CPU.
"""
import torch

from . import extensions, languages
from .errors import WorkerError
from .problem import Problem, execute
from .state import Buffers, state_tensors

MAX_UNMATCHED_NAMES = 100


class Candidate:
    """A ModelNew, ready to be called."""

    def __init__(self, request, device, prebuilt, params):
        """Loads the candidate of a `load_candidate` request.

        The request's `model` names the class. `prebuilt` has the open descriptors of its extensions by
        module name. `params` are the reference's state tensors by name, to be copied where they fit.
        """
        problem = Problem(request, device, source="problem_source", path="problem_path")
        init_inputs = problem.init_inputs()
        languages.prepare(device, request.get("language"))
        if prebuilt or extensions.mentioned_in(request["source"]):
            extensions.install(extensions.Prebuilt(prebuilt))
        with torch.no_grad():
            module = execute(request["source"], "kernelbench_candidate", request["path"])
        name = request.get("model", "ModelNew")
        make_model = getattr(module, name, None)
        if not callable(make_model):
            raise WorkerError("load", f"the candidate does not define a class {name}")
        self.model = problem.construct(make_model, init_inputs)
        if not isinstance(self.model, torch.nn.Module):
            raise WorkerError("load", f"the candidate's {name} is not a torch.nn.Module")
        self.matched, self.unmatched = _copy_matching(params, state_tensors(self.model))
        self.buffers = Buffers(self.model)


@torch.no_grad()
def _copy_matching(params, state):
    """Copies `params` into equally named, shaped and typed tensors of `state`, in place.

    Returns how many there were, and the names of the first few that found no place.
    """
    unmatched = []
    for name, value in params.items():
        target = state.get(name)
        if target is not None and target.shape == value.shape and target.dtype == value.dtype:
            target.copy_(value)
        else:
            unmatched.append(name)
    return len(params) - len(unmatched), unmatched[:MAX_UNMATCHED_NAMES]

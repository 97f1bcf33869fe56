"""The reference worker's side: what a problem is, what its inputs are, and what is expected."""
import torch
from torch.autograd.profiler import profile

from .errors import WorkerError, blame_problem, is_out_of_memory
from .outputs import describe, flatten, plain, same_bits
from .problem import Problem
from .state import Buffers, state_tensors


# What `expect` can ask for.
DEFAULT, STRICT, TRUTH = MODES = "default", "strict", "truth"


class Reference:
    """A problem's Model, built and examined. Its own errors are `problem` errors."""

    def __init__(self, request, device):
        self.problem = Problem(request, device)
        self.problem.refuse_what_does_not_fit(request.get("memory_bytes", 0))
        self._device = device
        self.model = self.problem.model()
        self.buffers = Buffers(self.model)
        self._truth = None
        self.spec = self._examine()
        device.trim()

    def _examine(self):
        """Calls the model twice on one input, and returns the protocol's `spec`.

        Inputs may take much of the device's memory: none is kept longer than it is needed.
        """
        problem, seed = self.problem, self.problem.weight_seed
        inputs = problem.draw_inputs(seed)
        spec = describe_load(problem, self.model, inputs)
        untouched = [v.clone() if isinstance(v, torch.Tensor) else v for v in inputs]

        self._device.seed(seed)
        before = self._device.generator_state()
        first = self._own_outputs(inputs)
        spec["uses_rng"] = not torch.equal(before, self._device.generator_state())
        spec["mutates_inputs"] = self._mutates_inputs = not all(
            same_bits(a, b) for a, b in zip(inputs, untouched) if isinstance(a, torch.Tensor))
        del inputs
        spec["outputs"] = [describe(t, f"output {i}") for i, t in enumerate(first)]
        if not first:
            raise WorkerError("problem", "Model.forward returns no tensor")

        self._device.seed(seed)
        second, spec["flops"] = self._counted_outputs(untouched)
        spec["repeatable"] = _same_outputs(first, second)
        self.buffers.restore()
        return spec

    def _own_outputs(self, inputs):
        """Calls the model; returns outputs that later calls do not write to."""
        state = {t.untyped_storage().data_ptr() for t in (*self.model.parameters(), *self.model.buffers())}
        return [t.clone() if t.untyped_storage().data_ptr() in state else t
                for t in self._outputs(self.model, inputs)]

    def _counted_outputs(self, inputs):
        """Calls the model; returns its outputs and how many floating-point operations torch counts in it.

        By the profiler, which is there in no time, and not by torch.utils.flop_counter, whose first use imports
        sympy: 3.5 s.
        """
        with profile(with_flops=True) as counted:
            outputs = self._outputs(self.model, inputs)
        return outputs, sum(event.flops or 0 for event in counted.function_events)

    def export_params(self, params):
        """Writes the state dict into `params`, the arena's tensors by name."""
        self.buffers.restore()
        state = state_tensors(self.model)
        for name, target in params.items():
            _copy(target, state[name], f"parameter {name}")

    def draw_inputs(self, slots, seeds):
        """Draws inputs under each of `seeds` and writes them into the arena's `slots`."""
        for slot, seed in zip(slots, seeds, strict=True):
            values = self.problem.draw_inputs(seed)
            if len(values) != len(slot):
                raise WorkerError("problem", f"get_inputs() returned {len(values)} values, {len(slot)} before")
            for i, (target, value) in enumerate(zip(slot, values)):
                if isinstance(target, torch.Tensor) and isinstance(value, torch.Tensor):
                    _copy(target, value, f"input {i}")

    def expect(self, slots, seeds, regions, mode):
        """Writes the outputs of each of `slots` into its list of `regions`, cast to their types.

        Each call has the buffers of a model just loaded, and leaves the slot's inputs as they are.
        STRICT allows no shortcuts in precision. TRUTH asks the float64 model instead; an `unsupported` error
        when there is none.
        """
        for slot, seed, region in zip(slots, seeds, regions, strict=True):
            if mode == TRUTH:
                outputs = self._call_truth(slot, seed)
            elif mode == STRICT:
                with self._device.strict():
                    outputs = self.call(slot, seed)
            else:
                outputs = self.call(slot, seed)
            if len(outputs) != len(region):
                raise WorkerError("problem", f"Model returned {len(outputs)} outputs, {len(region)} before")
            for i, (target, value) in enumerate(zip(region, outputs)):
                _copy(target, value, f"output {i}")
            del outputs, value  # the next call may need the room
            if mode == TRUTH:
                self._device.trim()

    def call(self, slot, seed):
        """Calls the model on `slot`, which stays as it is, with the buffers of a model just loaded."""
        self.buffers.restore()
        inputs = slot
        if self._mutates_inputs:
            inputs = [v.clone() if isinstance(v, torch.Tensor) else v for v in slot]
        self._device.seed(seed)
        return self._outputs(self.model, inputs)

    def _call_truth(self, slot, seed):
        default = torch.get_default_dtype()
        try:
            if self._truth is None:
                model = self.float64_model()
                self._truth = model, Buffers(model)
            model, buffers = self._truth
            buffers.restore()
            # A copy even where the type is float64 already: the model may write to its inputs.
            inputs = [_float64(v, copy=True) if isinstance(v, torch.Tensor) else v for v in slot]
            torch.set_default_dtype(torch.float64)  # for tensors that forward makes
            self._device.seed(seed)
            return self._outputs(model, inputs)
        except BaseException as exception:
            if is_out_of_memory(exception) or getattr(exception, "kind", None) == "out_of_memory":
                raise
            raise WorkerError("unsupported", f"the reference does not run in float64: {exception}") from exception
        finally:
            torch.set_default_dtype(default)

    def float64_model(self):
        """Builds the model anew, in float64, with the values of the one that is timed.

        Anew rather than as a copy: what calls have cached in it must not come along.
        """
        self.buffers.restore()
        model = self.problem.model().to(torch.float64)
        for mine, theirs in ((model.named_parameters(), self.model.named_parameters()),
                             (model.named_buffers(), self.model.named_buffers())):
            values = dict(theirs)
            for name, target in mine:
                with torch.no_grad():
                    target.copy_(values[name])
        for module in model.modules():  # tensors that are neither parameters nor buffers
            for name, value in vars(module).items():
                if isinstance(value, torch.Tensor):
                    setattr(module, name, _float64(value))
        return model

    def _outputs(self, model, inputs):
        result = self.problem.call(model, inputs)
        with blame_problem(self.problem.path, "reading the outputs"):
            return [plain(tensor, self._device) for tensor in flatten(result, self._device)]


def describe_load(problem, model, inputs):
    """Returns the part of the protocol's `spec` that is known without a call of the model."""
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return {"inputs": [_describe_input(problem, value, i) for i, value in enumerate(inputs)],
            "params": [{"name": name, **describe(value, f"parameter {name}"), "buffer": name not in parameters}
                       for name, value in state_tensors(model).items()],
            "sizes": list(problem.sizes)}


def _describe_input(problem, value, index):
    what = f"input {index} of get_inputs()"
    if isinstance(value, torch.Tensor):
        return {"kind": "tensor", **describe(value, what)}
    problem.check_value(value, what)
    return {"kind": "value", "value": value}


def _same_outputs(left, right):
    return len(left) == len(right) and all(map(same_bits, left, right))


def _float64(tensor, copy=False):
    dtype = torch.float64 if tensor.is_floating_point() else tensor.dtype
    return tensor.to(dtype, copy=copy)


@torch.no_grad()
def _copy(target, value, what):
    """Copies with a cast; a shape that differs is an error, never broadcast."""
    if target.shape != value.shape:
        raise WorkerError("problem", f"{what} has the shape {list(value.shape)}, {list(target.shape)} before; "
                          "shapes must not depend on values")
    target.copy_(value)

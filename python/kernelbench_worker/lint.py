"""Is a problem worth judging kernels by? What `kernelbench problems check` asks of one.

A problem is bad where a kernel can leave out work and still be right: an output that is the same whatever
the inputs are, or within tolerance of zero or of a constant; an input or a weight that nothing depends on. It
is bad, too, where right answers cannot be told from wrong ones: an output that is not finite, or that float32
does not compute. Each of these is a *finding*.

Dependence is looked for by one backward pass of a float64 model for all tensors at once. For a random
projection of the outputs, each divided by its norm, the norm of a tensor's gradient times the tensor's own
size is how far, relatively, a change of that size moves the outputs. Float64 rounding leaves about 1e-13 of
tensors that cancel (the bias of a convolution before a batch norm), a real dependence far more than _NO_EFFECT.
What has no such gradient (integers, saturated or rounded values, models under no_grad or that write in place)
is changed and looked at, one tensor after the other.

A file may say of itself:
  INERT = ("conv.bias", "*.k_proj.bias")   weights (fnmatch patterns) known to have no effect. Then they must have none.
  ALTERED = "why"                          how it differs from the public problem of its id.
"""
import fnmatch
import inspect
import math

import torch

from .errors import WorkerError, is_out_of_memory
from .outputs import flatten, plain, same_bits
from .reference import Reference
from .state import Buffers

# The judge's rule for float32 (docs/problems.md): element by element, and for the norm of an output's error.
_TOLERANCE = 1e-4
_FLOAT64_TOLERANCE = 1e-3  # relative norm error of float32 against float64
_NO_EFFECT = 1e-9          # a smaller relative change of the outputs is float64 rounding
_NO_EFFECT_FLOAT32 = 3e-6  # the same where a model does not run in float64
# A weight of zeros (a bias) has no size of its own to be changed by.
_LEAST_SIZE = 1e-2
_SEEDS = 20001, 20002, 20003  # of inputs: any will do, the same on each run so that a check repeats
_CALL_SEED = 7                # of the generator during a call
_MAX_NAMED = 12               # tensors named in one finding


class Lint:
    """One problem, loaded and examined. A file that does not load or run is a `problem` error."""

    def __init__(self, request, device):
        torch.set_num_threads(request["threads"])
        self._device = device
        self._reference = Reference(request, device)
        self._problem = self._reference.problem
        self._inert = self._patterns()
        self._altered = self._text("ALTERED")
        self._findings = []
        self._notes = []
        self._weakest = None

    def report(self):
        """Returns the reply: `spec`, `size`, `altered`, `findings` ([{rule, text}]), `notes` and `weakest`."""
        draws = [self._problem.draw_inputs(seed) for seed in _SEEDS]
        outputs = [self._outputs(draw) for draw in draws]
        if self._same_shapes(outputs):
            self._check_repeats(draws[0], outputs[0])
            finite = self._check_finite(outputs)
            self._check_values(outputs)
            float64 = self._check_float64(draws[0], outputs[0]) if finite else None
            if finite:
                self._check_dependence(draws, outputs[0], float64)
        return {"spec": self._reference.spec, "size": self._problem.size_name, "altered": self._altered,
                "findings": self._findings, "notes": self._notes, "weakest": self._weakest}

    # ---- what the file says of itself -------------------------------------------------------------

    def _patterns(self):
        patterns = getattr(self._problem.module, "INERT", ())
        if not isinstance(patterns, (tuple, list)) or not all(isinstance(p, str) for p in patterns):
            raise WorkerError("problem", f"{self._problem.path}: INERT must be a tuple of names of weights")
        return tuple(patterns)

    def _text(self, name):
        text = getattr(self._problem.module, name, "")
        if not isinstance(text, str):
            raise WorkerError("problem", f"{self._problem.path}: {name} must be a string")
        return text

    # ---- outputs ----------------------------------------------------------------------------------

    def _finding(self, rule, text):
        self._findings.append({"rule": rule, "text": text})

    def _outputs(self, inputs):
        """The default outputs, which nothing writes to later."""
        return [t.detach().clone() for t in self._reference.call(inputs, _CALL_SEED)]

    def _same_shapes(self, outputs):
        shapes = [[(t.dtype, tuple(t.shape)) for t in output] for output in outputs]
        if any(other != shapes[0] for other in shapes[1:]):
            self._finding("shape", "the outputs' shapes or types depend on the values of the inputs")
            return False
        if not sum(t.numel() for t in outputs[0]):
            self._finding("shape", "the outputs have no element")
            return False
        return True

    def _check_repeats(self, inputs, output):
        again = self._outputs(inputs)
        if not all(map(same_bits, output, again)):
            self._finding("repeat", "two calls on one input under one seed differ")

    def _check_finite(self, outputs):
        bad = {i for output in outputs for i, t in enumerate(output)
               if t.is_floating_point() and not bool(torch.isfinite(t).all())}
        for i in sorted(bad):
            kinds = [name for name, test in (("NaN", torch.isnan), ("infinity", torch.isinf))
                     if any(bool(test(output[i]).any()) for output in outputs)]
            self._finding("finite", f"output {i} holds {' and '.join(kinds)}")
        return not bad

    def _check_values(self, outputs):
        first, others = outputs[0], outputs[1:]
        for i, value in enumerate(first):
            if not value.numel():
                continue
            rest = [other[i] for other in others]
            if all(_accepted(torch.zeros_like(v), v) for v in (value, *rest)):
                self._finding("zero", f"zeros pass for output {i}")
            elif all(_accepted(_constant_like(value, v), v) for v in rest):
                self._finding("constant", f"a constant passes for output {i}")
            elif all(_accepted(value, v) for v in rest):
                self._finding("seed", f"the output {i} of one input passes for those of others")

    # ---- float64 ----------------------------------------------------------------------------------

    def _check_float64(self, inputs, output):
        """Compares with the float64 model, and returns it as a _Model; None where there is none."""
        try:
            model = _Model(self._reference.float64_model(), self._device, torch.float64)
            truth = model(inputs)
        except BaseException as exception:
            if is_out_of_memory(exception):
                raise
            self._finding("float64", f"the model does not run in float64: {_first_line(exception)}")
            return None
        worst = self._norm_error(output, truth)
        if worst > _FLOAT64_TOLERANCE and self._reference.spec["uses_rng"]:
            # The same seed may give other numbers in another type: looked at without dropout, then.
            worst = self._error_in_eval_mode(inputs, model)
        if worst > _FLOAT64_TOLERANCE:
            self._finding("float64", f"float32 is {worst:.1e} from float64, relatively")
        return model

    def _error_in_eval_mode(self, inputs, model):
        mine, theirs = self._reference.model, model.model
        modes = [(module, module.training) for m in (mine, theirs) for module in m.modules()]
        try:
            mine.eval(), theirs.eval()
            error = self._norm_error(self._outputs(inputs), model(inputs))
        finally:
            for module, training in modes:
                module.training = training
        if error > _FLOAT64_TOLERANCE:
            self._notes.append("float32 and float64 draw different random numbers: not compared")
            return 0
        return error

    def _norm_error(self, output, truth):
        if [t.shape for t in output] != [t.shape for t in truth]:
            return math.inf
        return max((_relative_change(a, b) for a, b in zip(output, truth) if b.is_floating_point()), default=0)

    # ---- dependence -------------------------------------------------------------------------------

    def _check_dependence(self, draws, output, float64):
        model = float64 or _Model(self._reference.model, self._device, None)
        looked = _Dependence(model, draws, self._reference.spec["uses_rng"])
        names = self._input_names(len(draws[0]))
        missing = []
        for i, value in enumerate(draws[0]):
            if value is None or isinstance(value, str):
                continue
            if isinstance(value, torch.Tensor) and not value.numel():
                continue
            if not looked.input(i):
                missing.append(names[i])
        if missing:
            self._finding("input", f"the outputs do not depend on {_named(missing)}")
        self._check_weights(model, looked)
        self._weakest = looked.weakest()

    def _input_names(self, count):
        try:
            names = list(inspect.signature(self._reference.model.forward).parameters)
        except (TypeError, ValueError):
            names = []
        names += [""] * (count - len(names))
        return [f"input {i}" + (f" ({name})" if name else "") for i, name in enumerate(names)]

    def _check_weights(self, model, looked):
        unused, effective, matched = [], [], set()
        for name, weight in model.model.named_parameters():
            if not weight.numel():
                continue
            patterns = {p for p in self._inert if fnmatch.fnmatchcase(name, p)}
            matched |= patterns
            if patterns:
                if looked.weight(name, thorough=True):
                    effective.append(name)
            elif not looked.weight(name):
                unused.append(name)
        if unused:
            self._finding("weight", f"the outputs do not depend on {_named(unused)}")
        if effective:
            self._finding("inert", f"INERT names {_named(effective)}, on which the outputs depend")
        if unmatched := [p for p in self._inert if p not in matched]:
            self._finding("inert", f"INERT names {_named(unmatched)}: there is no such weight")


class _Model:
    """A model to be called on copies of inputs, each time as if just loaded."""

    def __init__(self, model, device, dtype):
        self.model, self._device, self.dtype = model, device, dtype
        self._buffers = Buffers(model)

    @property
    def no_effect(self):
        return _NO_EFFECT if self.dtype is torch.float64 else _NO_EFFECT_FLOAT32

    def cast(self, value):
        if not isinstance(value, torch.Tensor):
            return value
        return value.to(self.dtype if value.is_floating_point() and self.dtype else value.dtype, copy=True)

    def __call__(self, inputs, grad=False):
        """The output tensors. With `grad`, `inputs` are used as they are and not copied."""
        default = torch.get_default_dtype()
        self._buffers.restore()
        try:
            if self.dtype:
                torch.set_default_dtype(self.dtype)  # for tensors that forward makes
            self._device.seed(_CALL_SEED)
            with torch.set_grad_enabled(grad):
                result = self.model(*(inputs if grad else [self.cast(v) for v in inputs]))
            tensors = flatten(result, self._device)
            # A copy: an output may be the very weight that is changed next.
            return tensors if grad else [plain(t, self._device).detach().clone() for t in tensors]
        finally:
            torch.set_default_dtype(default)


class _Dependence:
    """How much the outputs of a model move with each of its inputs and weights."""

    def __init__(self, model, draws, uses_rng):
        self._model, self._draws = model, draws
        self._threshold = model.no_effect
        self._weights = dict(model.model.named_parameters())
        self._generator = torch.Generator().manual_seed(_CALL_SEED)
        self._baseline = {}
        self._passes = 0
        self._effects = {}  # by ("input", i) or ("weight", name): the largest seen
        self._backward(0)

    def input(self, index):
        key = "input", index
        return self._has_effect(key) or self._moves(key, self._changed_inputs(index))

    def weight(self, name, thorough=False):
        """Tells whether the outputs depend on it. `thorough`: by a change as well where a gradient shows none."""
        key = "weight", name
        if self._has_effect(key):
            return True
        return self._moves(key, self._changed_weights(name), every=thorough)

    def weakest(self):
        """The weight that moves the outputs least, of those that do: [name, relative change]; None without."""
        weights = [(effect, name) for (kind, name), effect in self._effects.items()
                   if kind == "weight" and effect > self._threshold and math.isfinite(effect)]
        return [min(weights)[1], min(weights)[0]] if weights else None

    def _has_effect(self, key):
        if self._effects.get(key, 0) <= self._threshold and self._passes == 1:
            self._backward(1)
        return self._effects.get(key, 0) > self._threshold

    def _backward(self, draw):
        """One pass for all tensors. Leaves them without effect where there is no gradient to be had."""
        self._passes += 1
        model, places = self._model, {}
        inputs = []
        for i, value in enumerate(self._draws[draw]):
            value = model.cast(value)
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                places["input", i] = value.requires_grad_()
                value = value.clone()  # a model may write to its inputs, but not to a leaf
            inputs.append(value)
        frozen = [w for w in self._weights.values() if not w.requires_grad]
        try:
            for weight in frozen:
                weight.requires_grad_()
            places |= {("weight", name): w for name, w in self._weights.items()}
            outputs = model(inputs, grad=True)
            total = sum(self._projection(t) for t in outputs if t.requires_grad)
            if not isinstance(total, torch.Tensor):
                return
            gradients = torch.autograd.grad(total, list(places.values()), allow_unused=True)
        except Exception as exception:  # writes in place, an operation without a derivative, or of its own mind
            if is_out_of_memory(exception):
                raise
            return
        finally:
            for weight in frozen:
                weight.requires_grad_(False)
        for (key, tensor), gradient in zip(places.items(), gradients):
            if gradient is not None:
                effect = float(gradient.norm()) * _size(tensor)
                if math.isfinite(effect):
                    self._effects[key] = max(self._effects.get(key, 0), effect)

    def _projection(self, output):
        direction = torch.randn(output.shape, generator=self._generator, dtype=torch.float64)
        return (output.double() * direction).sum() / (float(output.detach().double().norm()) or 1)

    def _moves(self, key, changes, every=False):
        """Makes one change after the other until the outputs move; with `every`, of those that can be made."""
        for draw, apply in changes:
            if draw not in self._baseline:
                self._baseline[draw] = self._model(self._draws[draw])
            try:
                changed = apply()
            except Exception as exception:
                if is_out_of_memory(exception):
                    raise
                effect = math.inf  # it minds the change: it looks
            else:
                effect = _movement(self._baseline[draw], changed)
            self._effects[key] = max(self._effects.get(key, 0), effect)
            if effect > self._threshold:
                return True
        return False

    def _changed_inputs(self, index):
        for draw, other in ((0, 1), (1, 2)):
            for value in self._other_values(self._draws[draw][index], self._draws[other][index]):
                inputs = list(self._draws[draw])
                inputs[index] = value
                yield draw, lambda inputs=inputs: self._model(inputs)

    def _other_values(self, value, drawn):
        """Other values for an input: first what might have been drawn, which is surely allowed."""
        if isinstance(value, bool):
            yield not value
        elif isinstance(value, int):
            yield from (value + 1, value - 1, value * 2)
        elif isinstance(value, float):
            yield from (value * 1.5 + 0.25, -value)
        elif isinstance(value, torch.Tensor):
            if drawn.shape == value.shape and not torch.equal(drawn, value):
                yield drawn
            if value.numel() > 1:
                yield value.reshape(-1).roll(1).reshape(value.shape)
                yield value.flip(tuple(range(value.dim())))
            if value.is_floating_point():
                yield from (value + factor * self._noise(value) for factor in (0.1, 1, 10))
            elif value.dtype is torch.bool:
                yield ~value
            else:
                yield torch.where(value == value.max(), value.min(), value)
                yield value + 1

    def _changed_weights(self, name):
        weight = self._weights[name]
        for draw in (0, 1):
            for factor in (0.1, 1, 10):
                yield draw, lambda draw=draw, factor=factor: self._with_noise(weight, factor, draw)

    def _with_noise(self, weight, factor, draw):
        saved = weight.detach().clone()
        try:
            with torch.no_grad():
                weight.add_(self._noise(weight), alpha=factor)
            return self._model(self._draws[draw])
        finally:
            with torch.no_grad():
                weight.copy_(saved)

    def _noise(self, tensor):
        noise = torch.randn(tensor.shape, generator=self._generator, dtype=torch.float64)
        return (noise * _size(tensor)).to(tensor.dtype)


# ---- numbers ----------------------------------------------------------------------------------------


def _accepted(candidate, reference):
    """The judge's rule: elements and norm within tolerance; integers and the places of NaN and infinity exactly."""
    if not reference.is_floating_point():
        return torch.equal(candidate, reference)
    candidate, reference = candidate.double(), reference.double()
    finite = torch.isfinite(reference)
    if not bool(torch.where(finite, torch.isfinite(candidate),
                            (candidate == reference) | (candidate.isnan() & reference.isnan())).all()):
        return False
    error, size = (candidate - reference)[finite].abs(), reference[finite].abs()
    return bool((error <= _TOLERANCE + _TOLERANCE * size).all()) and \
        float(error.norm()) <= _TOLERANCE * float(size.norm())


def _constant_like(source, reference):
    """The constant that fits `source` best, in the shape of `reference`: its mean, or its commonest integer."""
    if source.is_floating_point():
        finite = source[torch.isfinite(source)].double()
        value = float(finite.mean()) if finite.numel() else 0
        return torch.full_like(reference, value)
    return torch.full_like(reference, source.to(torch.int64).flatten().mode().values.item())


def _relative_change(value, base):
    """‖value − base‖ / ‖base‖ in float64."""
    base = base.double()
    change, size = float((value.double() - base).norm()), float(base.norm())
    if math.isnan(change):
        return math.inf
    return change / size if size else (math.inf if change else 0)


def _movement(before, after):
    """The largest relative change of an output; of integers, infinite for any."""
    if [t.shape for t in before] != [t.shape for t in after]:
        return math.inf
    return max((_relative_change(b, a) if a.is_floating_point() else (0 if torch.equal(a, b) else math.inf)
                for a, b in zip(before, after)), default=0)


def _size(tensor):
    """The root mean square of its elements, or the least size that counts."""
    return max(float(tensor.detach().double().norm()) / math.sqrt(max(tensor.numel(), 1)), _LEAST_SIZE)


def _named(names):
    text = ", ".join(names[:_MAX_NAMED])
    return text if len(names) <= _MAX_NAMED else f"{text} and {len(names) - _MAX_NAMED} more"


def _first_line(exception):
    text = str(exception).strip() or type(exception).__name__
    return text.splitlines()[0][:300]

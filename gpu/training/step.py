"""One step of training on the device: loss, gradients, clipping, optimizer and schedule, as one CUDA graph.

    step = symad.gpu.training_step(loss, parameters, adamw(1e-3), clip=1.0, dtype="bfloat16")
    for batch in data:
        value = step(*batch)          # an array on the device; nothing waits

The second call is recorded; it and all later calls are one launch (`symad.gpu.recording`).
"""

from __future__ import annotations

from typing import Any

from symad import pullback, value_and_gradient
from symad.core.arguments import bind
from symad.core.given import renamed
from symad.core.identifiers import not_one_of
from symad.core.signatures import Inputs, Traceable, Tree
from symad.errors import EvaluationError
from symad.gpu.compile import Machine, explained, machine
from symad.gpu.cupy_library import DTYPES
from symad.gpu.recording import Recording, check_recordable
from symad.gpu.settings import options
from symad.gpu.training.optimizer import STATE, DeviceOptimizer, LossScale
from symad.numeric.kernel import Kernel
from symad.numeric.lowering import lower
from symad.numeric.training.optimizers import Optimizer
from symad.numeric.training.parameters import Trainable
from symad.numeric.training.schedules import Rate
from symad.tracing import as_graph

Array = Any


@renamed(optimiser="optimizer")
def training_step(
    loss: Traceable,
    parameters: Tree,
    optimizer: Optimizer,
    *,
    clip: float | None = None,
    schedule: Rate | None = None,
    steps: int | None = None,
    dtype: str = "float32",
    loss_scale: LossScale | str | None = "auto",
    capture: bool = True,
    inputs: Inputs | None = None,
) -> TrainingStep:
    """A step that minimizes a loss on the current device, in place.

    Args:
        loss: a scalar function, in any form that `symad.trace` takes; its first arguments are parameters, the
            others data.
        parameters: initial values as NumPy arrays or numbers: a dict with the names of the first arguments in
            order, or the value of the first one alone. An argument may be a structure of arrays.
        optimizer: `SGD` or `Adam` of `symad.numeric.training.optimizers`; one kernel changes all parameters
            (one for every 120 of them).
        clip: gradients with a larger norm, over all parameters together, are scaled down to this norm.
        schedule: a factor of the learning rate for each step; ``steps`` of them are prepared.
        steps: the number of steps, which a schedule needs.
        dtype: the dtype of the loss and its gradients. With "bfloat16" and "float16", parameters and moments
            are kept in float32 (master weights), and the loss reads copies in the shorter type.
        loss_scale: the rule for the factor of the loss; "auto" is `LossScale()` for float16, otherwise none.
        capture: whether to record the step as a CUDA graph, which needs compute capability 8.0 and batches of
            one shape. Matrix products then use symad's own kernel, because CuPy does not allow cuBLAS calls
            to be recorded.
        inputs: order and grouping of the arguments, as in `symad.trace`; a Python function needs them.

    Returns:
        A `TrainingStep`: ``step(*batch)`` is the loss before the step, a scalar array on the device.

    Raises:
        TraceError: the loss cannot be traced.
        EvaluationError: the parameters are not those of the graph or not finite, the optimizer has no
            kernels, or a schedule is given without ``steps``.
        GpuError: there is no usable GPU.

    Example:
        >>> import cupy as cp, symad.gpu, sympy
        >>> from symad.numeric.training.optimizers import SGD
        >>> w, x = sympy.symbols("w x", real=True)
        >>> step = symad.gpu.training_step((w - x) ** 2, {"w": 1.0}, SGD(0.5))
        >>> [step(cp.asarray(3.0, "float32")).item() for _ in range(2)]
        [4.0, 0.0]
    """
    if dtype not in DTYPES:
        raise EvaluationError(not_one_of("dtype", dtype, DTYPES))
    problem = Trainable.of(as_graph(loss, None, inputs), parameters)
    names = list(problem.arrays)
    if schedule is not None and not steps:
        raise EvaluationError("a schedule is prepared for a known number of steps: give steps")
    if clip is not None and not clip > 0:
        raise EvaluationError(f"clip={clip} must be positive: the largest norm of a gradient")
    factors = [float(schedule(k)) for k in range(steps or 0)] if schedule is not None else None
    if loss_scale == "auto":
        loss_scale = LossScale() if dtype == "float16" else None
    if loss_scale is not None and not isinstance(loss_scale, LossScale):
        raise EvaluationError(f'loss_scale={loss_scale!r}: give "auto", None or a LossScale')
    where = machine()
    if capture:
        check_recordable(where)
    with options(capture=capture):
        made = (value_and_gradient if loss_scale is None else pullback)(problem.loss, names)
        kernel = lower(made, backend="cupy", dtype=dtype)
    with explained(f"the step of {problem.loss.name}"):
        state = DeviceOptimizer(where, optimizer, problem.arrays, dtype, clip, loss_scale, factors)
        return TrainingStep(where, problem, kernel, state, dtype, loss_scale is not None, capture)


class TrainingStep:
    """A step of training; it is called with a batch. See `training_step`."""

    def __init__(
        self,
        where: Machine,
        problem: Trainable,
        kernel: Kernel,
        state: DeviceOptimizer,
        dtype: str,
        scaled: bool,
        capture: bool,
    ) -> None:
        self._kernel, self._optimizer, self._scaled = kernel, state, scaled
        self._problem = problem
        self._title = f"the step of {problem.loss.name}"
        self._recording = Recording(where, self._work, problem.data_inputs, dtype, self._title, capture)
        self._calls = 0

    def __call__(self, *batch: Array, **named: Array) -> Array:
        """Take one step, and return the loss before it, a device number in the type of the loss.

        The batch holds the arguments after the parameters, by position or by name.

        Raises:
            ShapeError: the shapes of a batch differ from the first batch's, and the step is recorded.
            TypeError: an array is not on the device.
            IndexError: an index of this or an earlier batch was out of range (see `check_indices`).
            GpuError: the step has an operation that cannot be recorded.
        """
        factors = self._optimizer.factors
        if factors is not None and self._calls >= len(factors):
            raise EvaluationError(
                f"the schedule ends after {len(factors)} steps; give more steps to training_step"
            )
        given = bind(self._title, self._problem.data, batch, named) if named else batch
        value = self._recording(self._problem.values(given, self._title))
        self._calls += 1
        return value

    def parameters(self) -> Array:
        """The current parameters in the given structure: device copies, in float32 or float64."""
        layout = self._optimizer.layout
        views = layout.views(self._optimizer.values)
        return self._problem.pack({k: v.copy() for k, v in zip(layout.names, views, strict=True)})

    def progress(self) -> dict[str, float]:
        """Steps, skipped steps, the factor of the loss, the norm of the last gradient; this waits."""
        found = dict(zip(STATE, self._optimizer.state.get().tolist(), strict=True))
        return {name: found[name] for name in ("number", "skipped", "scale", "norm")}

    def memory(self) -> dict[str, int]:
        """Bytes on the device: parameters and moments, the step's current use, and its maximum."""
        state = self._optimizer
        kept = [state.values, state.first, state.second, *([] if state.copy is None else [state.copy])]
        return {
            "parameters": sum(a.nbytes for a in kept),
            "in use": int(self._recording.pool.used_bytes()),
            "peak": int(self._recording.pool.total_bytes()),
        }

    def _work(self, *batch: Array) -> Array:
        """Launch the kernels of a step; return the loss before it."""
        state = self._optimizer
        seed = (state.seed.reshape(()),) if self._scaled else ()
        value, *gradients = self._kernel(*state.layout.views(state.read), *batch, *seed)
        state.step(gradients)
        return value

"""A small training layer: parameters are a dict of arrays, an optimiser is a few lines.

    graph = trace_model(model.loss, model.shapes, (N, d), (N,))
    result = train(graph, model.init(0), batches(X, y, size=32, seed=0), Adam(1e-3), steps=500)

The loss and its gradient are lowered once. A checkpoint is a NumPy .npz file of plain arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from symad import value_and_gradient
from symad.core.arguments import Argument, grouped_values, leaves_of
from symad.core.arrays import Array
from symad.core.graph import Graph
from symad.errors import EvaluationError
from symad.numeric.lowering import lower
from symad.numeric.training.checkpoints import read_checkpoint, write_checkpoint
from symad.numeric.training.optimisers import Arrays, Optimiser, State, clip_gradients
from symad.numeric.training.schedules import Rate, staircase, warmup_cosine, warmup_root

__all__ = ["Rate", "Trained", "batches", "refuse_nan", "staircase", "train", "warmup_cosine", "warmup_root"]


@dataclass(frozen=True)
class Trained:
    """What training leaves: parameters, the optimiser's state, and the loss of every step."""

    parameters: Any
    state: State = field(repr=False)
    losses: list[float] = field(repr=False)


def train(
    loss: Graph,
    parameters: Any,
    data: Iterable[tuple[Any, ...]],
    optimiser: Optimiser,
    steps: int,
    clip: float | None = None,
    schedule: Rate | None = None,
    progress: bool = False,
    checkpoint: str | Path | None = None,
    every: int = 100,
    resume: bool = False,
    dtype: str = "float64",
) -> Trained:
    """Minimise a loss over minibatches.

    Args:
        loss: a scalar graph whose inputs are the parameters, by name and in order, then the data; or whose
            first argument is a structure of parameters.
        parameters: initial values, a dict by name or such a structure; they are not changed in place.
        data: one tuple of arrays for each step; see `batches`. When training resumes, the tuples of the
            steps done are passed over, so that the run is the one that was interrupted.
        optimiser: `SGD`, `Adam` or `adamw` of `symad.numeric.training.optimisers`.
        steps: how many steps in all, those before a checkpoint included.
        clip: gradients of larger norm, of all parameters together, are scaled down to it.
        schedule: a factor of the learning rate for each step; see `symad.numeric.training.schedules`.
        progress: show a bar with the loss.
        checkpoint: an .npz file written every ``every`` steps and at the end.
        every: steps between checkpoints.
        resume: go on from the checkpoint if it exists.
        dtype: the precision of the generated code.

    Raises:
        EvaluationError: parameters that are not the graph's, NaN in parameters or data, a loss or a
            gradient that is no longer finite, too little data, or a checkpoint of another model.
    """
    if loss.grouping:
        flat, arrays, first = _by_name(loss, parameters)
        made = train(
            flat, arrays, data, optimiser, steps, clip, schedule, progress, checkpoint, every, resume, dtype
        )
        (tree,) = grouped_values((first,), list(made.parameters.values()), lambda array: array)
        return replace(made, parameters=tree)
    _check_parameters(loss, parameters)
    if steps < 0 or every < 1 or (clip is not None and not clip > 0):
        raise EvaluationError(f"train with steps={steps}, every={every}, clip={clip}: need ≥ 0, ≥ 1, > 0")
    names = list(parameters)
    kernel = lower(value_and_gradient(loss, names), dtype=dtype)
    values: Arrays = {k: np.array(v, dtype=dtype) for k, v in parameters.items()}
    state = optimiser.start(values)
    losses: list[float] = []
    if resume and checkpoint is not None and Path(checkpoint).exists():
        values, state, losses = read_checkpoint(checkpoint, values, state)
    stream = iter(data)
    _skip(stream, len(losses))
    with _bar(steps, len(losses)) if progress else nullcontext(_silent) as show:
        for number in range(len(losses), steps):
            batch = _next(stream, number)
            _check_data(loss, len(names), batch)
            value, *slopes = kernel(*values.values(), *batch)
            if not math.isfinite(value):
                raise EvaluationError(
                    f"the loss is {value} at step {number}; lower the learning rate or give clip"
                )
            for name, slope in zip(names, slopes, strict=True):
                refuse_nan(f"at step {number} the gradient by {name}", slope, "lower the learning rate")
            gradients = clip_gradients(dict(zip(names, slopes, strict=True)), clip)
            factor = 1.0 if schedule is None else schedule(number)
            values, state = optimiser.step(values, gradients, state, factor)
            losses.append(float(value))
            show(losses[-1])
            if checkpoint is not None and (number + 1) % every == 0:
                write_checkpoint(checkpoint, values, state, losses)
    if checkpoint is not None:
        write_checkpoint(checkpoint, values, state, losses)
    return Trained(values, state, losses)


def batches(*arrays: Array, size: int, seed: int = 0, axis: int = 0) -> Iterator[tuple[Any, ...]]:
    """Minibatches without end: all samples once, in random order, then all again in another.

    The samples lie along ``axis``, the same number in every array; a remainder smaller than a batch is left
    for the next round.

    Raises:
        EvaluationError: arrays of different length, a batch larger than the data, or NaN in it.
    """
    lengths = {np.shape(a)[axis] for a in arrays}
    if len(lengths) != 1 or not 1 <= size <= min(lengths):
        raise EvaluationError(
            f"batches of {size} from arrays with {', '.join(map(str, sorted(lengths)))} samples: the arrays "
            "need one length, at least that of a batch"
        )
    for k, array in enumerate(arrays):
        refuse_nan(f"data array {k}", array)
    return _rounds([np.asarray(a) for a in arrays], lengths.pop(), size, seed, axis)


def _rounds(arrays: list[Array], length: int, size: int, seed: int, axis: int) -> Iterator[tuple[Any, ...]]:
    rng = np.random.default_rng(seed)
    while True:
        order = rng.permutation(length)
        for start in range(0, length - size + 1, size):
            chosen = order[start : start + size]
            yield tuple(np.take(a, chosen, axis=axis) for a in arrays)


def refuse_nan(name: str, array: Array, advice: str = "clean the data first") -> None:
    """Find what is not a number before it spoils everything.

    Raises:
        EvaluationError: NaN or infinity in the array, with its position.
    """
    values = np.asarray(array)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        place = tuple(int(k) for k in np.argwhere(~np.isfinite(values))[0])
        raise EvaluationError(f"{name} holds {values[place]} at {place}; {advice}")


def _by_name(loss: Graph, parameters: Any) -> tuple[Graph, Arrays, Argument]:
    """The loss as a function of its inputs, the parameters by name, and the argument that holds them."""
    first, *others = loss.arguments
    if any(argument.structure is not None for argument in others):
        raise EvaluationError(
            f"of the arguments of {loss.name} only the first may be a structure, that of the parameters"
        )
    arrays = leaves_of(first.structure, parameters, first.name)
    flat = Graph(loss.input_nodes, loss.output_nodes, loss.structure, loss.name, loss.report)
    return flat, dict(zip(map(str, loss.inputs), arrays, strict=False)), first


def _check_parameters(loss: Graph, parameters: Arrays) -> None:
    inputs = [str(s) for s in loss.inputs[: len(parameters)]]
    if inputs != list(parameters):
        raise EvaluationError(
            f"the parameters are {', '.join(parameters)}, but the inputs of {loss.name} "
            f"begin with {', '.join(inputs)}"
        )
    for name, value in parameters.items():
        refuse_nan(f"the parameter {name}", value)


def _check_data(loss: Graph, skip: int, batch: tuple[Array, ...]) -> None:
    wanted = loss.inputs[skip:]
    if len(batch) != len(wanted):
        raise EvaluationError(
            f"a batch of {len(batch)} arrays for {loss.name}, whose data are "
            f"{', '.join(map(str, wanted)) or 'none'}"
        )
    for symbol, array in zip(wanted, batch, strict=True):
        refuse_nan(str(symbol), array)


def _skip(stream: Iterator[Any], done: int) -> None:
    for number in range(done):
        _next(stream, number)


def _next(stream: Iterator[Any], number: int) -> tuple[Array, ...]:
    for batch in stream:
        return tuple(batch)
    raise EvaluationError(f"the data end before step {number}; give as many batches as steps")


def _silent(loss: float) -> None:
    """No bar."""


class _bar:
    """A rich progress bar that shows the loss, smoothed."""

    def __init__(self, steps: int, done: int) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = TextColumn("loss {task.fields[loss]:.4f}"), BarColumn(), TimeRemainingColumn()
        self._progress = Progress(*columns)
        self._task = self._progress.add_task("", total=steps, completed=done, loss=math.nan)
        self._smooth = math.nan

    def __enter__(self) -> Callable[[float], None]:
        self._progress.__enter__()
        return self._show

    def __exit__(self, *error: Any) -> None:
        self._progress.__exit__(*error)

    def _show(self, loss: float) -> None:
        old = self._smooth
        self._smooth = loss if math.isnan(old) else 0.95 * old + 0.05 * loss
        self._progress.update(self._task, advance=1, loss=self._smooth)

"""A small training layer: parameters are a structure of arrays, an optimizer is a few lines.

    graph = trace_model(model.loss, model.shapes, (N, d), (N,))
    result = train(graph, model.init(0), batches(X, y, size=32, seed=0), Adam(1e-3), steps=500)

The loss and its gradient are lowered once. A checkpoint is a NumPy .npz file of plain arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from symad import value_and_gradient
from symad.core.arrays import Array
from symad.core.given import renamed
from symad.core.signatures import Inputs, Traceable, Tree
from symad.errors import EvaluationError
from symad.numeric.lowering import lower
from symad.numeric.training.checkpoints import read_checkpoint, write_checkpoint
from symad.numeric.training.optimizers import Arrays, Optimizer, State, clip_gradients
from symad.numeric.training.parameters import Batch, Trainable, refuse_nan
from symad.numeric.training.schedules import Rate, staircase, warmup_cosine, warmup_root
from symad.tracing import as_graph

__all__ = ["Rate", "Trained", "batches", "refuse_nan", "staircase", "train", "warmup_cosine", "warmup_root"]


@dataclass(frozen=True)
class Trained:
    """The result of training: parameters, the optimizer's state, and the loss of every step."""

    parameters: Any
    state: State = field(repr=False)
    losses: list[float] = field(repr=False)


@renamed(optimiser="optimizer")
def train(
    loss: Traceable,
    parameters: Tree,
    data: Iterable[Batch],
    optimizer: Optimizer,
    steps: int,
    clip: float | None = None,
    schedule: Rate | None = None,
    progress: bool = False,
    checkpoint: str | Path | None = None,
    every: int = 100,
    resume: bool = False,
    dtype: str = "float64",
    inputs: Inputs | None = None,
) -> Trained:
    """Minimize a loss over minibatches.

    Args:
        loss: a scalar function, in any form that `symad.trace` takes; its first arguments are parameters, the
            others data.
        parameters: initial values: a dict with the names of the first arguments in order, or the value of
            the first one alone. An argument may be a structure of arrays. They are not changed in place.
        data: for each step the values of the other arguments, a tuple or a dict by name; see `batches`. When
            training resumes, the data of completed steps are skipped, so that the run equals an uninterrupted
            one.
        optimizer: `SGD`, `Adam` or `adamw` of `symad.numeric.training.optimizers`.
        steps: the total number of steps, including those before a checkpoint.
        clip: gradients with a larger norm, over all parameters together, are scaled down to this norm.
        schedule: a factor of the learning rate for each step; see `symad.numeric.training.schedules`.
        progress: show a bar with the loss.
        checkpoint: an .npz file written every ``every`` steps and at the end.
        every: steps between checkpoints.
        resume: go on from the checkpoint if it exists.
        dtype: the precision of the generated code.
        inputs: order and grouping of the arguments, as in `symad.trace`; a Python function needs them.

    Raises:
        EvaluationError: the parameters are not those of the graph, parameters or data contain NaN, a loss or
            gradient is no longer finite, there are too few data, or a checkpoint is of another model.
    """
    problem = Trainable.of(as_graph(loss, None, inputs), parameters)
    if steps < 0 or every < 1 or (clip is not None and not clip > 0):
        raise EvaluationError(
            f"train: steps={steps} must be at least 0, every={every} at least 1, and clip={clip} positive "
            "or None"
        )
    names = list(problem.arrays)
    kernel = lower(value_and_gradient(problem.loss, names), dtype=dtype)
    values: Arrays = {k: np.array(v, dtype=dtype) for k, v in problem.arrays.items()}
    state = optimizer.start(values)
    losses: list[float] = []
    if resume and checkpoint is not None and Path(checkpoint).exists():
        values, state, losses = read_checkpoint(checkpoint, values, state)
    stream = iter(data)
    _skip(stream, len(losses))
    with _bar(steps, len(losses)) if progress else nullcontext(_silent) as show:
        for number in range(len(losses), steps):
            batch = problem.batch(_next(stream, number))
            value, *slopes = kernel(*values.values(), *batch)
            if not math.isfinite(value):
                raise EvaluationError(
                    f"the loss is {value} at step {number}; lower the learning rate or give clip"
                )
            for name, slope in zip(names, slopes, strict=True):
                refuse_nan(f"at step {number} the gradient by {name}", slope, "lower the learning rate")
            gradients = clip_gradients(dict(zip(names, slopes, strict=True)), clip)
            factor = 1.0 if schedule is None else schedule(number)
            values, state = optimizer.step(values, gradients, state, factor)
            losses.append(float(value))
            show(losses[-1])
            if checkpoint is not None and (number + 1) % every == 0:
                write_checkpoint(checkpoint, values, state, losses)
    if checkpoint is not None:
        write_checkpoint(checkpoint, values, state, losses)
    return Trained(problem.pack(values), state, losses)


def batches(*arrays: Array, size: int, seed: int = 0, axis: int = 0) -> Iterator[tuple[np.ndarray, ...]]:
    """Endless minibatches: in every round each sample is used once, in a new random order.

    The samples lie along ``axis``, equally many in every array. A remainder smaller than a batch is left out
    of a round.

    Raises:
        EvaluationError: the arrays differ in length, a batch is larger than the data, or the data hold NaN.
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


def _rounds(
    arrays: list[Array], length: int, size: int, seed: int, axis: int
) -> Iterator[tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(seed)
    while True:
        order = rng.permutation(length)
        for start in range(0, length - size + 1, size):
            chosen = order[start : start + size]
            yield tuple(np.take(a, chosen, axis=axis) for a in arrays)


def _skip(stream: Iterator[Batch], done: int) -> None:
    for number in range(done):
        _next(stream, number)


def _next(stream: Iterator[Batch], number: int) -> Batch:
    for batch in stream:
        return batch
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

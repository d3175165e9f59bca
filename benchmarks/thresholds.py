"""What a threshold is worth: the time of code with the change that it allows, over the time without.

A case is a function whose size varies around the threshold. Its code is made twice, with the threshold so low
that the change applies and so high that it does not. Both kinds of code take turns, on one thread; the ratio
is the median of the rounds' ratios of process CPU times. Below 1, the change pays at this size. A size whose
code is the same both times is not shown. Thresholds that are sizes of blocks are compared with the value in
force. The files `bench_*_thresholds.py` hold the cases.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import argparse  # noqa: E402
import importlib  # noqa: E402
import statistics  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable, Iterator, Mapping, Sequence  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from functools import partial  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

import symad  # noqa: E402
from benchmarks.machine import measured_on  # noqa: E402
from symad.numeric import lower  # noqa: E402

NEVER = 2**62
SLICE = 0.02
"""Seconds of one turn; a call that takes longer is run once."""

Made = tuple[Callable[..., Any], Sequence[tuple[int, ...]], Sequence[int] | None]
"""A function, the shapes of its arguments, and the arguments of which the gradient is taken, if it is."""


@dataclass(frozen=True)
class Timed:
    """A call that is timed, and what tells whether two of them run the same code (None: they never do)."""

    call: Callable[[], Any]
    code: object = None


@dataclass(frozen=True)
class Case:
    """Thresholds (modules under symad.numeric, and names in them), and a function whose size varies.

    ``on`` and ``off`` are the values with which the change applies and does not; for a block, ``on`` is None:
    the value tried is the size, and ``off`` is the value in force.
    """

    names: tuple[str, ...]
    sizes: Sequence[int]
    make: Callable[[int], Made | Timed]
    on: float | None = 0
    off: float = NEVER
    backend: str = "numpy"


@contextmanager
def set_to(case: Case, value: float) -> Iterator[None]:
    """The thresholds of a case set to a value."""
    paths = [name.rsplit(".", 1) for name in case.names]
    places = [(importlib.import_module(f"symad.numeric.{module}"), name) for module, name in paths]
    before = [getattr(module, name) for module, name in places]
    for module, name in places:
        setattr(module, name, value)
    yield
    for (module, name), old in zip(places, before, strict=True):
        setattr(module, name, old)


def timed(case: Case, size: int, value: float) -> Timed:
    """The code of a case at a size, made and called once with the thresholds set to a value."""
    with set_to(case, value):
        made = case.make(size)
        if isinstance(made, Timed):
            made.call()
            return made
        function, shapes, wrt = made
        graph = symad.trace(function, list(shapes))
        kernel = lower(graph if wrt is None else symad.value_and_gradient(graph, list(wrt)), case.backend)
        rng = np.random.default_rng(0)
        call = partial(kernel, *(rng.uniform(0.1, 0.9, shape) for shape in shapes))
        call()
    return Timed(call, (kernel.source, kernel.c_source))


def seconds(call: Callable[[], Any], count: int) -> float:
    """Process CPU time of some calls."""
    start = time.process_time()
    for _ in range(count):
        call()
    return time.process_time() - start


def ratio(one: Callable[[], Any], other: Callable[[], Any], rounds: int) -> float:
    """The median ratio of the times of two calls that take turns."""
    counts = [max(1, int(SLICE / max(seconds(call, 5) / 5, 1e-7))) for call in (one, other)]
    found = []
    for _ in range(rounds):
        first, second = seconds(one, counts[0]) / counts[0], seconds(other, counts[1]) / counts[1]
        found.append(first / second)
    return statistics.median(found)


def measured(case: Case, rounds: int) -> Iterator[tuple[int, float]]:
    """The sizes whose code differs, with the ratios of their times."""
    for size in case.sizes:
        values = (size if case.on is None else case.on, case.off)
        one, other = (timed(case, size, value) for value in values)
        if one.code is None or one.code != other.code:
            yield size, ratio(one.call, other.call, rounds)


def main(cases: Mapping[str, Case]) -> None:
    """Measure the cases that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("names", nargs="*", help=f"parts of names: {', '.join(cases)}")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    print("  ".join(f"{k} {v}" for k, v in measured_on("numpy", "mkl").items()), flush=True)
    for name, case in cases.items():
        if options.names and not any(part in name for part in options.names):
            continue
        shown = [f"{size}: {found:.2f}" for size, found in measured(case, options.rounds)]
        print(f"{name}, {case.names[0].rsplit('.', 1)[1]}:  {'  '.join(shown)}", flush=True)

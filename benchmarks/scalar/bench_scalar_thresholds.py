"""What thresholds of scalar code are worth: time with the change they allow, over time without.

    python benchmarks/scalar/bench_scalar_thresholds.py [NAME ...] [--rounds 15]

A case is a function whose size varies around the threshold. It is lowered twice, with the threshold so high
that the change does not apply and so low that it does, and called at one point of floats. Both kernels take
turns, on one thread; the ratio is the median of the rounds' ratios of process CPU times. Below 1, the change
pays at this size.

The numbers beside the thresholds in numeric/ are from one thread of an Intel Xeon, Python 3.11, 28 November
2026, medians of 15 rounds on a machine with other load.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import sympy

import symad
from symad.numeric import lower

NEVER = 2**62
SLICE = 0.02
"""Seconds of one turn."""


def zeros(size: int) -> symad.Graph:
    """An array of ``size`` entries, of which three in four are 0."""
    return array_with_zeros(size, 12)


def half_zeros(size: int) -> symad.Graph:
    """An array of ``size`` entries, of which 9 in 16 are 0."""
    return array_with_zeros(size, 9)


def array_with_zeros(size: int, zeros_in_16: int) -> symad.Graph:
    """An array of linear functions of two numbers."""
    x, y = sympy.symbols("x y", real=True)
    entries = [0 if k * 7 % 16 < zeros_in_16 else x + k * y for k in range(size)]
    return symad.trace(sympy.Array(entries), [x, y])


Case = tuple[str, str, Callable[[int], symad.Graph], Sequence[int]]

CASES: dict[str, Case] = {
    "places": ("targets.point_and_batch", "MIN_ENTRIES_FOR_PLACES", zeros, (8, 16, 32, 64, 128, 256)),
    "half": ("targets.point_and_batch", "MIN_ENTRIES_FOR_PLACES", half_zeros, (16, 32, 64, 128, 256)),
}


def seconds(kernel: Callable[..., Any], point: Sequence[float], calls: int) -> float:
    """The process CPU time of some calls."""
    start = time.process_time()
    for _ in range(calls):
        kernel(*point)
    return time.process_time() - start


def ratio(case: Case, size: int, rounds: int) -> tuple[float, float]:
    """Microseconds of a call without the change, and the ratio of the time with it to that."""
    module, name, make, _ = case
    owner = importlib.import_module(f"symad.numeric.{module}")
    given, kernels = getattr(owner, name), []
    for value in (NEVER, 0):
        setattr(owner, name, value)
        kernels.append(lower(make(size)))
    setattr(owner, name, given)
    point = [1.0 + k for k in range(len(make(size).inputs))]
    calls = max(1, int(SLICE / max(seconds(kernels[0], point, 20) / 20, 1e-8)))
    turns = [[seconds(kernel, point, calls) for kernel in kernels] for _ in range(rounds)]
    without = statistics.median(turn[0] for turn in turns) / calls
    return 1e6 * without, statistics.median(turn[1] / turn[0] for turn in turns)


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*", help=f"parts of names: {', '.join(CASES)}")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    for name, case in CASES.items():
        if not given.names or any(part in name for part in given.names):
            print(f"{name}: {case[0]}.{case[1]}")
            for size in case[3]:
                microseconds, made = ratio(case, size, given.rounds)
                print(f"{size:8d}{microseconds:10.2f} us{made:8.2f}", flush=True)


if __name__ == "__main__":
    main()

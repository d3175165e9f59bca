"""Schedules: factors of the learning rate, as functions of the step number, which starts at 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from symad.errors import EvaluationError

Rate: TypeAlias = "Callable[[int], float]"


def warmup_cosine(warmup: int, steps: int, floor: float = 0.0) -> Rate:
    """A factor that rises linearly to 1 in ``warmup`` steps, then falls along a cosine to ``floor``.

        (k + 1) / w for k < w,   floor + (1 − floor) (1 + cos(π (k − w) / (steps − w))) / 2 after.

    Source: Loshchilov & Hutter, "SGDR" (2017), equation 5, without restarts.
    """
    _check(warmup, "warmup", 0)

    def factor(number: int) -> float:
        if number < warmup:
            return (number + 1) / warmup
        done = min(1.0, (number - warmup) / max(1, steps - warmup))
        return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * done))

    return factor


def warmup_root(warmup: int) -> Rate:
    """A factor that rises linearly to 1 in ``warmup`` steps, then falls as 1/√k.

        min((k + 1) / w, √(w / (k + 1))).

    Source: Vaswani et al., "Attention is all you need" (2017), equation 3, divided by its largest value.
    """
    _check(warmup, "warmup", 1)

    def factor(number: int) -> float:
        return min((number + 1) / warmup, math.sqrt(warmup / (number + 1)))

    return factor


def staircase(every: int, drop: float = 0.1) -> Rate:
    """A factor that is multiplied by ``drop`` after each ``every`` steps: drop^⌊k / every⌋."""
    _check(every, "every", 1)

    def factor(number: int) -> float:
        return float(drop ** (number // every))

    return factor


def _check(value: int, name: str, least: int) -> None:
    if value < least:
        raise EvaluationError(f"a schedule with {name}={value}: it must be at least {least}")

"""Family S7: arrays whose rows have different domains, combined by gather, stack and products.

The same Python function is traced by symad and run on arrays of mpmath numbers.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np

import symad
from tests.pairs.pair import Pair
from tests.pairs.values import CLOSE, DIGITS


def _elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    def real(*values: Any) -> Any:
        try:
            found = function(*values)
        except (ValueError, ZeroDivisionError):
            return mpmath.nan
        return mpmath.nan if isinstance(found, mpmath.mpc) else found

    return np.frompyfunc(real, 1, 1)


NUMBERS = SimpleNamespace(
    log=_elementwise(mpmath.log), exp=_elementwise(mpmath.exp), sqrt=_elementwise(mpmath.sqrt),
    abs=_elementwise(abs), arccosh=_elementwise(mpmath.acosh), maximum=lambda a, b: np.where(a > b, a, b),
)  # fmt: skip
TRACED = SimpleNamespace(
    log=np.log, exp=np.exp, sqrt=np.sqrt, abs=np.abs, arccosh=np.arccosh, maximum=np.maximum
)

ROWS = [
    lambda m, x, w: m.log(x), lambda m, x, w: m.sqrt(x), lambda m, x, w: m.log(w),
    lambda m, x, w: x * m.sqrt(w),
    lambda m, x, w: m.log(x * w), lambda m, x, w: m.arccosh(x + 1), lambda m, x, w: m.exp(w),
    lambda m, x, w: 1 / (1 + m.sqrt(x + w)),
]  # fmt: skip

CLAIMS = [
    (lambda m, x, w: m.maximum(x, 0 * x), lambda m, x, w: x, lambda m, x, w: (x + m.abs(x)) / 2),
    (lambda m, x, w: m.abs(x), lambda m, x, w: x, lambda m, x, w: m.sqrt(x * x)),
    (lambda m, x, w: m.maximum(x + w, 0 * x), lambda m, x, w: x + w,
     lambda m, x, w: (x + w + m.abs(x + w)) / 2),
    (lambda m, x, w: m.sqrt(x * x * (1 + w * w)), lambda m, x, w: x * m.sqrt(1 + w * w),
     lambda m, x, w: m.abs(x) * m.sqrt(1 + w * w)),
    (lambda m, x, w: m.log(x * x), lambda m, x, w: 2 * m.log(m.abs(x)), lambda m, x, w: m.log(m.abs(x)) * 2),
]  # fmt: skip
"""(f, right where x > 0 and w > 0, right everywhere)."""

POINTS = 200
"""The smallest region in which two sides differ, x < −w < 0, contains an eighth of the points."""


def gathered(rng: random.Random) -> Pair | None:
    """Rows of different domains: stacked, and gathered, summed, sliced or multiplied."""
    rows = rng.sample(ROWS, rng.choice([1, 2]))
    f, wrong, right = rng.choice(CLAIMS)
    other = wrong if rng.random() < 0.6 else right
    place, count = rng.randrange(len(rows) + 1), len(rows) + 1
    order = [rng.randrange(count) for _ in range(count + 1)]
    kind = rng.choice(["stack", "gather", "sum", "some", "weights", "slice", "concatenate"])
    weights = np.array([[rng.choice([1.0, 2.0, -1.0]) for _ in range(count)] for _ in range(2)])

    def side(m: Any, last: Any, x: Any, w: Any) -> Any:
        parts = [row(m, x, w) for row in rows]
        parts.insert(place, last(m, x, w))
        if kind == "concatenate":
            return np.concatenate([np.reshape(p, (-1,)) for p in parts])[np.array(order)]
        table = np.stack(parts)
        if kind == "gather":
            return table[np.array(order)]
        if kind == "sum":
            return np.sum(table, axis=0)
        if kind == "some":
            return table[np.array([place])]
        if kind == "weights":
            return weights @ table
        return table[1:] if kind == "slice" else table

    shape = rng.choice([(), (2,)])
    found = _differ(side, f, other, shape, rng)
    if found is None:
        return None
    left, mirrored = (
        symad.trace(lambda x, w, last=last: side(TRACED, last, x, w), [shape, shape]) for last in (f, other)
    )
    text = f"{kind} of rows {[ROWS.index(r) for r in rows]} with claim {CLAIMS.index((f, wrong, right))}"
    text += f"{' (its false right side)' if other is wrong else ''} at {place}, order {order}, shape {shape}"
    return Pair("S7 rows of different domains", left, mirrored, not found, text)


def _differ(side: Any, f: Any, g: Any, shape: tuple[int, ...], rng: random.Random) -> bool | None:
    """True if the sides differ at one of many points; None if an element has no value at any."""
    met: Any = None
    with mpmath.workdps(DIGITS):
        for _ in range(POINTS):
            x, w = (
                np.array([_number(rng) for _ in range(int(np.prod(shape)))] + [0], dtype=object)[:-1].reshape(
                    shape
                )
                for _ in range(2)
            )
            u, v = (np.ravel(np.asarray(side(NUMBERS, last, x, w), dtype=object)) for last in (f, g))
            good = np.array(
                [bool(mpmath.isfinite(a) and mpmath.isfinite(b)) for a, b in zip(u, v, strict=True)]
            )
            met = good if met is None else met | good
            if any(
                abs(a - b) > CLOSE * max(abs(a), abs(b), 1) for a, b, ok in zip(u, v, good, strict=True) if ok
            ):
                return True
    return False if met.all() else None


def _number(rng: random.Random) -> Any:
    return mpmath.mpf(rng.randrange(1, 3000)) / 997 * rng.choice([1, -1])

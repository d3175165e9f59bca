"""Hostile points of scalar functions, with values and derivatives by mpmath.

Derivatives are central differences, with steps relative to the point (or of its own size, where functions
oscillate), at a precision that is raised until two results agree in 18 digits.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from math import comb, isnan, nan, nextafter, prod
from typing import Any

import mpmath as mp
from mpmath.libmp import NoConvergence

from tests.numeric.agreement.agreement_cases import CASES
from tests.numeric.agreement.function_cases import FEW, Case

SIZES = (2.0**-1020, 1e-300, 1e-160, 1e-20, 1e20, 1e160, 1e300)
ENDS = (1.0, nextafter(1.0, 0.0), nextafter(1.0, 2.0))
SATURATED = (17.5, 40.0, 90.0, 700.0, 745.5)
POINTS = (0.0, *(s * v for v in (*SIZES, *ENDS, *SATURATED) for s in (1.0, -1.0)))
"""Zero, tiny and huge arguments, both sides of the ends of domains, and where exponentials saturate."""

SINGLE_SIZES = (2.0**-120, 1e-36, 1e-20, 1e20, 1e36)
SINGLE_ENDS = (1.0, 1.0 - 2.0**-24, 1.0 + 2.0**-23)
SINGLE_POINTS = (
    0.0,
    *(s * v for v in (*SINGLE_SIZES, *SINGLE_ENDS, 17.5, 85.0, 105.5) for s in (1.0, -1.0)),
)
"""The same for single precision."""

PAIRS = (
    (0.0, 1.5), (1.5, 0.0), (1e-300, 1.5), (1.5, 1e-300), (1e-140, 1e-140), (1e160, 1e160),
    (-1e160, 1e160), (1e160, 1.5), (1.5, 1e160), (1e300, 1e-300), (1e-140, -1e-20), (17.5, -40.0),
    (-700.0, 40.0), (745.5, 1.5),
)  # fmt: skip
SINGLE_PAIRS = (
    (0.0, 1.5), (1.5, 0.0), (1e-36, 1.5), (1.5, 1e-36), (1e-18, 1e-18), (1e20, 1e20), (-1e20, 1e20),
    (1e20, 1.5), (1.5, 1e20), (1e36, 1e-36), (1e-18, -1e-12), (17.5, -40.0), (-85.0, 40.0), (105.5, 1.5),
)  # fmt: skip
"""The same of two arguments."""

PRECISIONS = (60, 150, 400, 1000, 2200)
"""Decimal digits of a reference, one after the other; the first three of special functions."""

SLOW = ("erf", "erfc", "erfi", "gelu", "log_ndtr")
"""Other functions that mpmath computes slowly with many digits."""


@cache
def reference(name: str, point: tuple[float, ...], order: tuple[int, ...]) -> float:
    """The derivative of an order by each argument, rounded; NaN where mpmath finds none on the real line."""
    below = [tuple(o - (i == k) for i, o in enumerate(order)) for k in range(len(order)) if order[k]]
    if any(isnan(reference(name, point, lower)) for lower in below):
        return nan  # differences around a pole may have a limit
    for relative in (True, False) if max(map(abs, point)) > 1e10 and sum(order) else (True,):
        value = _converged(name, point, order, relative)
        if not isnan(value):
            return value
    return nan


def _converged(name: str, point: tuple[float, ...], order: tuple[int, ...], relative: bool) -> float:
    case, seen = CASES[name], []
    precisions = PRECISIONS[: 3 if case.digits == FEW or name in SLOW else None]
    for digits in precisions:
        with mp.workdps(digits):
            value = _difference(case, point, order, relative)
            if value is None:  # outside of the domain, perhaps by a step
                continue
            if seen and value and abs(value - seen[-1]) <= mp.mpf(10) ** -18 * abs(value):
                return float(value)
            seen.append(value)
    constant = len(seen) == len(PRECISIONS) and not any(seen)
    return 0.0 if constant else nan


def _difference(case: Case, point: tuple[float, ...], order: tuple[int, ...], relative: bool) -> Any:
    """A difference quotient; 0 if the difference has no digits, None where the function has no value."""
    digits = mp.mp.dps
    sizes = [(abs(mp.mpf(v)) or 1) if relative else mp.mpf(1) for v in point]
    steps = [size * mp.mpf(10) ** (-digits // 6) for size in sizes]
    total, largest = mp.mpf(0), mp.mpf(0)
    try:
        for shift in product(*[range(o + 1) for o in order]):
            moved = zip(point, order, shift, steps, strict=True)
            value = case.exact(*[mp.mpf(v) + (mp.mpf(o) / 2 - k) * h for v, o, k, h in moved])
            if mp.im(value) or not mp.isfinite(value):
                return None
            weight = (-1) ** sum(shift) * prod(comb(o, k) for o, k in zip(order, shift, strict=True))
            total += weight * mp.re(value)
            largest = max(largest, abs(value))
    except (ValueError, ZeroDivisionError, OverflowError, NoConvergence, TypeError):
        return None
    if abs(total) < largest * mp.mpf(10) ** (-0.8 * digits):
        return mp.mpf(0)
    return total / prod(h**o for h, o in zip(steps, order, strict=True))


def condition(name: str, point: tuple[float, ...], order: tuple[int, ...]) -> float:
    """The largest |x_i ∂_i| of a derivative: what a relative change of an argument changes."""
    found = []
    for k, x in enumerate(point):
        above = tuple(o + (i == k) for i, o in enumerate(order))
        slope = reference(name, point, above)
        if isnan(slope):
            with mp.workdps(PRECISIONS[2]):
                slope = _difference(CASES[name], point, above, True)
        found.append(abs(x * float(slope or 0)))
    return max(found)

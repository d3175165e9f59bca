"""Hostile points of scalar functions, with values and derivatives by mpmath.

Differences of high order are taken with steps relative to the point, at a precision that is raised until two
results agree in 40 digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import product
from math import comb, nan, nextafter, prod
from typing import Any

import mpmath as mp
from mpmath.libmp import NoConvergence

from tests.numeric.agreement.function_cases import BINARY, FEW, NUMPY, SYMPY, Case
from tests.numeric.agreement.special_cases import ALSO_BINARY, ALSO_NUMPY, ALSO_NUMPY_PAIRS, SPECIAL

ONE_ARGUMENT = SYMPY | SPECIAL | NUMPY | ALSO_NUMPY
TWO_ARGUMENTS = BINARY | ALSO_BINARY | ALSO_NUMPY_PAIRS

CASES: dict[str, Case] = ONE_ARGUMENT | TWO_ARGUMENTS

SIZES = (2.0**-1020, 1e-300, 1e-160, 1e-20, 1e20, 1e160, 1e300)
ENDS = (1.0, nextafter(1.0, 0.0), nextafter(1.0, 2.0))
SATURATED = (17.5, 40.0, 90.0, 700.0, 745.5)
POINTS = (0.0, *(s * v for v in (*SIZES, *ENDS, *SATURATED) for s in (1.0, -1.0)))
"""Zero, tiny and huge arguments, both sides of the ends of domains, and where exponentials saturate."""

PRECISIONS = (60, 150, 400, 1000, 2200)
"""Decimal digits at which a reference is computed, one after the other."""


@cache
def reference(name: str, point: tuple[float, ...], order: tuple[int, ...]) -> float:
    """The derivative of an order by each argument, rounded; NaN where mpmath finds none on the real line."""
    case = CASES[name]
    if sum(order) and math.isnan(reference(name, point, (0,) * len(point))):
        return nan  # differences around a pole may have a limit
    last, seen = None, []
    for digits in PRECISIONS[: 3 if case.digits == FEW else None]:
        with mp.workdps(digits):
            value = _difference(case.exact, point, order, digits)
            if value is None:  # outside of the domain, perhaps by a step
                continue
            seen.append(value)
            if value and last and abs(value - last) <= mp.mpf(10) ** -25 * abs(value):
                return float(value)
            last = value
    return nan if any(seen) or len(seen) < len(PRECISIONS) else 0.0


def _difference(
    function: Callable[..., Any], point: tuple[float, ...], order: tuple[int, ...], digits: int
) -> Any:
    steps = [mp.mpf(10) ** (-digits // 6) * (abs(mp.mpf(v)) or 1) for v in point]
    total, largest = mp.mpf(0), mp.mpf(0)
    try:
        for shift in product(*[range(o + 1) for o in order]):
            at = [
                mp.mpf(v) + (mp.mpf(o) / 2 - k) * h
                for v, o, k, h in zip(point, order, shift, steps, strict=True)
            ]
            weight = (-1) ** sum(shift) * prod(comb(o, k) for o, k in zip(order, shift, strict=True))
            value = function(*at)
            if mp.im(value):
                return None
            total += weight * mp.re(value)
            largest = max(largest, abs(value))
    except (ValueError, ZeroDivisionError, OverflowError, NoConvergence, TypeError):
        return None
    if abs(total) < largest * mp.mpf(10) ** (-0.8 * digits):  # without digits
        return mp.mpf(0)
    value = total / prod(h**o for h, o in zip(steps, order, strict=True))
    return value if mp.isfinite(value) else None

"""f(x + y) − f(x) and its slope by x at hostile points: no finite value becomes NaN, hardly one is worse."""

import random
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import lower

X, Y = sp.symbols("x y", real=True)
NAMES = ["exp", "log", "sin", "tan", "sec", "csc", "cot", "asin", "acos", "atan", "erf", "erfc", "sqrt"]
NAMES += ["sinh", "cosh", "tanh", "sech", "asinh", "acosh", "atanh"]
FUNCTIONS: dict[str, Any] = {
    **{name: getattr(sp, name) for name in NAMES},
    "1/u": lambda u: 1 / u,
    "1/u²": lambda u: 1 / u**2,
    "u³": lambda u: u**3,
    "u^(7/5)": lambda u: u ** sp.Rational(7, 5),
    "√(1 + u²)": lambda u: sp.sqrt(1 + u**2),
    "σ": lambda u: 1 / (1 + sp.exp(-u)),
    "log(1 + exp(u))": lambda u: sp.log(1 + sp.exp(u)),
}
LARGE = {"log", "asinh", "acosh", "atan", "sqrt", "1/u", "1/u²", "u³", "u^(7/5)", "√(1 + u²)"}
"""Functions of which numbers of 400 digits are found quickly at arguments beyond 10⁴."""

SPECIAL = [0.0, 1e-300, 1e-160, 1e-20, 1e-8, 0.5, 1.0, 2.0, 5.0, 6.0, 27.0, 36.0, 700.0, 750.0]
SPECIAL = [s * v for v in [*SPECIAL, 1e8, 1e16, 1e155, 1e300, 1.5e308] for s in (1, -1)]


def points(count: int) -> list[tuple[float, float]]:
    """Pairs of special numbers, and numbers of all sizes, a third of each."""
    rng = random.Random(count)

    def number(low: float, high: float) -> float:
        return rng.choice([1, -1]) * 10 ** rng.uniform(low, high)

    pairs = [(rng.choice(SPECIAL), rng.choice(SPECIAL)) for _ in range(count // 2)]
    return pairs + [(number(-8, 3), number(-14, 2)) for _ in range(count // 2)]


def bits(made: float, right: Any) -> float:
    if not np.isfinite(made):
        return 53.0
    error = abs(mpmath.mpf(float(made)) - right)
    return float(max(0, min(53, mpmath.log(error / abs(right), 2) + 53))) if error else 0.0


def check(name: str, count: int) -> None:
    value = FUNCTIONS[name](X + Y) - FUNCTIONS[name](X)
    graph = symad.trace(value, [X, Y])
    worse = seen = 0
    for made, form in ((graph, value), (symad.gradient(graph, [X, Y]), sp.diff(value, X))):
        kernel = lower(made)
        exact = sp.lambdify([X, Y], form, "mpmath")
        written = sp.lambdify([X, Y], form, ["scipy", "numpy"])
        for point in points(count):
            if max(map(abs, point)) > 1e4 and name not in LARGE:
                continue
            try:
                with mpmath.workdps(700):
                    right = mpmath.mpmathify(exact(*map(mpmath.mpf, point)))
            except (ZeroDivisionError, ValueError, OverflowError):
                continue
            if not isinstance(right, mpmath.mpf) or not 1e-300 < abs(right) < 1e300:
                continue
            with np.errstate(all="ignore"):
                before = float(written(*map(np.float64, point)))
                after = float(np.ravel(kernel(*point))[0])
            assert np.isfinite(after) or not np.isfinite(before), (point, before, after)
            seen += 1
            worse += bits(after, right) > bits(before, right) + 3
    assert seen > count // 8
    assert worse <= 2 + 0.01 * seen


@pytest.mark.parametrize("name", ["tanh", "1/u²", "atan", "√(1 + u²)"])
def test_a_few_points(name: str) -> None:
    check(name, 40)


@pytest.mark.thorough
@pytest.mark.parametrize("name", FUNCTIONS)
def test_many_points(name: str) -> None:
    check(name, 400)

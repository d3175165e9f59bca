"""Vector functions in C against 40 digits, and their exceptional values against IEEE arithmetic."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

from symad.numeric.compiler.c_compiler import NATIVE, compile_c, compiler
from symad.numeric.compiler.math.vector_math import COS, EXP, LOG, LOOPS, SIN, math_source
from symad.numeric.scalars.c_interpreter import HEAD
from symad.numeric.targets.c_functions import own_name

needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler")
rng = np.random.default_rng(0)
near = np.pi / 2 * np.arange(-200, 200)  # doubles next to zeros of sin and cos
convergents = np.array([11, 22, 355, 710, 103993, 104348, 208341, 312689.0])  # of π: as near as doubles come

EXACT: dict[str, Any] = {
    **{name: getattr(mpmath, name) for name in ("exp", "log", "tanh", "sin", "cos")},
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "sech": mpmath.sech,
}
POINTS = {
    "exp": [rng.uniform(-745, 709.7, 1500), rng.uniform(-1, 1, 1500)],
    "log": [10.0 ** rng.uniform(-320, 308, 1500), rng.uniform(0.5, 2, 1500), rng.uniform(0.99, 1.01, 500)],
    "tanh": [rng.uniform(-22, 22, 1500), rng.uniform(-1, 1, 1500), 10.0 ** rng.uniform(-300, 0, 500)],
    "sigmoid": [rng.uniform(-740, 40, 1500), rng.uniform(-3, 3, 1500)],
    "sech": [rng.uniform(-745, 745, 1500), rng.uniform(-3, 3, 1500), 10.0 ** rng.uniform(-300, 0, 500)],
    "sin": [rng.uniform(-10, 10, 1500), rng.uniform(-1e6, 1e6, 1500), near, convergents, 1e7 * near],
    "cos": [rng.uniform(-10, 10, 1500), rng.uniform(-1e6, 1e6, 1500), near, convergents / 2, 1e7 * near],
}
EXCEPTIONAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, -1e308, 5e-324, 800.0, -800.0, -1.0])
NUMPY: dict[str, Callable[[Any], Any]] = {
    **{name: getattr(np, name) for name in ("exp", "log", "tanh", "sin", "cos")},
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sech": lambda x: 1 / np.cosh(x),
}


@cache
def library(*options: str) -> Any:
    """The loops of all functions under other names."""
    loops = [f"void {n}_out(double *p, size_t n) {{ {n}_all(p, n); }}\n" for n in LOOPS]
    return compile_c(HEAD + math_source(LOOPS, own_name) + "".join(loops), options)


def values(name: str, x: Any, *options: str) -> Any:
    """The C function of every element."""
    y = np.array(x, dtype=float)
    getattr(library(*options), f"{name}_out")(y.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(len(y)))
    return y


@pytest.mark.sample(3)
@needs_compiler
@pytest.mark.parametrize("options", [NATIVE, ()], ids=["vectors", "plain"])
@pytest.mark.parametrize("name", LOOPS)
def test_errors_are_below_two_and_a_half_units_in_the_last_place(name: str, options: tuple[str, ...]) -> None:
    x = np.concatenate(POINTS[name])
    got = values(name, x, *options)
    with mpmath.workdps(40):
        exact = [EXACT[name](mpmath.mpf(float(v))) for v in x]
        units = np.spacing(np.abs([float(e) for e in exact]))
        errors = [
            float(abs(mpmath.mpf(float(g)) - e) / float(u)) for g, e, u in zip(got, exact, units, strict=True)
        ]
    assert max(errors) < 2.5


@needs_compiler
@pytest.mark.parametrize("options", [NATIVE, ()], ids=["vectors", "plain"])
@pytest.mark.parametrize("name", LOOPS)
def test_exceptional_values_are_those_of_ieee_arithmetic(name: str, options: tuple[str, ...]) -> None:
    with np.errstate(all="ignore"):
        expected = NUMPY[name](EXCEPTIONAL)
    assert np.allclose(values(name, EXCEPTIONAL, *options), expected, rtol=1e-14, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    ("tail", "function", "reach"),
    [
        (EXP, lambda r: (mpmath.exp(r) - 1 - r) / r**2, mpmath.log(2) / 2),
        (LOG, lambda z: (2 * mpmath.atanh(mpmath.sqrt(z)) / mpmath.sqrt(z) - 2) / z, 0.029437),
        (SIN, lambda z: (mpmath.sin(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1) / z, (mpmath.pi / 4) ** 2),
        (COS, lambda z: (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / z**2, (mpmath.pi / 4) ** 2),
    ],
    ids=["exp", "log", "sin", "cos"],
)
def test_polynomials_are_near_their_functions(tail: Any, function: Any, reach: Any) -> None:
    with mpmath.workdps(40):
        for k in range(1, 40):
            z = reach * k / 39
            series = mpmath.polyval([mpmath.mpf(c) for c in reversed(tail)], z)
            assert abs(series - function(z)) < 2e-15 * abs(function(z))

"""Numbers that single precision cannot hold, such as 1/40!, as factors in code in float32."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.functions import scan
from symad.numeric import lower
from symad.numeric.passes.ranges import in_single_range
from symad.ops.basic.sources import constant_value
from tests.gpu.cupy_agreement import library, on_device

x, y = sp.symbols("x y", real=True)
TINY, HUGE = sp.Rational(1, 10**50), sp.Integer(10) ** 50

SCALARS = {
    "a term of a series": (x**40 / sp.factorial(40), 3.0, 2.0),
    "its logarithm": (sp.log(x**40 / sp.factorial(40)), 3.0, 2.0),
    "two large numbers": (x * y / HUGE, 1e20, 1e20),
    "two small numbers": (-x * y * HUGE, 1e-20, 1e-20),
    "a float": (x * y * sp.Float(1e-50), 1e20, 1e20),
    "a long float": (x * y * sp.Float("1e-50", 40), 1e20, 1e20),
    "constants of physics": (sp.Float(6.62607015e-34) ** 2 / x, 9.1e-31, 2.0),
    "a square": (sp.exp(-(x**2) / 10**45), 1e22, 2.0),
    "a divisor": (sp.exp(y) / (x * HUGE), 1e-40 * 1e5, 2.0),
    "two divisors": (1 / (x * y * HUGE), 1e-30, 1e-25),
    "more than twice the range": (x**4 * y**2 / HUGE**2, 1e9, 1e18),
    "wide numbers whose product is not": (x * sp.Float(1e-50) * sp.Float(1e48, 30) + y, 0.5, 2.0),
}


def called(f, backend, values):
    """The results of code in float32, as one flat array."""
    if backend == "cupy":
        with library() as cp:
            made = lower(f, backend="cupy", dtype="float32")(*on_device(cp, values, "float32"))
            parts = made if isinstance(made, tuple) else (made,)
            return np.concatenate([np.ravel(part.get()) for part in parts])
    options = {"style": "plain"} if backend == "plain" else {"backend": backend}
    with np.errstate(over="ignore", under="ignore"):
        made = lower(f, dtype="float32", **options)(*values)
    parts = made if isinstance(made, tuple) else (made,)
    return np.concatenate([np.ravel(part) for part in parts])


@pytest.mark.parametrize("backend", ["numpy", "plain", "cupy"])
@pytest.mark.parametrize("name", SCALARS)
def test_a_factor_outside_of_single_precision(name, backend):
    f, *point = SCALARS[name]
    symbols = [s for s in (x, y) if s in f.free_symbols]
    point = [float(np.float32(v)) for v in point[: len(symbols)]]
    exact = {s: sp.Rational(v) for s, v in zip(symbols, point, strict=True)}
    expected = np.float64([e.subs(exact).evalf(30) for e in (f, *(f.diff(s) for s in symbols))])
    assert ((abs(expected) > 1e-37) & (abs(expected) < 1e37)).sum() > len(symbols) // 2
    found = called(symad.value_and_gradient(f, symbols), backend, point)
    normal = (abs(expected) > 1e-37) & (abs(expected) < 1e37)
    np.testing.assert_allclose(found[normal], expected[normal], rtol=2e-5)
    batch = called(symad.trace(f, symbols), backend, [np.full(3, v, np.float32) for v in point])
    np.testing.assert_allclose(batch, np.full(3, expected[0]), rtol=2e-5)


def of_arrays(u, v):
    return (u * v * 1e-50, np.exp(u * 1e-45 * v), (u * v / 10**50).sum())


@pytest.mark.parametrize("backend", ["numpy", "plain", "c", "cupy"])
def test_such_factors_of_arrays(backend):
    graph = symad.trace(of_arrays, [(3,), (3,)])
    u, v = np.float32([1e20, 2e21, -3e19]), np.float32([4e20, 1e21, 5e22])
    exact = [mpmath.mpf(float(a)) * mpmath.mpf(float(b)) for a, b in zip(u, v, strict=True)]
    tiny = mpmath.mpf(1e-50)
    parts = [a * tiny for a in exact], [mpmath.exp(a * mpmath.mpf(1e-45)) for a in exact]
    last = mpmath.fsum(exact) / mpmath.mpf(10) ** 50
    expected = np.float64([*parts[0], *parts[1], last])
    np.testing.assert_allclose(called(graph, backend, [u, v]), expected, rtol=2e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["numpy", "plain", "c", "cupy"])
def test_such_factors_in_loops(backend):
    def f(u):
        return scan(lambda c, w: np.tanh(c * (w * 10**40)) / 10**20, u[0], u)[-1]

    u = np.float32([1e-20, 1.2e-20, 3e-20, -2e-20, 5e-21])
    numbers = sp.symbols("w0:5", real=True)
    c = numbers[0]
    for w in numbers:
        c = sp.tanh(c * w * 10**40) / 10**20
    at = {s: sp.Rational(float(w)) for s, w in zip(numbers, u, strict=True)}
    expected = [float(e.evalf(30, subs=at)) for e in (c, *(c.diff(w) for w in numbers))]
    graph = symad.value_and_gradient(symad.trace(f, [(5,)]))
    np.testing.assert_allclose(called(graph, backend, [u]), expected, rtol=5e-5)


def test_other_graphs_are_not_changed():
    for f in (x * y / 10**20, 3 * x**2 * sp.Float(1e-37) + 10**37 * y, sp.exp(x) + sp.Rational(1, 7)):
        graph = symad.value_and_gradient(f)
        assert in_single_range(graph) is graph
    wide = in_single_range(symad.trace(x**40 / sp.factorial(40)))
    numbers = [v for v in map(constant_value, wide.nodes) if v is not None]
    assert numbers and all(2.0**-126 <= abs(v) <= 2.0**127 for v in numbers)
    exact = Fraction(3**40) / Fraction(int(sp.factorial(40)))
    assert abs(wide(3.0) / float(exact) - 1) < 1e-15

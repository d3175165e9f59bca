"""Values, gradients and Hessians of differences, quotients and removable cancellations have their digits.

Each at points where the formula as it is written loses them, beside SymPy's derivatives with many digits.
"""

import math
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.graph import Graph, Node
from symad.numeric import lower
from symad.ops.basic.arithmetic import Add, Mul, mul
from symad.ops.basic.sources import constant, input_node
from symad.ops.elementwise.apply import apply
from symad.stable import stabilize

U, V, X, Y = sp.symbols("u v x y", real=True)
P, Q = sp.symbols("p q", positive=True)
TINY, NEAR = [(1e-9, 1e-12), (0.3, 1e-10), (-0.7, 1e-9), (-0.3, 0.2)], [(1.3, 1e-10), (2.0, 1e-9), (3.0, 2.0)]
ODDS = 1 / (1 + sp.exp(-X))


def difference(f: Any) -> sp.Expr:
    return f(X + Y) - f(X)


def at(value: sp.Expr, other: Any) -> sp.Expr:
    return sp.Piecewise((value, sp.Ne(X, 0)), (other, True))


CASES: dict[str, tuple[sp.Expr, list[tuple[float, ...]]]] = {
    "sin(x)/x, or 1": (at(sp.sin(X) / X, 1), [(1e-12,), (1e-5,), (0.3,), (3.0,)]),
    "(exp(x) - 1)/x, or 1": (at((sp.exp(X) - 1) / X, 1), [(1e-12,), (1e-5,), (0.3,), (3.0,)]),
    "(1 - cos(x))/x², or 1/2": (at((1 - sp.cos(X)) / X**2, sp.Rational(1, 2)), [(1e-12,), (1e-5,), (0.3,)]),
    "sin(x)/x away from 0": (
        sp.Piecewise((sp.sin(X) / X, sp.Abs(X) > 1e-14), (1 - X**2 / 6, True)),
        [(1e-12,), (1e-5,), (0.3,)],
    ),
    "a difference of roots, or 1": (
        sp.Piecewise((sp.sqrt(X + 1) - sp.sqrt(X), X > 0), (1, True)),
        [(1e12,), (3.0,)],
    ),
    "tanh": (difference(sp.tanh), [*TINY, (20.0, 1e-7), (400.0, 1e-3), (1e-9, -3e-12), (0.3, 0.7)]),
    "sigmoid": (difference(lambda x: 1 / (1 + sp.exp(-x))), [*TINY, (20.0, 1e-7), (-3.0, 2.0)]),
    "asinh": (difference(sp.asinh), [*TINY, (-2.0, 1e-9), (2e8, 1e-7)]),
    "acosh": (difference(sp.acosh), [*NEAR, (2e8, 1e-7)]),
    "asin": (difference(sp.asin), TINY),
    "acos": (difference(sp.acos), TINY),
    "atanh": (difference(sp.atanh), TINY),
    "sec": (difference(sp.sec), TINY),
    "sech": (difference(sp.sech), [*TINY, (720.0, 1e-5)]),
    "erf": (difference(sp.erf), [*TINY, (-2.0, 1e-9), (5.0, 1e-7), (-3.0, 2.0), (5.0, 0.3)]),
    "erfc": (difference(sp.erfc), [*TINY, (-2.0, 1e-9), (5.0, 1e-7), (-3.0, 2.0), (5.0, 0.3)]),
    "loggamma": (difference(sp.loggamma), [(0.3, 1e-10), (2.0, 1e-9), (50.0, 1e-7), (3.0, 2.0)]),
    "a length and a side": (sp.sqrt(U**2 + V**2) - U, [(1e8, 1.0), (1e8, 1e-3), (-3.0, 2.0), (3.0, 4.0)]),
    "√(1 + x²) - 1": (sp.sqrt(1 + X**2) - 1, [(1e8,), (1e-8,), (2.0,)]),
    "Box and Cox": ((U**V - 1) / V, [(3.0, 1e-3), (0.2, 2.5), (5.0, -0.5)]),
    "exp(x y) - 1 - x y": (sp.exp(X * Y) - 1 - X * Y, [(1e-6, 1e-3), (0.5, 0.3), (-3.0, 2.0), (1e-3, 1e-3)]),
    "log(1 + x y) - x y": (sp.log(1 + X * Y) - X * Y, [(1e-6, 1e-3), (0.5, 0.3), (3.0, 2.0), (1e-3, 1e-3)]),
    "log(2 cosh(x)) - |x|": (
        sp.log(sp.exp(X) + sp.exp(-X)) - sp.Abs(X),
        [(40.0,), (2.0,), (-40.0,), (0.1,), (300.0,)],
    ),
    "heat capacity": (
        X**2 * sp.exp(X) / (sp.exp(X) - 1) ** 2,
        [(1e4,), (1e-5,), (1.0,), (-1e4,), (30.0,)],
    ),
    "three states": (
        (sp.exp(X) - sp.exp(-X)) / (sp.exp(X) + sp.exp(-X) + 1),
        [(1e4,), (-1e4,), (30.0,), (-30.0,), (1e-2,), (1.0,)],
    ),
    "odds": (ODDS / (1 - ODDS), [(710.0,), (708.0,), (-710.0,), (1.0,), (-40.0,)]),
    "x²/(1 + x²)": (X**2 / (1 + X**2), [(1e8,), (1e3,), (-1e5,), (0.3,)]),
    "x²/(y + 2 x²)": (X**2 / (Y + 2 * X**2), [(1e8, 1.0), (1e3, 2.0), (1e-3, 3.0)]),
    "log(1 - exp(-x))": (sp.log(1 - sp.exp(-X)), [(40.0,), (700.0,), (1e-9,), (0.7,), (0.68,)]),
    "sin(π x)/(π x)": (sp.sin(sp.pi * X) / (sp.pi * X), [(1e-12,), (1e-5,), (0.01,), (0.3,)]),
    "sin(π x)/(π x) - 1": (sp.sin(sp.pi * X) / (sp.pi * X) - 1, [(1e-5,), (-0.01,), (0.3,)]),
    "π sin(x)/(7 x)": (sp.pi * sp.sin(X) / (7 * X), [(1e-12,), (1e-5,), (-0.01,), (0.3,)]),
    "π x - sin(π x)": (sp.pi * X - sp.sin(sp.pi * X), [(1e-12,), (-1e-5,), (0.01,), (2.7,)]),
    "(exp(π x) - 1)/x": ((sp.exp(sp.pi * X) - 1) / X, [(1e-12,), (-1e-5,), (0.01,), (2.7,)]),
    "1/tanh(π x) - 1/(π x)": (1 / sp.tanh(sp.pi * X) - 1 / (sp.pi * X), [(1e-12,), (-1e-5,), (0.01,)]),
    "tanh(x/3) - x/3": (sp.tanh(X / 3) - X / 3, [(1e-12,), (-1e-5,), (0.01,), (0.3,)]),
    "sin(3 x y) - 3 sin(x y)": (
        sp.sin(3 * X * Y) - 3 * sp.sin(X * Y),
        [(1e-6, 1e-3), (0.01, 0.3), (1e-3, 1e-3)],
    ),
    "log(1 - exp(-exp(2 x)))": (sp.log(1 - sp.exp(-sp.exp(2 * X))), [(-30.0,), (-3.0,), (0.3,), (1.0,)]),
    "exp(2 x)/(exp(2 x) + exp(-2 x))": (
        sp.exp(2 * X) / (sp.exp(2 * X) + sp.exp(-2 * X)),
        [(400.0,), (-400.0,), (1e-5,), (0.3,), (-3.0,)],
    ),
    "x + log(1 + exp(-x))": (X + sp.log(1 + sp.exp(-X)), [(-40.0,), (-700.0,), (800.0,), (1e-5,), (2.0,)]),
    "log(1 - exp(-x y))": (sp.log(1 - sp.exp(-X * Y)), [(40.0, 1.0), (2.0, 3.0), (1e-5, 2.0), (0.3, 0.7)]),
    "acos(1 - x²)": (sp.acos(1 - X**2), [(1e-12,), (1e-5,), (-0.01,), (0.3,), (1.2,)]),
    "acosh(1 + x²)": (sp.acosh(1 + X**2), [(1e-12,), (1e-5,), (-0.01,), (0.3,), (3.0,), (1e8,)]),
    "log(sinh(x))": (sp.log(sp.sinh(X)), [(1e3,), (1e-5,), (0.3,), (3.0,)]),
    "log(tanh(x))": (sp.log(sp.tanh(X)), [(40.0,), (1e-5,), (0.3,), (3.0,)]),
    "log(x + √(x² + 1))": (
        sp.log(X + sp.sqrt(X**2 + 1)),
        [(-1e155,), (1e155,), (-1e10,), (-1e5,), (1e-12,), (-0.01,), (2.0,)],
    ),
    "log(x + √(x² - 1))": (sp.log(X + sp.sqrt(X**2 - 1)), [(1e155,), (3.0,), (1.5,)]),
    "log(erfc(x))": (sp.log(sp.erfc(X)), [(1e-12,), (-1e-5,), (0.01,), (0.49,), (0.51,), (-3.0,)]),
    "√(x² + 1) - |x|": (
        sp.sqrt(X**2 + 1) - sp.Abs(X),
        [(1e8,), (-1e8,), (40.0,), (-40.0,), (1e-5,), (0.3,)],
    ),
    "log(x⁶/(exp(x²) - 1))": (
        sp.log(X**6 / (sp.exp(X**2) - 1)),
        [(40.0,), (-40.0,), (0.01,), (0.3,), (3.0,)],
    ),
    "erf(x)/x": (sp.erf(X) / X, [(s * v,) for v in (1e-160, 1e-8, 1e-3, 0.1, 0.3, 5.0) for s in (1, -1)]),
    "(x - sin(x))/x³": ((X - sp.sin(X)) / X**3, [(1e-160,), (-1e-110,), (1e-8,), (0.3,), (10.0,)]),
    "a spherical Bessel function": (
        (sp.sin(X) - X * sp.cos(X)) / X**2,
        [(1e-140,), (-1e-60,), (1e-8,), (1e-3,), (0.3,), (10.0,)],
    ),
    "(exp(x y) - 1)/x": (
        (sp.exp(X * Y) - 1) / X,
        [(1e-160, 1.0), (1e-8, 2.0), (1e-3, 0.5), (1e-3, 1e-8), (0.3, 0.7)],
    ),
    "coth(x) - 1/x": (sp.coth(X) - 1 / X, [(1e-160,), (-1e-8,), (1e-3,), (0.1,), (10.0,), (400.0,)]),
    "a multiple of the logistic density": (
        3 * sp.exp(X) / (sp.exp(2 * X) + 2 * sp.exp(X) + 1),
        [(0.3,), (30.0,), (-30.0,), (300.0,)],
    ),
    "weights that are inputs": (
        sp.log(P * sp.exp(X) + Q * sp.exp(Y)),
        [(0.3, 0.7, 1.0, 2.0), (0.3, 0.7, 30.0, 30.5), (0.3, 0.7, -300.0, -300.0), (2.0, 0.5, 1.0, 1.5)],
    ),
    "three exponentials": (
        X * (sp.exp((U + V) * X) - 1) / ((sp.exp(U * X) - 1) * (sp.exp(V * X) - 1)),
        [(1.0, 2.0, 1e-8), (0.3, 2.0, 1e-3), (0.4, 0.7, 1.0)],
    ),
}
VALUES: dict[str, tuple[sp.Expr, list[tuple[float, ...]]]] = {
    "a scaled tail of a product": (
        sp.exp(X**2 * Y**2) * sp.erfc(X * Y),
        [(30.0, 30.0), (5.0, 4.0), (-0.3, 0.2)],
    ),
    "a scaled tail": (sp.exp(X**2) * sp.erfc(X), [(40.0,), (10.0,), (-5.0,), (1e3,), (0.5,)]),
    "a scaled tail of a root": (
        sp.exp(P) * sp.erfc(sp.sqrt(P)),
        [(800.0,), (30.0,), (1.0,), (1e-3,)],
    ),
    "exponentials that cancel": (sp.exp(X**2) * sp.cos(X) * sp.exp(-(X**2)), [(40.0,), (2.0,)]),
    "a product beside its terms": ((X + Y) * U - X * U, [(1.0, 1e9, 1e-9), (0.3, 2.0, 0.7)]),
}
"""Those of which the values alone keep their digits."""

LOST = {"float64": (2.0**-44, 1e-290, 1.7e308), "float32": (2.0**-14, 1e-35, 3.4e38)}
"""The largest relative error, and the range of results: 9 or 10 bits for points that are rounded and entries
of different sizes."""

INPUTS = {"float64": (0.0, 1e308), "float32": (1e-35, 1e4)}
"""The inputs that are tried in a precision; the fourth powers of larger ones are no floats in single."""


def formula(name: str) -> tuple[sp.Expr, list[tuple[float, ...]]]:
    return (CASES | VALUES)[name]


def inputs(name: str) -> list[sp.Symbol]:
    return sorted(formula(name)[0].free_symbols, key=str)


@cache
def derivatives(name: str, order: int) -> list[sp.Expr]:
    found = [formula(name)[0]]
    for _ in range(order):
        found = [sp.diff(f, s) for f in found for s in inputs(name)]
    return [f.replace(sp.DiracDelta, lambda *where: sp.Integer(0)) for f in found]


def right(name: str, order: int, point: tuple[float, ...]) -> list[Any]:
    made = [sp.lambdify(inputs(name), f, "mpmath") for f in derivatives(name, order)]
    largest, least = max(map(abs, point)), min(map(abs, point))
    many = 900 if 200 < largest < 1e3 or least < 1e-100 else 330
    with mpmath.workdps(9000 if largest == 1e4 else many):
        return [mpmath.mpmathify(f(*map(mpmath.mpf, point))) for f in made]


def check(name: str, order: int, backend: str = "numpy", dtype: str = "float64") -> None:
    value, points = formula(name)
    graph = symad.trace(value, inputs(name))
    if order:
        graph = (symad.gradient if order == 1 else symad.hessian)(graph, inputs(name))
    kernel: Any = graph if backend == "graph" else lower(graph, backend=backend, dtype=dtype)
    lost, small, large = LOST[dtype]
    for point in points:
        given = np.array(point, dtype)
        if not all(INPUTS[dtype][0] < abs(float(x)) < INPUTS[dtype][1] for x in given):
            continue
        made = np.hstack([np.ravel(v) for v in np.atleast_1d(kernel(*given))])
        for got, want in zip(made, right(name, order, tuple(map(float, given))), strict=True):
            if abs(want) > large:
                assert got == np.inf
            else:
                assert abs(mpmath.mpf(float(got)) - want) <= lost * abs(want) + small, (point, got, want)


@pytest.mark.sample(24)
@pytest.mark.parametrize("order", range(3))
@pytest.mark.parametrize("name", CASES)
def test_no_digits_are_lost(name: str, order: int) -> None:
    check(name, order)


@pytest.mark.thorough
@pytest.mark.parametrize(("backend", "dtype"), [("graph", "float64"), ("c", "float64"), ("numpy", "float32")])
@pytest.mark.parametrize("name", CASES)
def test_no_digits_are_lost_elsewhere(name: str, backend: str, dtype: str) -> None:
    """Evaluation of graphs, compiled code, single precision."""
    for order in range(2 if name == "Box and Cox" and dtype == "float32" else 3):
        check(name, order, backend, dtype)


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    check(name, 0)


def test_a_slope_that_is_a_product_of_functions() -> None:
    """The mixed slope of (u^v − 1)/v is u^(v−1) log u, although it is a sum of quotients by v and v²."""
    kernel = lower(symad.hessian((U**V - 1) / V, [U, V]))
    for u, v in [(3.0, 1e-9), (0.2, 1e-6), (5.0, -1e-3)]:
        assert kernel(u, v)[0, 1] == pytest.approx(u ** (v - 1) * math.log(u), rel=1e-14)


def test_a_product_with_an_exact_zero() -> None:
    """The series of a term that is 0 is divided by nothing."""
    x, y = (input_node(s) for s in (X, Y))
    zero = Node.of(Mul((1, 1)), (constant(0), x))  # as passes may leave it
    product = Node.of(Mul((1, 1)), (y, zero))
    for total in (
        Node.of(Add((1, -1, 1)), (apply(sp.sin, mul(x, y)), mul(x, y), product)),
        Node.of(Add((1, -1, 1)), (apply(sp.sin, zero), product, apply(sp.exp, mul(x, y)))),
    ):
        (made,) = stabilize(Graph((x, y), (total,))).output_nodes
        value = Graph((x, y), (made,))(0.5, 0.25)
        written = Graph((x, y), (total,))(0.5, 0.25)
        assert float(value) == pytest.approx(float(written), rel=1e-12)

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
from tests.symad.stable.digit_cases import CASES, VALUES, U, V, X, Y

DIRECTIONS = ("forward", "reverse")

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


@pytest.mark.parametrize("mode", [f"{a}-over-{b}" for a in DIRECTIONS for b in DIRECTIONS])
@pytest.mark.parametrize("q", [X**2 / 9 + 1, X**2 + X + 1, 3 * X**2 - 2 * X + 5, (X - 7) ** 2 / 3 + 2])
def test_second_slopes_of_roots(q: sp.Expr, mode: str) -> None:
    """Each mode writes (2 q q'' − q'²)/(4 √q³) as sums of other terms, of which no digit is left at 10⁸."""
    graph = symad.hessian(sp.sqrt(q), [X], mode=mode)
    for x in (1e8, -1e5, 7.25):
        want = sp.sqrt(q).diff(X, 2).subs(X, sp.Rational(x)).evalf(50)
        assert float(graph(x).item()) == pytest.approx(float(want), rel=1e-14)


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    check(name, 0)


@pytest.mark.parametrize("name", [name for name in VALUES if name.startswith("a scaled tail")])
def test_slopes_of_scaled_tails(name: str) -> None:
    """The slope 2 x erfcx(x) − 2/√π keeps no digit for large x."""
    check(name, 1)


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


def test_the_slope_of_the_logarithm_of_a_tail() -> None:
    """(log Φ)' = √(2/π) exp(−x²/2)/erfc(−x/√2) far below 0, in evaluation of the graph, too."""
    slope = symad.gradient(sp.log(sp.erfc(-X / sp.sqrt(2)) / 2))
    for x in (-40.0, -700.0, -0.5):
        with mpmath.workdps(60):
            density = mpmath.sqrt(2 / mpmath.pi) * mpmath.exp(-(mpmath.mpf(x) ** 2) / 2)
            expected = float(density / mpmath.erfc(-mpmath.mpf(x) / mpmath.sqrt(2)))
        assert float(slope(x)) == pytest.approx(expected, rel=1e-14)
        assert lower(slope)(x) == pytest.approx(expected, rel=1e-14)

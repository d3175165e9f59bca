"""Higher derivatives of functions of norms and absolute values at 0: those of their series."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from random import Random
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp

import symad
from symad.derivatives.hessian import MODES
from symad.numeric import lower

t, x, y, s = sp.symbols("t x y s", real=True)
s3, s5, s7 = map(sp.sqrt, (3, 5, 7))
MATERN = {
    "5/2": (1 + s5 * t + 5 * t**2 / 3) * sp.exp(-s5 * t),
    "7/2": (1 + s7 * t + 14 * t**2 / 5 + 7 * s7 * t**3 / 15) * sp.exp(-s7 * t),
}
POWERS = (t**2, t**3, t**4, t**6, 2 + t**4, 1 + s3 * t)
CURVES = (sp.exp(-(t**2)), sp.exp(-t), sp.cos(t), sp.cosh(t), sp.log(1 + t**2), t * sp.sin(t), sp.sech(t))
FACTORS = (*POWERS, *CURVES, *MATERN.values(), 1 / (1 + t**2 / 2), sp.sqrt(1 + t**2), sp.log(sp.cosh(t)))
SPELLINGS: dict[str, Callable[[Any], Any]] = {
    "norm": lambda u: np.linalg.norm(u),
    "root of squares": lambda u: np.sqrt(np.sum(u**2)),
    "root of a product": lambda u: np.sqrt(u @ u),
    "root of terms": lambda u: np.sqrt(sum(u[i] * u[i] for i in range(u.shape[0]))),
    "norms of rows": lambda u: np.linalg.norm(u.reshape(1, -1), axis=1),
}
SIZES: dict[str, Callable[[Any], Any]] = {
    "absolute value": lambda u: np.abs(u[0]),
    "root of a square": lambda u: np.sqrt(u[0] ** 2),
    "hypot": lambda u: np.hypot(0.6 * u[0], 0.8 * u[0]),
}
LINES = {1: [1], 2: [3, 4], 3: [1, 2, 2]}
TURNS = {
    "reverse": ["reverse"],
    "forward": ["forward"],
    "forward first": ["forward", "reverse"],
    "reverse first": ["reverse", "forward"],
}


@dataclass(frozen=True)
class Case:
    """f(u) = F(‖u‖), with ‖u‖² spelled in another way where F has even powers."""

    function: sp.Expr
    size: int
    norm: str = "norm"
    square: str = "none"

    @staticmethod
    def of(seed: int) -> Case:
        """A random product or sum of two functions."""
        random = Random(seed)
        a, b = random.choice(FACTORS), random.choice(FACTORS)
        size = random.choice((1, 2, 3))
        norm = random.choice([*SPELLINGS, *(SIZES if size == 1 else ())])
        squares = ("none",) if norm == "norms of rows" else ("none", "product", "sum")  # of one shape
        return Case(random.choice((a * b, a + b, a)), size, norm, random.choice(squares))

    def graph(self) -> symad.Graph:
        """The function as a user writes it."""
        even = sp.Symbol("even")
        parts = self.function if self.square == "none" else self.function.subs({t**2: even, t**4: even**2})
        F = sp.lambdify((t, even), parts, "numpy")

        def f(u: Any) -> Any:
            r = (SPELLINGS | SIZES)[self.norm](u)
            return np.sum(F(r, u @ u if self.square == "product" else np.sum(u * u)))

        return symad.trace(f, [(self.size,)])


def along(function: sp.Expr, line: list[int], orders: int) -> list[tuple[float, bool]]:
    """The derivatives of s ↦ F(‖s v‖) of orders 1, 2, … to 50 digits, and whether they exist.

    Where one does not, that of |u| counts, whose slope at 0 is 0.
    """
    length, exists, found = mpmath.sqrt(sum(v * v for v in line)), True, list[tuple[float, bool]]()
    with mpmath.workdps(50):
        for k in range(1, orders + 1):
            value = mpmath.mpf(sp.N(sp.diff(function, t, k).subs(t, 0), 50))
            exists = exists and (k % 2 == 0 or abs(value) < mpmath.mpf(10) ** -40)
            found.append((float(value * length**k) if k % 2 == 0 else 0.0, exists))
    return found


def nested(f: symad.Graph, line: list[int], orders: int, turns: str = "reverse") -> list[float]:
    """The derivatives of s ↦ f(s v) at 0, by modes in turn."""
    g, found = symad.trace(lambda s: f(s * np.array(line, float)), [()]), list[float]()
    for _, turn in zip(range(orders), cycle(TURNS[turns]), strict=False):
        h = symad.pushforward(g) if turn == "forward" else symad.gradient(g)
        seed = (1.0,) if turn == "forward" else ()
        g = symad.trace(lambda s, h=h, seed=seed: h(s, *seed)[1] if seed else h(s), [()])
        found.append(float(g(0.0)))
    return found


def check(case: Case, orders: int, turns: str) -> None:
    """A derivative that exists is right; others are NaN, or those of the even part of F.

    Those of |u| are sums of what its slope of 0 at 0 leaves of each term, in whatever form it is written.
    """
    line = LINES[case.size]
    found, known = nested(case.graph(), line, orders, turns), along(case.function, line, orders)
    for k, (value, (right, exists)) in enumerate(zip(found, known, strict=True), 1):
        if exists or (case.size > 1 and not np.isnan(value)):
            assert value == pytest.approx(right, rel=1e-11, abs=1e-11), k


@pytest.mark.sample(10)
@pytest.mark.parametrize("seed", range(120))
def test_four_derivatives(seed: int) -> None:
    check(Case.of(seed), 3 + (seed % 2), list(TURNS)[seed % 4])


@pytest.mark.thorough
@pytest.mark.parametrize("turns", TURNS)
@pytest.mark.parametrize("seed", range(200, 215))
def test_four_derivatives_in_all_modes(seed: int, turns: str) -> None:
    check(Case.of(seed), 4, turns)


SIXTH = (t**4 * sp.exp(-(t**2)), sp.exp(-(t**2)), sp.cosh(t**3), t**6 * sp.cos(t), sp.cosh(t) / (1 + t**2))


@pytest.mark.thorough
@pytest.mark.parametrize("spelling", ["norm", "root of a product", "root of terms", "absolute value"])
@pytest.mark.parametrize("function", [*SIXTH, MATERN["7/2"]])
def test_six_derivatives(function: sp.Expr, spelling: str) -> None:
    """The series of products go on at all orders: t⁴ exp(−t²) has −720 as its sixth."""
    for size in (1,) if spelling in SIZES else (1, 3):
        known = along(function, LINES[size], 6)
        found = nested(Case(function, size, spelling).graph(), LINES[size], 6)
        np.testing.assert_allclose(found, [right for right, _ in known], rtol=1e-12, atol=1e-9)


RADII = (sp.sqrt(x**2 + y**2), sp.sqrt(x * x + (y - x / 2) ** 2), sp.Abs(x), sp.Abs(x - y))


@pytest.mark.thorough
@pytest.mark.parametrize("branch", [None, sp.Abs(x) < 1, y < 1])
@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("name", MATERN)
def test_squares_as_sympy_writes_them(name: str, radius: sp.Expr, branch: sp.Basic | None) -> None:
    """5r²/3 becomes 5x²/3 + 5y²/3, |x|² x², and x − y = −s is another number than s; also in a branch."""
    f = MATERN[name].subs(t, radius)
    f = f if branch is None else sp.Piecewise((f, branch), (radius, True))
    graph = symad.trace(lambda u: symad.trace(f, [x, y])(u[0], u[1]), [(2,)])
    line = float(radius.subs({x: 3, y: 4}))
    right = [value * line**k for k, (value, _) in enumerate(along(MATERN[name], [1], 4), 1)]
    np.testing.assert_allclose(nested(graph, [3, 4], 4), right, rtol=1e-12, atol=1e-12)
    if branch is None:
        for mode in MODES:
            found = symad.hessian(f.subs({x: 3 * s, y: 4 * s}), s, mode=mode)(0.0)
            np.testing.assert_allclose(found, right[1], rtol=1e-13)


@pytest.mark.parametrize("condition", [sp.Abs(x) <= 1, y > 0])
@pytest.mark.parametrize("radius", [sp.Abs(x), sp.sqrt(x**2 + y**2)])
def test_a_radius_and_its_square_in_two_branches(radius: sp.Expr, condition: sp.Basic) -> None:
    """Their derivatives are those of each, without powers of r for r²."""
    square, cone = sp.expand(radius**2) / 2, radius - sp.Rational(1, 2)
    square_nodes = len(symad.gradient(square, [x, y]).nodes)
    f = symad.trace(sp.Piecewise((square, condition), (cone, True)), [x, y])
    cone_nodes = len(symad.gradient(cone, [x, y]).nodes)
    assert len(symad.gradient(f).nodes) <= square_nodes + cone_nodes + 8
    for point in ((0.5, 1.5), (-2.0, -1.0)):
        taken = square if condition.subs(dict(zip((x, y), point, strict=True))) else cone
        right = [float(taken.diff(v).subs(dict(zip((x, y), point, strict=True)))) for v in (x, y)]
        np.testing.assert_allclose(symad.gradient(f)(*point), right, rtol=1e-15)


@pytest.mark.parametrize("function", [t**3, t**3 + t**4, sp.exp(-t) + t])
def test_derivatives_that_do_not_exist_are_those_of_the_even_part(function: sp.Expr) -> None:
    """The third derivative of ‖u‖³ jumps, as that of |x|³ does."""
    found = nested(Case(function, 2).graph(), [3, 4], 4)
    np.testing.assert_allclose(found, [right for right, _ in along(function, [3, 4], 4)], rtol=1e-13)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("at", [0.0, 1e-160, 1e-9, 1e-3])
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.sample(6)
def test_hessians_at_0_and_near(spelling: str, at: float, mode: str) -> None:
    """Against 50 digits: F'' v vᵀ + (F'/r)(1 − v vᵀ) for the unit vector v."""
    function, v = t**4 * sp.cos(t) + sp.cosh(t), np.array([0.6, 0.8])
    with mpmath.workdps(50):
        r = sp.Float(repr(at), 50)
        curved, slope = [sp.diff(function, t, k).subs(t, r) for k in (2, 1)]
        along_v, across = float(curved), float(slope / r) if at else float(curved)
    right = across * np.eye(2) + (along_v - across) * np.outer(v, v)
    f = symad.hessian(Case(function, 2, spelling).graph(), mode=mode)
    np.testing.assert_allclose(f(at * v), right, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("style", ["plain", "fast"])
def test_limits_of_quotients_raise_no_errors_in_code(style: str) -> None:
    """A quotient by 0 at a point is not finite, as NumPy's is."""
    inner = sp.log(sp.Abs(sp.log(x) - y))
    nan = sp.Piecewise((inner, x > sp.Rational(1, 10)), (0, True))
    for f in (sp.sqrt(2) * (sp.sin(x + 3) - sp.sin(x)) / sp.Abs(y), nan):
        for g in (symad.hessian(f, [x, y]), symad.gradient(f, [x, y])):
            code = lower(g, style=style)
            with np.errstate(all="ignore"):
                assert not np.isfinite(code(1.0, 0.0)).all()
            np.testing.assert_allclose(code(2.0, 1.5), g(2.0, 1.5), rtol=1e-13, atol=1e-15)

"""Taylor pieces at removable cancellations: rigorous remainders, and values beside numbers of 60 digits."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from flint import acb, arb

import symad
from symad.core.graph import topological
from symad.numeric import lower
from symad.ops.basic.sources import constant_value
from symad.ops.elementwise.selection import Compare, Select
from symad.stable import removable, stabilize
from symad.stable.laurent import ORDER, first
from symad.stable.normal_forms import Forms
from symad.stable.series_variables import DEPTH, SeriesVariable

X = sp.Symbol("x", real=True)
ANALYTIC: dict[str, tuple[sp.Expr, float]] = {
    "x - sin": (X - sp.sin(X), 20.0),
    "x - tan": (X - sp.tan(X), 1.5),
    "1/x - cot": (1 / X - sp.cot(X), 3.0),
    "exp - 1 - x": (sp.exp(X) - 1 - X, 20.0),
    "slope of (exp - 1)/x": (sp.exp(X) / X - (sp.exp(X) - 1) / X**2, 20.0),
    "slope of (1 - cos)/x²": (sp.sin(X) / X**2 - 2 * (1 - sp.cos(X)) / X**3, 20.0),
    "log(1 + x) - x": (sp.log(1 + X) - X, 0.99),
    "tanh - x": (sp.tanh(X) - X, 1.5),
    "x - atan": (X - sp.atan(X), 0.99),
    "x/sin - 1": (X / sp.sin(X) - 1, 3.0),
}
AT_ONE: dict[str, tuple[sp.Expr, float]] = {
    "log - (x - 1)": (sp.log(X) - X + 1, 0.99),
    "slope of log/(x - 1)": (1 / (X * (X - 1)) - sp.log(X) / (X - 1) ** 2, 0.99),
    "1/log - 1/(x - 1)": (1 / sp.log(X) - 1 / (X - 1), 0.99),
    "√x - (1 + x)/2": (sp.sqrt(X) - (1 + X) / 2, 0.99),
}
"""Sums, and radii of circles around 0, or around 1, inside which they have no other singularity."""

NAMES = ("sin", "cos", "tan", "cot", "exp", "log", "tanh", "atan", "sqrt")
BALLS = {name: (lambda z, name=name: getattr(z, name)()) for name in NAMES}


def piece(name: str) -> tuple[Any, float]:
    """The series of a sum, and the radius of its piece."""
    graph = symad.trace((ANALYTIC | AT_ONE)[name][0])
    (total,) = graph.output_nodes
    made = next(n for n in topological(stabilize(graph).output_nodes) if isinstance(n.op, Select))
    small = next(n for n in topological([made.args[0]]) if isinstance(n.op, Compare) and n.op.relation == "<")
    forms = Forms()
    _, t = forms.monomial(small.args[0].args[0])  # of |t| < r
    with first(ORDER):
        expanded = SeriesVariable(t, forms).sum_of(total, DEPTH)
    assert expanded is not None and not expanded[0]
    return expanded[1], float(constant_value(small.args[1]))


@pytest.mark.parametrize("name", ANALYTIC | AT_ONE)
def test_the_dropped_terms(name: str) -> None:
    """Cauchy: |c_j| ≤ M/R^j with the maximum M on |t| = R, by balls; exact coefficients before."""
    whole, r = piece(name)
    form, R = (ANALYTIC | AT_ONE)[name]
    form = form.subs(X, 1 + X) if name in AT_ONE else form
    f, highest = sp.lambdify(X, form, [BALLS]), 0.0
    for k in range(256):
        angle = 2 * math.pi * (k + 0.5) / 256
        center = acb(R * math.cos(angle), R * math.sin(angle))
        around = center + acb(arb(0, R * 0.0125), arb(0, R * 0.0125))
        highest = max(highest, float(f(around).abs_upper()))
    assert math.isfinite(highest)
    given = [Fraction(int(c.p), int(c.q)) for c in whole.series.coeffs()]
    step = 1 if any(given[1::2]) else 2
    first = step * (removable.MAX_DEGREE // 2 + 1)
    dropped = sum(abs(float(c)) * r**j for j, c in enumerate(given) if j >= first)
    n = len(given)
    beyond = highest / R**whole.order * (r / R) ** n / (1 - r / R)
    least = abs(float(given[0])) - sum(abs(float(c)) * r**j for j, c in enumerate(given) if j)
    assert least > 0 or abs(float(form.subs(X, r))) / r**whole.order > 0.1 * abs(float(given[0]))
    assert dropped + beyond < 2.0**-53 * max(least, 0.1 * abs(float(given[0])))


@pytest.mark.parametrize("name", ANALYTIC | AT_ONE)
def test_values_beside_sixty_digits(name: str) -> None:
    form, _ = (ANALYTIC | AT_ONE)[name]
    kernel, exact = lower(form), sp.lambdify(X, form, "mpmath")
    points = [s * 10.0**-k * m for k in range(9) for m in (0.9, 0.4) for s in (1, -1)]
    for t in points:
        x = 1 + t if name in AT_ONE else t
        with mpmath.workdps(60):
            right = exact(mpmath.mpf(x))
        assert float(kernel(x)) == pytest.approx(float(right), rel=2e-14 if abs(t) > 0.1 else 1e-15)


def test_a_sum_without_a_value_at_zero_has_none() -> None:
    assert np.isnan(lower(1 / X - sp.cot(X))(0.0))
    assert lower(X - sp.sin(X))(0.0) == 0.0


def test_what_does_not_cancel_stays() -> None:
    y = sp.Symbol("y", real=True)
    for f in (X - sp.cos(X), sp.sin(X) + X, X - sp.sin(y), 1 / X - sp.tan(X), X**2 - 3 * X):
        graph = symad.trace(f)
        assert stabilize(graph).output_nodes == graph.output_nodes

"""Branches of inverse functions, roots and integer parts, by cases; a difference on one branch is found."""

import mpmath
import numpy as np
import pytest
import sympy as sp
from flint import arb
from sympy import (
    Abs,
    LambertW,
    Mod,
    Piecewise,
    Rational,
    acos,
    asin,
    atan,
    atan2,
    ceiling,
    cos,
    exp,
    floor,
    gamma,
    log,
    pi,
    sin,
    sqrt,
    symbols,
    tan,
)

import symad
from symad.core.graph import topological
from symad.evaluation.intervals import Interval
from symad.ops.basic.sources import Input
from symad.tracing import as_graph
from symad.verification.values.ranges import ranges

x, y = symbols("x y", real=True)
p, q = symbols("p q", positive=True)
n = symbols("n", integer=True)

EQUAL = {
    "a difference of angles": (atan(p) - atan(1 / q), atan((p * q - 1) / (p + q))),
    "the angle of a product": (atan2(2 * p * q, p**2 - q**2) / 2, atan(q / p)),
    "Machin's formula of 1706 doubled": (
        8 * atan(Rational(1, 5)) - 2 * atan(Rational(1, 239)) + 0 * x,
        pi / 2 + 0 * x,
    ),
    "nested roots": (sqrt(2 * p + 2 * sqrt(p**2 - q**2)), sqrt(p + q) + sqrt(p - q)),
    "W": (LambertW(2 * p * exp(2 * p)), 2 * p),
    "halves of whole numbers": (floor(x / 2) + floor((x + 1) / 2), floor(x)),
    "Hermite's identity": (sum(floor(x + Rational(k, 4)) for k in range(4)), floor(4 * x)),
    "remainders": (Mod(x, 6) - Mod(x, 3), 3 * Mod(floor(x / 3), 2)),
    "thirds of integers": (floor(n / 3) + floor((n + 1) / 3) + floor((n + 2) / 3), n),
    "ceilings": (ceiling(n / 2), floor((n + 1) / 2)),
    "three times an argument": (
        gamma(3 * p),
        3 ** (3 * p - Rational(1, 2))
        / (2 * pi)
        * gamma(p)
        * gamma(p + Rational(1, 3))
        * gamma(p + Rational(2, 3)),
    ),
}

DIFFERENT = {
    "π beyond pq = 1": (atan(p) + atan(q), atan((p + q) / (1 - p * q))),
    "π beyond a right angle": (2 * atan(p), atan(2 * p / (1 - p**2))),
    "π in two quadrants": (atan2(y, x), atan(y / x)),
    "a full turn": (acos(cos(4 * atan(p))), 4 * atan(p)),
    "a sign": (sqrt(p + 1 - 2 * sqrt(p)), sqrt(p) - 1),
    "the other branch of W": (LambertW(x * exp(x)), x),
    "one step": (floor(2 * x), 2 * floor(x)),
    "one part in three": (floor(x / 3) + floor((x + 1) / 3), floor((2 * x + 1) / 3)),
    "one whole part": (Piecewise((x, sp.Eq(floor(2 * x), 7)), (0, True)), 0 * x),
    "the sign of a whole part": (sp.sign(floor(x) - 3) ** 2, 1 + 0 * x),
    "a sheet of asin": (asin(sin(x)), x),
    "a sheet of atan": (atan(tan(x)), x),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", EQUAL)
def test_sides_that_are_equal_on_all_sheets(name):
    left, right = EQUAL[name]
    open_ = name in ("a difference of angles", "the angle of a product")  # quotients are not factored
    assert symad.equal(left, right, seed=1).status in (("undecided",) if open_ else ("proved", "tested"))
    assert symad.equal(left, right + Abs(x - 3) / 10**6, seed=1).status == "refuted"


@pytest.mark.parametrize("name", DIFFERENT)
def test_sides_that_differ_on_a_sheet(name):
    assert symad.equal(*DIFFERENT[name], seed=1).status == "refuted"


RANGES = [
    (asin(x), "asin"), (acos(x), "acos"), (atan2(y, x), "atan2"), (atan2(-y, x * y), "atan2 of products"),
    (y / x, "quotient"), (1 / (x * y), "reciprocal"), (sqrt(x) * y, "root"), (sp.sign(x) * y, "sign"),
    (x ** Rational(-3, 2), "negative power"), (x * y, "product"), (-x / (1 + y**2), "bounded quotient"),
]  # fmt: skip

BOXES = [((-2, 3), (-1, 2)), ((0, 5), (-3, 0)), ((-4, 0), (-3, 0)), ((-4, 0), (0, 2)), ((1, 2), (0, 2))]


@pytest.mark.parametrize("formula", [f for f, _ in RANGES], ids=[name for _, name in RANGES])
def test_intervals_enclose_the_values_of_mpmath(formula):
    graph = as_graph(formula)
    rng, seen = np.random.default_rng(0), 0
    evaluate = sp.lambdify([x, y], formula, "mpmath")
    inputs = [v for v in topological(graph.output_nodes) if isinstance(v.op, Input)]
    for (a, b), (c, d) in BOXES:
        ends = {"x": (a, b), "y": (c, d)}
        box = {v: Interval(*map(arb, ends[str(v.op.symbol)]), True, (True, True)) for v in inputs}
        found = ranges(graph.output_nodes, box)[graph.output_nodes[0]]
        for u, v in zip(rng.uniform(a, b, 40), rng.uniform(c, d, 40), strict=True):
            value = mpmath.mpmathify(evaluate(mpmath.mpf(u), mpmath.mpf(v)))
            if mpmath.im(value) == 0 and mpmath.isfinite(value):
                seen += 1
                assert found.low <= arb(str(value + mpmath.mpf(10) ** -12))
                assert found.high >= arb(str(value - mpmath.mpf(10) ** -12))
    assert seen >= 40


def test_an_interval_that_tells_nothing_is_not_narrow():
    graph = as_graph(log(x) + asin(y))
    found = ranges(graph.output_nodes, {})[graph.output_nodes[0]]
    assert not found.low > -(10**9) and not found.high < 10**9

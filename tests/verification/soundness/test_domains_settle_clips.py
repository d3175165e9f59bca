"""Clips and branches that the domain of a claim decides; intervals that enclose all values."""

import random
from fractions import Fraction

import flint
import numpy as np
import pytest
import sympy as sp
from scipy import special

import symad
from symad.evaluation.intervals import Interval
from symad.numbers.number_domains import as_float
from symad.verification.claimed_domain import RULED_OUT, condition_of, settled
from symad.verification.values.ranges import box_within, ranges

x, y = sp.symbols("x y", real=True)
eps = 2.0**-40


def clipped(v):
    return np.log(np.clip(v, eps, 1 - eps))


QUARTERS, HALF = sp.And(x > sp.Rational(1, 4), x < sp.Rational(3, 4)), sp.And(x >= eps, x <= sp.S.Half)


@pytest.mark.parametrize(
    ("where", "status"), [(QUARTERS, "tested"), (HALF, "tested"), (x > 0, "refuted"), (x < 1, "refuted")]
)
def test_a_clip_is_left_out_only_where_the_domain_is_inside_of_it(where, status):
    f, g = symad.trace(clipped, [x]), symad.trace(lambda v: 1 / v, [x])
    assert symad.verify(f, x, gradient=g, where=where).status == status
    wrong = symad.trace(lambda v: 1 / v + 1e-3, [x])
    assert symad.verify(f, x, gradient=wrong, where=where).status == "refuted"


def test_what_was_left_out_is_told_and_never_called_proved():
    inside = symad.verify(symad.trace(clipped, [x]), x, gradient=1 / x, where=(x > 0.25) & (x < 0.75))
    assert inside.status == "tested" and RULED_OUT in " ".join(str(inside).split())
    assert all(e.status == "tested" for e in inside.entries)


def box_of(graph, where):
    return box_within(condition_of(graph, where), graph.input_nodes)


def without_clips(graph, where):
    """The graph without what a condition rules out."""
    made = settled(graph.output_nodes, box_of(graph, where))
    return graph if made is graph.output_nodes else graph.with_outputs(made, graph.structure)


def clips(graph):
    return [n for n in graph.nodes if getattr(n.op, "head", None) in (sp.Max, sp.Min)]


@pytest.mark.thorough
def test_a_domain_of_arrays_bounds_every_element():
    design = np.array([[1.0, -1.0], [1.0, 2.0], [1.0, 0.5]])

    def loss(v):
        return np.sum(
            np.exp(np.clip(design @ v, None, 9)) - np.log(np.clip(special.ndtr(design @ v), 1e-6, 1))
        )

    def slope(v):
        z = design @ v
        return design.T @ (np.exp(z) - np.exp(-z * z / 2) / np.sqrt(2 * np.pi) / special.ndtr(z))

    f, g = symad.trace(loss, [(2,)]), symad.trace(slope, [(2,)])
    options = {"gradient": g, "constants": "rounded"}
    assert symad.verify(f, where=lambda v: np.abs(v) < 1, **options).status == "tested"
    assert symad.verify(f, where=lambda v: (v > -1) & (v < 1.4), **options).status == "tested"
    wide, narrow = (without_clips(f, lambda v, k=k: np.abs(v) < k) for k in (8, 1))
    assert len(clips(f)) == len(clips(wide)) == 3 and not clips(narrow)


def test_bounds_that_are_reached_stay():
    """max(x, 0) where x ≥ −0.1; a boundary counts where the domain is open, and not where it is closed."""
    graph = symad.trace(sp.Max(x, 0) + sp.Piecewise((1, x > 0), (2, True)), inputs=[x])
    assert without_clips(graph, x > sp.Rational(-1, 10)) is graph
    open_side, closed_side = (without_clips(graph, c) for c in (x > 0, x >= 0))
    assert sp.simplify(symad.to_sympy(open_side) - x - 1) == 0
    assert not clips(closed_side) and symad.to_sympy(closed_side).has(sp.Piecewise)


def test_nothing_is_left_out_whose_alternative_may_not_exist():
    """Of max(−5, log(x)²) the bound is never reached, but left of 0 the other one is undefined."""
    graph = symad.trace(sp.Max(-5, sp.log(x) ** 2), inputs=[x])
    assert without_clips(graph, x > -1) is graph
    assert not clips(without_clips(graph, (x > 0.1) & (x < 10)))


LEAVES = [x, y, sp.Rational(1, 3), sp.Integer(-2), sp.pi]
ONE = [
    sp.exp, sp.tanh, sp.erf, sp.erfc, sp.atan, sp.Abs, sp.asinh, sp.sin, symad.functions.sigmoid,
    symad.functions.softplus, lambda a: a**2, lambda a: a**3, lambda a: 1 / (a**2 + 1),
    lambda a: sp.log(a**2 + 1), lambda a: sp.sqrt(a**2 + 2),
]  # fmt: skip
TWO = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, sp.Max, sp.Min,
    lambda a, b: sp.Piecewise((a, a < b), (b, True)),
    lambda a, b: sp.Piecewise((a, (a > b) & (b > 0)), (a * b, True)),
]  # fmt: skip


def some_expression(rng, depth):
    if not depth:
        return rng.choice(LEAVES)
    if rng.random() < 0.4:
        return rng.choice(ONE)(some_expression(rng, depth - 1))
    return rng.choice(TWO)(some_expression(rng, depth - 1), some_expression(rng, depth - 1))


@pytest.mark.thorough
def test_intervals_enclose_the_values_of_random_expressions():
    rng = random.Random(5)
    tried = bounded = 0
    for _ in range(120):
        graph = symad.trace(some_expression(rng, 3), inputs=[x, y])
        where = (x > sp.Rational(-3, 2)) & (x < 1) & (y >= sp.Rational(1, 4)) & (y <= 2)
        known = ranges(graph.output_nodes, box_of(graph, where))[graph.output_nodes[0]]
        if not isinstance(known, Interval):
            continue
        bounded += bool(known.low.is_finite() and known.high.is_finite())
        for _ in range(8):
            point = Fraction(rng.randint(-149, 99), 100), Fraction(rng.randint(25, 200), 100)
            value = as_float(graph(*map(float, point)))
            if np.isfinite(value):
                tried += 1
                size = 1e-12 * (1 + abs(value))
                assert known.low <= flint.arb(value + size) and known.high >= flint.arb(value - size), graph
    assert tried > 500 and bounded > 60

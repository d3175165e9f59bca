"""Values that are 0, or integers, on an open set: there sign² is not 1, < is not ≤, ⌈x⌉ is not ⌊x⌋ + 1.

The open sets of integer inputs are their points: a difference at one integer is a difference. Each false
claim comes with a point, found by hand, at which the sides differ for all points around it.
"""

import numpy as np
import pytest
from sympy import (
    Abs,
    And,
    Eq,
    Heaviside,
    Max,
    Mod,
    Piecewise,
    Rational,
    ceiling,
    cos,
    exp,
    expand,
    floor,
    frac,
    log,
    sign,
    sin,
    sqrt,
    symbols,
)

import symad
from symad.verification.fields.integer_inputs import integer_inputs
from symad.verification.rewriting.basis import Basis
from symad.verification.rewriting.rewrite import rewrite

x, y, z = symbols("x y z", real=True)
p = symbols("p", positive=True)
n, k = symbols("n k", integer=True)
m = symbols("m", integer=True, positive=True)
ramp = Max(x, 0)

FALSE = {
    "rounded up": (ceiling(ramp), floor(ramp) + 1, {x: -2}),
    "rounded up, a sign": (ceiling(sign(x)), floor(sign(x)) + 1, {x: 2}),
    "rounded up, half an integer": (ceiling(n / 2) * x, (floor(n / 2) + 1) * x, {n: 4, x: 1}),
    "the square of a sign": (sign(ramp) ** 2 * y, y, {x: -2, y: 1}),
    "the sign of a square": (sign(ramp**2) * y, y, {x: -2, y: 1}),
    "the sign of a sum of sizes": (sign(Abs(ramp + Max(y, 0))) * z, z, {x: -2, y: -1, z: 3}),
    "the sign of a difference of extremes": (sign(Max(x, y) - x) ** 2 * z, z, {x: 2, y: 1, z: 3}),
    "below or not above": (
        Piecewise((x, ramp > 0), (2 * x, True)),
        Piecewise((x, ramp >= 0), (2 * x, True)),
        {x: -2},
    ),
    "below or not above, an integer": (
        Piecewise((x, n > 0), (2 * x, True)),
        Piecewise((x, n >= 0), (2 * x, True)),
        {n: 0, x: 1},
    ),
    "the value of a step at 0": (Heaviside(ramp, 1), Heaviside(ramp, 0), {x: -2}),
    "the value of a step at 0, rounded": (Heaviside(floor(x), 1), Heaviside(floor(x), 0), {x: 0.5}),
    "a value that is met": (Piecewise((x, Eq(floor(x), 0)), (2 * x, True)), 2 * x, {x: 0.5}),
    "an integer that is met": (Piecewise((x, Eq(n, 2)), (2 * x, True)), 2 * x, {n: 2, x: 1}),
    "a remainder": (Mod(ramp, 1), ramp - ceiling(ramp) + 1, {x: -2}),
    "a fraction": (frac(ramp), ramp - ceiling(ramp) + 1, {x: -2}),
    "an integer power": (x**n, Abs(x) ** n, {x: -2, n: 3}),
    "an integer power of what is rarely negative": (
        (x + 100) ** m,
        Abs(x + 100) ** m,
        {x: -200, m: 3},
    ),
    "a rounded power": ((x + 100) ** floor(y), Abs(x + 100) ** floor(y), {x: -200, y: 1.5}),
    "a power by cases": (
        (x + 100) ** Piecewise((2, y > 0), (3, True)),
        Abs(x + 100) ** Piecewise((2, y > 0), (3, True)),
        {x: -200, y: -1},
    ),
    "a power of 0": (ramp**p, ramp**p + Max(-x, 0), {x: -2, p: 2}),
    "an integer power of -1": ((-x) ** n, x**n, {x: 2, n: 3}),
    "a logarithm under a branch": (
        Piecewise((log(x + 10**30), x > -(10**30)), (exp(y + log(expand((x + 10**30) ** 2)) / 2), True)),
        Piecewise((log(x + 10**30), x > -(10**30)), ((x + 10**30) * exp(y), True)),
        {x: -2 * 10**30, y: 0},
    ),
}

TRUE = {
    "rounded up": (ceiling(x), floor(x) + 1),
    "rounded down, turned": (floor(-x * y), -floor(x * y) - 1),
    "rounded up, half an integer": (ceiling(n / 2), -floor(-n / 2)),
    "the square of a sign": (sign(x) ** 2, sign(x**2 + y**2)),
    "the square of the sign of an extreme": (Abs(Max(x, y)) ** 2, Max(x, y) ** 2),
    "below or not above": (
        Piecewise((x, y > 0), (2 * x, True)),
        Piecewise((x, y >= 0), (2 * x, True)),
    ),
    "a ramp of a ramp": (Max(2 * ramp, 0), 2 * ramp),
    "an integer power": (x ** (n + k), x**n * x**k),
    "an integer power of a product": ((x * y) ** n, x**n * y**n),
    "an integer power of -x": ((-x) ** n, (-1) ** n * x**n),
    "an even integer power": (x ** (2 * n), Abs(x) ** (2 * n)),
    "the slope of an integer power": ((x**n).diff(x), n * x ** (n - 1)),
    "a logarithm of a root": (log(exp(x) + 1), 2 * log(sqrt(exp(x) + 1))),
}


@pytest.mark.sample(11)
@pytest.mark.parametrize("name", FALSE)
def test_what_differs_on_an_open_set_is_refuted(name):
    left, right, point = FALSE[name]
    numbers = {s: Rational(v) for s, v in point.items()}
    assert abs((left - right).subs(numbers, simultaneous=True).evalf(30)) > 1e-6  # the claim is false
    assert symad.equal(left, right, seed=1).status == "refuted"


@pytest.mark.parametrize("name", TRUE)
def test_what_differs_at_boundaries_only_is_accepted(name):
    """Powers of a product whose exponent is an input are no product of powers in the identity test."""
    known = ("undecided", "tested") if name == "an integer power of a product" else ("proved", "tested")
    assert symad.equal(*TRUE[name], seed=1).status in known


def test_a_tie_that_rounding_breaks_refutes_nothing():
    one = sin(y) ** 2 + cos(y) ** 2
    assert symad.equal(x + floor(one) * y, x + y, seed=1).status != "refuted"
    assert symad.equal(Piecewise((x, one > 1), (2 * x, True)), 2 * x, seed=1).status != "refuted"


@pytest.mark.parametrize("at", [1000, Rational(1, 1000), Rational(701, 100)])
def test_a_difference_far_away_or_in_a_thin_shell_is_found(at):
    start = at * Rational(99, 100) if at > 2 else 0
    here = Piecewise((x, And(x > start, x < at)), (x + 1, True))
    assert symad.equal(here, x + 1, seed=1).status == "refuted"


def test_a_diagonal_of_equal_elements_is_no_boundary():
    def below(v):
        return np.sum(np.where(v[:, None] < v[None, :], 1.0, 0.0), axis=1)

    def not_above(v):
        return np.sum(np.where(v[:, None] <= v[None, :], 1.0, 0.0), axis=1)

    a, b = (symad.trace(f, [(3,)]) for f in (below, not_above))
    assert np.array_equal(a(np.arange(3.0)) + 1, b(np.arange(3.0)))
    assert symad.equal(a, b, seed=1).status == "refuted"


def test_as_many_elements_as_tie_are_largest():
    def count(v):
        return np.sum(np.where(np.maximum(v, 0) == np.max(np.maximum(v, 0)), 1.0, 0.0))

    graph = symad.trace(count, [(3,)])
    one = symad.trace(lambda v: 1 + 0 * np.sum(v), [(3,)])
    assert graph(np.array([-1.0, -2.0, -3.0])) == 3
    assert symad.equal(graph, one, seed=1).status not in ("proved", "tested")
    largest = symad.trace(lambda v: np.sum(np.where(v == np.max(v), 1.0, 0.0)), [(3,)])
    assert symad.equal(largest, one, seed=1).status in ("proved", "tested")


@pytest.mark.thorough
def test_a_network_of_ramps_without_biases_is_certified():
    def network(v, *weights):
        for w in weights:
            v = np.maximum(w @ v, 0)
        return np.sum(v)

    assert symad.check(symad.trace(network, [(3,), (3, 3), (2, 3)]), seed=1).status in ("proved", "tested")


def test_a_difference_far_away_is_found_in_arrays():
    a, b = (symad.trace(f, [(2,)]) for f in (lambda v: np.clip(v, -100, 100), lambda v: v))
    assert symad.equal(a, b, seed=1).status == "refuted"


def may_vanish(expression):
    basis = Basis()
    (node,) = rewrite(symad.trace(expression).output_nodes, basis)
    return basis.may_vanish(node)


@pytest.mark.parametrize("expression", [ramp, ramp * y, Abs(x) + x, n, floor(x), x**2 - x * x, ramp**2 * p])
def test_what_may_be_zero_on_an_open_set(expression):
    assert may_vanish(expression + 0 * y)


@pytest.mark.parametrize(
    "expression", [x, x * y - 1, Max(x, y), ramp + y, ramp + 1, Abs(x), exp(ramp), 2 * m]
)
def test_what_is_zero_on_no_open_set(expression):
    assert not may_vanish(expression)


TAKEN_AT_TIES = {
    "first of the largest": (np.max, [(2,)], lambda v: np.eye(2)[np.argmax(v)]),
    "ramp": (lambda v: np.sum(np.maximum(v, 0)), [(2,)], lambda v: (v >= 0) * 1.0),
    "larger of two": (
        lambda v, w: np.sum(np.maximum(v, w)), [(2,), (2,)], lambda v, w: ((v >= w) * 1.0, (v < w) * 1.0)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN_AT_TIES)
def test_any_slope_may_be_taken_at_ties(name):
    """The only points at which floats differ are ties, where the function has no derivative."""
    f, shapes, slope = TAKEN_AT_TIES[name]
    graph = symad.trace(f, inputs=shapes)
    for seed in range(3):
        assert symad.verify(graph, gradient=slope, hostile=False, seed=seed).status == "measured"


def _at_order(weights, turn):
    """A gradient that gives the k-th smallest element the k-th weight; ties are broken by ``turn``."""

    def gradient(a):
        order = np.argsort(turn * a, kind="stable")[::turn]
        made = np.zeros_like(a)
        made[order] = weights
        return made

    return gradient


ORDERS = {
    "median of three": (lambda a: np.median(a), [0, 1, 0]),
    "median of four": (lambda a: np.median(a), [0, 0.5, 0.5, 0]),
    "weighted": (lambda a: np.sum(np.sort(a) * np.arange(5)), [0, 1, 2, 3, 4]),
    "smallest": (lambda a: np.sort(a)[0], [1, 0, 0]),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize("name", ORDERS)
def test_ties_of_an_order_may_be_broken_either_way(name, turn):
    function, weights = ORDERS[name]
    graph = symad.trace(function, [(len(weights),)])
    right = symad.verify(graph, gradient=_at_order(weights, turn), hostile=False)
    assert right.status == "measured", str(right)
    wrong = symad.verify(graph, gradient=_at_order(weights[1:] + weights[:1], turn), hostile=False)
    assert wrong.status == "refuted"
    drawn = np.array([float(v) for v in wrong.witness.point["a"]])
    assert len(set(drawn)) == len(weights)


def test_what_is_sorted_is_no_index():
    graph = symad.gradient(symad.trace(lambda a: np.median(a), [(4,)]))
    assert not integer_inputs(graph.output_nodes)


@pytest.mark.parametrize("start", [Rational(41, 20), Rational(201, 100)])
def test_a_witness_of_few_digits_is_no_tie(start):
    """x = y = 2 is near the interval, and both sides differ there only by what is said of the tie."""
    inside = Piecewise((1, And(x > start, x < start + Rational(1, 20))), (0, True))
    wrong = symad.verify(Max(x, y), x, gradient=Piecewise((1, x > y), (0, True)) + inside)
    at = wrong.witness.point
    assert wrong.status == "refuted" and at["x"] != at["y"]
    assert start < Rational(at["x"]) < start + Rational(1, 20)

"""Nodes that the checker takes to have values have some wherever the function and the output have.

References are strict values of random graphs at points full of zeros, ties and negative numbers.
"""

import random
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.claims import Derivative, Derived
from symad.core.graph import topological
from symad.numbers.number_domains import UndefinedValue
from symad.numbers.values import unchecked
from symad.ops.basic.arithmetic import add, div, mul, sub
from symad.ops.basic.contraction import contract
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import constant, input_node
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.ops.elementwise.selection import compare, select
from symad.verification.checker.defined import NONNEGATIVE, POSITIVE, UNKNOWN, sign, sure

x, y = (input_node(sp.Symbol(name, real=True)) for name in "xy")
X = input_node(sp.IndexedBase(sp.Symbol("X", real=True), shape=(3,)), (3,))
NUMBERS = [Fraction(v) for v in (-2, -1, 0, 0, 1, 2)] + [Fraction(1, 2), Fraction(-1, 3)]


def total(a):
    return contract([[0]], [], a) if a.shape else a


def squared_norm(a):
    return contract([[0], [0]], [], a, a) if a.shape else mul(a, a)


STEPS = [
    lambda a, b: add(a, b), lambda a, b: sub(a, b), lambda a, b: mul(a, b), lambda a, b: mul(a, a),
    lambda a, b: div(a, b), lambda a, b: div(constant(1), a), lambda a, b: squared_norm(a),
    lambda a, b: add(squared_norm(a), constant(1)), lambda a, b: total(a),
    lambda a, b: power(a, constant(2)), lambda a, b: power(a, constant(-1)),
    lambda a, b: power(a, constant(3)), lambda a, b: power(a, constant(Fraction(1, 2))),
    lambda a, b: power(squared_norm(a), constant(Fraction(1, 2))), lambda a, b: apply(sp.Abs, a),
    lambda a, b: apply(sp.sign, a), lambda a, b: apply(sp.Max, a, b),
    lambda a, b: select(compare("<", a, b), a, b),
    lambda a, b: select(compare("<", a, b), div(b, a), constant(0)), lambda a, b: mul(constant(0), a),
    lambda a, b: constant(2), lambda a, b: broadcast_to(total(a), (3,)),
]  # fmt: skip


def some_nodes(rng, count=9):
    nodes = [x, y, X]
    for _ in range(count):
        a = rng.choice(nodes)
        b = rng.choice([n for n in nodes if n.shape == a.shape or not n.shape])
        nodes.append(rng.choice(STEPS)(a, b))
    return nodes


def exists(value):
    return not any(isinstance(v, UndefinedValue) for v in np.asarray(value, dtype=object).ravel())


def points(rng, count):
    for _ in range(count):
        yield {x: rng.choice(NUMBERS), y: rng.choice(NUMBERS), X: np.array(rng.choices(NUMBERS, k=3))}


def judge(seed, graphs):
    """How many values were looked at where the ends have some, and how many nodes beside the ends had to."""
    rng, seen, more = random.Random(seed), 0, 0
    for _ in range(graphs):
        nodes = some_nodes(rng)
        f, output = rng.sample(nodes[3:], 2)
        claim = Derived(Derivative("value", (f,), ()), (output,))
        inside = sure(claim, [0])[0]
        known = [n for n in topological(nodes) if n in inside]
        signs = {}
        for n in claim.nodes:
            signs[n] = sign(n, [signs[a] for a in n.args])
        more += len(known) - 2
        for point in points(rng, 12):
            ends = unchecked([f, output], point)
            if not all(map(exists, ends)):
                continue
            for n, value in zip(known, unchecked(known, point), strict=True):
                assert exists(value), (n, point)
                seen += 1
                least = min(np.asarray(value, dtype=object).ravel().tolist())
                assert {POSITIVE: least > 0, NONNEGATIVE: least >= 0, UNKNOWN: True}[signs.get(n, UNKNOWN)]
    return seen, more


@pytest.mark.parametrize(("seed", "graphs"), [(1, 35), pytest.param(2, 800, marks=pytest.mark.thorough)])
def test_what_is_taken_to_have_values_has_some(seed, graphs):
    seen, more = judge(seed, graphs)
    assert seen > 10 * graphs and more > graphs


ABSENT = {
    "a quotient beside a number": lambda: (mul(x, y), div(x, y)),
    "a root of what may be negative": lambda: (x, power(x, constant(Fraction(1, 2)))),
    "a reciprocal of a square": lambda: (x, div(constant(1), mul(x, x))),
    "a reciprocal of a norm": lambda: (x, div(x, squared_norm(X))),
    "a logarithm": lambda: (x, apply(sp.log, add(x, constant(1)))),
    "a branch that is not taken": lambda: (select(compare("<", x, y), div(x, y), x), div(x, y)),
    "a power with any exponent": lambda: (y, power(mul(x, x), y)),
    "a divisor that a branch alone uses": lambda: (
        select(compare("<", x, y), div(x, y), x), mul(div(constant(1), y), x)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ABSENT)
def test_what_may_have_no_value_is_not_taken_to_have_one(name):
    f, doubtful = ABSENT[name]()
    claim = Derived(Derivative("value", (f,), ()), (f,))
    beside = Derived(Derivative("value", (f,), ()), (f, doubtful))
    assert doubtful not in sure(claim, [0])[0] and doubtful not in sure(beside, [0])[0]


def test_divisors_of_what_has_a_value_are_not_zero():
    """x/y is one of the sides, so 1/y has a value wherever they have."""
    claim = Derived(Derivative("value", (div(x, y),), ()), (div(x, y), div(constant(1), y)))
    assert div(constant(1), y) in sure(claim, [0])[0]


def test_a_false_gradient_by_pairs_without_values_is_refused():
    """0 · (x/x)' is no derivative at x = 0; a pair about x/x must not be used to prove that f is 0 there."""
    f = symad.trace(lambda a: 0 * (a / a) + a, [()])
    certificate = symad.verify(f, gradient=symad.trace(lambda a: 1 + a / a - a / a, [()]))
    assert certificate.status in ("proved", "tested")
    wrong = symad.verify(f, gradient=symad.trace(lambda a: 1 + a / a, [()]))
    assert wrong.status == "refuted"

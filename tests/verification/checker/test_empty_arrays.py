"""Arrays of n − 1 elements, none for n = 1: what is proved for all n is true there as well."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.claims import Derivative, Derived
from symad.core.graph import Graph, Node, rebuild, topological
from symad.errors import SymadError
from symad.numbers.values import unchecked
from symad.ops.basic.arithmetic import Mul, add, mul
from symad.ops.basic.contraction import sum_axes
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import Dimension, constant, input_node
from symad.verification.proof.node_proofs import find_for_all_sizes
from tests.verification.checker.random_claims import n, variable

pytestmark = pytest.mark.thorough

few = n - 1
size, one = Node.of(Dimension(few)), constant(1)
x, y = (input_node(sp.Symbol(name, real=True)) for name in "xy")
u = variable("u", (few,))


def inverse(a):
    return Node.of(Mul((-1,)), (a,))


def total(a):
    """Σ a over n − 1 positions."""
    return sum_axes(broadcast_to(a, (few,)), (0,))


def times_array(a):
    """Σ u_i a."""
    return sum_axes(mul(u, broadcast_to(a, (few,))), (0,))


def function(rng, depth):
    """A random number: of inputs, the size, products, inverses, and sums over arrays."""
    if not depth:
        return rng.choice([x, y, size, one, sum_axes(u, (0,)), constant(2)])
    a = function(rng, depth - 1)
    return rng.choice([
        lambda: add(a, function(rng, depth - 1)), lambda: mul(a, function(rng, depth - 1)),
        lambda: inverse(a), lambda: total(a), lambda: times_array(a),
    ])()  # fmt: skip


CHANGES = [  # each is the same number for n > 1; for n = 1 some are 0, or have no value
    lambda a: mul(a, total(inverse(size))),
    lambda a: mul(a, mul(total(one), inverse(size))),
    lambda a: mul(a, mul(size, inverse(size))),
    lambda a: mul(total(a), inverse(size)),
    lambda a: total(mul(a, inverse(size))),
    lambda a: add(add(a, total(a)), mul(constant(-1), mul(size, a))),
    lambda a: mul(inverse(inverse(a)), one),
]


def values(node, count, point):
    """The value of a number for n, or NaN if there is none."""
    (made,) = Graph((), (node,)).at({n: count}).output_nodes
    given = {}
    for a in topological([made]):
        if not a.args and hasattr(a.op, "symbol"):
            given[a] = point[str(a.op.symbol)] if not a.shape else point["u"][: a.shape[0]]
    try:
        with np.errstate(all="ignore"):
            return float(unchecked([made], given)[0])
    except (SymadError, ArithmeticError):
        return math.nan


@pytest.mark.parametrize("seed", range(4))
def test_what_is_proved_holds_for_empty_arrays(seed):
    rng, proved, differ = Random(seed), 0, 0
    for _ in range(100):
        f = function(rng, rng.randrange(1, 4))
        place = rng.choice([a for a in topological([f]) if not a.shape])
        g = rebuild((f,), {place: rng.choice(CHANGES)(place)})[0]
        found = bool(find_for_all_sizes([Derived(Derivative("value", (f,)), (g,))], [(0, 0, 0)]).proofs)
        proved += found
        point = {
            "x": rng.uniform(1, 2),
            "y": rng.uniform(1, 2),
            "u": np.array([rng.uniform(1, 2) for _ in "123"]),
        }
        for count in (1, 2, 3):
            a, b = (values(side, count, point) for side in (f, g))
            if math.isfinite(a) and math.isfinite(b):
                same = abs(a - b) <= 1e-9 * max(1, abs(a), abs(b))
                assert same or (count == 1 and not found), (f, g, count, a, b)
                differ += not same
    assert proved > 18 and differ > 1


def test_nothing_differs_at_a_size_without_elements():
    """x[1:] has no elements for n = 1: what is equal elsewhere is not refuted there."""
    n = sp.Symbol("n", integer=True, positive=True)
    shifted = symad.trace(lambda x: x[1:], [(n,)])
    equal = symad.equal(symad.trace(lambda x: np.diff(np.cumsum(x)), [(n,)]), shifted)
    assert equal.status in ("proved", "tested", "measured")
    wrong = symad.equal(symad.trace(lambda x: np.diff(np.cumsum(x)) + 1, [(n,)]), shifted)
    assert wrong.status == "refuted" and wrong.witness is not None

"""Masks of −∞, conditions and positions for all sizes: pairs that differ have no proof, and forms are right.

Each pair is compared with NumPy at small sizes, so that the lists cannot be wrong themselves.
"""

import itertools
import math

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.core.claims import Derivative, Derived, Proof
from symad.core.graph import Node
from symad.ops.basic import sources
from symad.ops.basic.arithmetic import add, mul, sub
from symad.ops.basic.shaping import broadcast_to
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.selection import Select
from symad.verification.checker.networks import AXIS, DELTA
from symad.verification.checker.proofs import ForAllSizes, replay
from symad.verification.checker.terms import FREE, Refused, Terms
from symad.verification.proof.find_isomorphism import IsomorphismFinder
from symad.verification.proof.find_proof import Limits
from symad.verification.proof.node_proofs import find_for_all_sizes
from symad.verification.proof.whole_proofs import find
from symad.verification.users import with_inputs_of

n, d = sp.symbols("n d", integer=True, positive=True)
inf, W = np.inf, np.where
GOAL = (0, 0, 0)


def rows(a):
    """The positions along the first axis, as a column for matrices."""
    place = np.arange(a.shape[0])
    return place[:, None] if len(a.shape) > 1 else place


def columns(a):
    return np.arange(a.shape[-1])[None]


def earlier(a):
    """[j ≤ i] for all pairs of positions along the first axis."""
    place = np.arange(a.shape[0])
    return place[:, None] >= place[None]


def ones(condition):
    return W(condition, 1, 0)


# Of vectors x and y of one size.
DIFFERENT = {
    "−∞ first": (
        lambda x, y: np.exp(W(x < 0, -inf, W(y < 0, x, -inf))),
        lambda x, y: W(x < 0, 0, ones(y < 0)) + 0 * x,
    ),
    "−∞ last": (
        lambda x, y: np.exp(W(x < 0, W(y < 0, x, -inf), -inf)),
        lambda x, y: W(x < 0, ones(y < 0), 0) + 0 * x,
    ),
    "two masks": (
        lambda x, y: np.exp(W(x < 0, W(y < 0, x, -inf), W(y < 1, y, -inf))),
        lambda x, y: W(x < 0, W(y < 0, np.exp(x), 0), np.exp(y)),
    ),
    "a sum of masks": (
        lambda x, y: np.exp(W(x < 0, x, -inf) + W(y < 0, y, -inf)),
        lambda x, y: W(x < 0, np.exp(x + y), 0),
    ),
    "or for and": (
        lambda x, y: np.exp(W(x < 0, x, -inf) + W(y < 0, y, -inf)),
        lambda x, y: W((x < 0) | (y < 0), np.exp(x + y), 0),
    ),
    "twice a mask": (lambda x, y: np.exp(2 * W(x < 0, x, -inf)), lambda x, y: W(x < 0, np.exp(x), 0)),
    "the other side": (lambda x, y: np.exp(W(x < 0, x, -inf)), lambda x, y: W(x < 0, 0, np.exp(x))),
    "seen": (lambda x, y: ones(W(x < 0, x, -inf) > -inf) + 0 * x, lambda x, y: 1 + 0 * x),
    "not seen": (lambda x, y: ones(W(x < 0, x, -inf) > -inf) + 0 * x, lambda x, y: W(x < 0, 0, 1) + 0 * x),
    "a number for a condition": (lambda x, y: W(x, y, 0), lambda x, y: x * y),
    "a sum for a condition": (
        lambda x, y: W(ones(x < 0) + ones(y < 0), y, x),
        lambda x, y: x + (ones(x < 0) + ones(y < 0)) * (y - x),
    ),
    "2 for a condition": (lambda x, y: W(2 * ones(x < 0), y, x), lambda x, y: x + 2 * ones(x < 0) * (y - x)),
    "a position for a condition": (lambda x, y: W(rows(x), x, y), lambda x, y: y + rows(x) * (x - y)),
    "the square of a sum": (
        lambda x, y: (ones(x < 0) + ones(y < 0)) ** 2 + 0 * x,
        lambda x, y: ones(x < 0) + ones(y < 0) + 0 * x,
    ),
    "the fifth power": (
        lambda x, y: (ones(x < 0) + ones(y < 0)) ** 5 + 0 * x,
        lambda x, y: ones(x < 0) + ones(y < 0) + 0 * x,
    ),
    "the square of a position": (lambda x, y: rows(x) ** 2 * x, lambda x, y: rows(x) * x),
    "an inverse": (lambda x, y: y / (1 + ones(x < 0)), lambda x, y: y * (1 + ones(x < 0))),
    "an inverse of a choice": (lambda x, y: 1 / W(x < 0, x, y), lambda x, y: 1 / x),
    "exp of c log": (lambda x, y: np.exp(ones(x < 0) * np.log(y)), lambda x, y: W(x < 0, y, 0)),
    "exp of a choice of logs": (
        lambda x, y: np.exp(W(x < 0, 2 * np.log(y), np.log(y))),
        lambda x, y: W(x < 0, y * y, y * y),
    ),
    "a log of −x": (lambda x, y: np.exp(W(x < 0, np.log(-x), x)), lambda x, y: -x * ones(x < 0)),
    "1/x in a branch": (lambda x, y: W(x > 0, 1 / W(x > 0, x, 0), 0), lambda x, y: 1 / x),
    "log x in a branch": (lambda x, y: W(x > 0, np.log(x), 0), lambda x, y: W(x > 0, np.log(x), 1)),
    "a root in a branch": (lambda x, y: W(x > 0, np.sqrt(x), 0) ** 2, lambda x, y: np.abs(x)),
    "another branch squared": (lambda x, y: W(x > 0, np.sqrt(x), 1) ** 2, lambda x, y: W(x > 0, x, 0)),
    "cancelled in a branch": (lambda x, y: W(x < 0, 1 / y, 0) * y, lambda x, y: 1 + 0 * x),
    "tanh of −u": (lambda x, y: np.tanh(-W(x < 0, y, 0)), lambda x, y: W(x < 0, np.tanh(y), 0)),
    "exp of −u": (lambda x, y: np.exp(-W(x < 0, y, 0)), lambda x, y: W(x < 0, np.exp(-y), 0)),
    "a sum squared": (lambda x, y: ones(x > 0).sum() ** 2 + 0 * x, lambda x, y: ones(x > 0).sum() + 0 * x),
    "another axis": (
        lambda x, y: ones(x[:, None] > x).sum(1) + 0 * x,
        lambda x, y: ones(x[:, None] > x).sum(0) + 0 * x,
    ),
    "transposed": (
        lambda x, y: W(earlier(x), y * x[:, None], 0).sum(1),
        lambda x, y: W(~earlier(x), y * x[:, None], 0).sum(1),
    ),
    "other conditions": (
        lambda x, y: (ones(x[:, None] > y) * ones(x > y[:, None])).sum(1) + 0 * x,
        lambda x, y: ones(x[:, None] > y).sum(1) + 0 * x,
    ),
    "weights outside": (lambda x, y: (rows(x) * x).sum() + 0 * x, lambda x, y: rows(x) * x.sum()),
    "i² = 0": (lambda x, y: W(rows(x) ** 2 == 0, x, 0), lambda x, y: 0 * x),
    "c x² = 0": (lambda x, y: W(W(y > 0, x, 0) ** 2 == 0, y, 0), lambda x, y: 0 * x),
    "Σ c x² = 0": (lambda x, y: W((W(y > 0, x, 0) ** 2).sum() == 0, y, 0), lambda x, y: 0 * x),
    "Σ exp of masks = 0": (lambda x, y: W(np.exp(W(y > 0, x, -inf)).sum() == 0, y, 0), lambda x, y: 0 * x),
    "the last position": (lambda x, y: W(rows(x) + 1 == x.shape[0], x, y), lambda x, y: y),
    "the first position": (lambda x, y: W(rows(x) > 0, x, y), lambda x, y: x),
    "hidden in the sum": (
        lambda x, y: functions.softmax(W(x < y, x, -inf)),
        lambda x, y: W(x < y, np.exp(x), 0) / np.exp(x).sum(),
    ),
    "hidden in the sum only": (
        lambda x, y: functions.softmax(W(x < y, x, -inf)),
        lambda x, y: np.exp(x) / W(x < y, np.exp(x), 0).sum(),
    ),
    "xor": (lambda x, y: W((x < 0) ^ (y < 0), x, y), lambda x, y: W((x < 0) | (y < 0), x, y)),
    "not or": (lambda x, y: W(~((x < 0) | (y < 0)), x, y), lambda x, y: W(~(x < 0) | ~(y < 0), x, y)),
    "all pairs for equal ones": (
        lambda x, y: W(rows(x)[:, None] == rows(x), x[:, None] * y, 0).sum(1),
        lambda x, y: x * y.sum(),
    ),
    "an axis of length 1": (lambda x, y: W(np.arange(1) == rows(x), y, 0), lambda x, y: y + 0),
    "a window": (lambda x, y: W(np.abs(rows(x)[:, None] - rows(x)) < 1, y, 0).sum(1), lambda x, y: 0 * y),
}
EQUAL = {
    "−∞ first": (DIFFERENT["−∞ first"][0], lambda x, y: W(x < 0, 0, W(y < 0, np.exp(x), 0))),
    "−∞ last": (DIFFERENT["−∞ last"][0], lambda x, y: W(x < 0, W(y < 0, np.exp(x), 0), 0)),
    "three masks": (
        lambda x, y: np.exp(W(y < 0, -inf, W(y < 1, -inf, W(y < 2, y, -inf)))),
        lambda x, y: W(y < 0, 0, W(y < 1, 0, W(y < 2, np.exp(y), 0))),
    ),
    "a sum of masks": (DIFFERENT["a sum of masks"][0], lambda x, y: W((x < 0) & (y < 0), np.exp(x + y), 0)),
    "nested and": (
        lambda x, y: np.exp(W(x < 0, W(y < 0, x, -inf), -inf)),
        lambda x, y: np.exp(W((x < 0) & (y < 0), x, -inf)),
    ),
    "the other truth": (lambda x, y: 1 - ones(x < 0) + 0 * x, lambda x, y: W(x < 0, 0, 1) + 0 * x),
    "a square": (lambda x, y: W(x < 0, x, y) ** 2, lambda x, y: W(x < 0, x**2, y**2)),
    "log x in a branch": (lambda x, y: np.exp(W(x > 0, np.log(x), -inf)), lambda x, y: W(x > 0, x, 0)),
    "1/x in a branch": (lambda x, y: W(x != 0, 1 / x, 0) * x, lambda x, y: ones(x != 0) + 0 * x),
    "de Morgan": (lambda x, y: W(~((x < 0) | (y < 0)), x, y), lambda x, y: W(~(x < 0) & ~(y < 0), x, y)),
    "xor": (lambda x, y: W((x < 0) ^ (y < 0), x, y), lambda x, y: W(x < 0, W(y < 0, y, x), W(y < 0, x, y))),
    "softmax": (
        lambda x, y: functions.softmax(W(x < y, x, -inf)),
        lambda x, y: W(x < y, np.exp(x), 0) / W(x < y, np.exp(x), 0).sum(),
    ),
    "factors outside": (
        lambda x, y: W(earlier(x), y * x[:, None], 0).sum(1),
        lambda x, y: x * W(earlier(x), y, 0).sum(1),
    ),
    "positions": (
        lambda x, y: (rows(x) * x).sum() + (rows(x) * y).sum() + 0 * x,
        lambda x, y: (rows(x) * (x + y)).sum() + 0 * x,
    ),
    "exchanged": (
        lambda x, y: ones(x[:, None] < x).sum() + 0 * x,
        lambda x, y: ones(x[:, None] > x).sum() + 0 * x,
    ),
}
# Of matrices X and vectors y along their rows.
OF_MATRICES = {
    "rows for columns": (
        lambda X, y: W(rows(X) <= columns(X), X, 0),
        lambda X, y: W(rows(X) >= columns(X), X, 0),
    ),
    "positions of columns": (lambda X, y: (rows(X) * X).sum(1), lambda X, y: (columns(X) * X).sum(1)),
    "another size": (lambda X, y: W(rows(X) < X.shape[1], X, 0), lambda X, y: W(rows(X) < X.shape[0], X, 0)),
    "softmax of the rest": (
        lambda X, y: functions.softmax(W(rows(X) >= columns(X), X, -inf)),
        lambda X, y: W(rows(X) >= columns(X), functions.softmax(X), 0),
    ),
    "an axis of softmax": (
        lambda X, y: functions.softmax(W(X < 0, X, -inf), 0),
        lambda X, y: functions.softmax(W(X < 0, X, -inf), 1),
    ),
    "a mean over all": (
        lambda X, y: W(X < 0, X, 0).sum(1) / ones(X < 0).sum(1),
        lambda X, y: W(X < 0, X, 0).sum(1) / X.shape[1],
    ),
    "rows without keys": (lambda X, y: W(ones(X < 0).sum(1) > 0, y, 0), lambda X, y: y + 0),
    "the other side of a system": (
        lambda X, y: np.linalg.solve(W(y[:, None] > 0, y[:, None] * y, 0) + np.eye(X.shape[0]), y),
        lambda X, y: np.linalg.solve(W(y > 0, y[:, None] * y, 0) + np.eye(X.shape[0]), y),
    ),
}


def shapes_of(f, sizes=(n, d)):
    return [sizes, sizes[:1]] if f.__code__.co_varnames[0] == "X" else [sizes[:1]] * 2


def claim_of(f, g, sizes=(n, d)):
    """That two functions are equal, and their first inputs."""
    a, b = (symad.trace(h, shapes_of(f, sizes)) for h in (f, g))
    return Derived(Derivative("value", a.output_nodes), with_inputs_of(a, b).output_nodes)


def values(f, size, seed):
    """What NumPy computes, with the inputs."""
    rng = np.random.default_rng(seed)
    arrays = [2 * rng.normal(size=shape) for shape in shapes_of(f, size)]
    with np.errstate(all="ignore"):
        return arrays, np.asarray(f(*arrays), float)


def gap(f, g):
    """The largest difference at some points where both have values."""
    found = []
    for size, seed in itertools.product(((1, 2), (2, 1), (2, 3), (3, 3), (4, 2)), range(8)):
        a, b = (values(h, size, seed)[1] for h in (f, g))
        both = np.isfinite(a) & np.isfinite(b)
        found += list((np.abs(a - b) / (1 + np.abs(a)))[both])
    return max(found)


@pytest.mark.parametrize("name", [*DIFFERENT, *OF_MATRICES])
def test_what_differs_has_no_proof(name):
    f, g = (DIFFERENT | OF_MATRICES)[name]
    assert gap(f, g) > 1e-3
    assert not find_for_all_sizes([claim_of(f, g)], [GOAL]).proofs


@pytest.mark.slow
@pytest.mark.parametrize("name", [*DIFFERENT, *OF_MATRICES])
def test_what_differs_is_not_certified(name):
    f, g = (DIFFERENT | OF_MATRICES)[name]
    a, b = (symad.trace(h, shapes_of(f)) for h in (f, g))
    assert symad.equal(a, b).status in ("refuted", "undecided")


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_is_proved(name):
    f, g = EQUAL[name]
    assert gap(f, g) < 1e-9
    assert find_for_all_sizes([claim_of(f, g)], [GOAL]).proofs
    two = find([claim_of(f, g, (2, 2))], [GOAL, (0, 0, 1)], Limits(20_000, 300))
    assert len(two.goals) == 2 or name == "log x in a branch"  # its branch has no value elsewhere


def test_steps_of_other_claims_prove_nothing():
    """The steps that prove a pair, for the same left side and a right side that differs."""
    for name in EQUAL.keys() & DIFFERENT.keys():
        (f, right), (_, wrong) = EQUAL[name], DIFFERENT[name]
        (proof,) = find_for_all_sizes([claim_of(f, right)], [GOAL]).proofs
        assert replay([claim_of(f, right)], proof) > 0
        plan, (opened, steps) = proof.steps
        for k in range(len(steps) + 1):
            forged = Proof((0,), (GOAL,), (plan, (opened, steps[:k])), 0, "networks")
            with pytest.raises(Refused):
                replay([claim_of(f, wrong)], forged)


def test_numbers_that_stand_for_conditions():
    """A choice by a number takes the first branch wherever the number is not 0."""
    x, y, z = (sources.input_node(sp.MatrixSymbol(name, n, 1), (n,)) for name in "xyz")
    zero, one, hidden = (broadcast_to(sources.constant(value), (n,)) for value in (0, 1, -inf))
    mask = Node.of(Select(), (x, y, hidden))
    true = Node.of(Select(), (x, one, zero))
    for left, right in [
        (Node.of(Select(), (x, y, z)), add(z, mul(x, sub(y, z)))),
        (Node.of(Select(), (add(x, x), y, z)), add(z, mul(add(x, x), sub(y, z)))),
        (apply(sp.exp, mask), mul(x, apply(sp.exp, y))),
        (apply(sp.exp, add(mask, mask)), mul(x, x, apply(sp.exp, add(y, y)))),
        (true, x),
        (Node.of(Select(), (true, y, z)), add(z, mul(x, sub(y, z)))),
    ]:
        claim = Derived(Derivative("value", (left,)), (right,))
        assert not find_for_all_sizes([claim], [GOAL]).proofs


# ---- forms at points ------------------------------------------------------------------------------------


class Point:
    """The value of a form at a point, by the argument for its soundness: conditions first.

    Conditions and sizes become numbers, equal monomials are collected, and those that are left are evaluated.
    """

    def __init__(self, machine, inputs, sizes):
        self.machine, self.inputs, self.sizes = machine, inputs, sizes

    def form(self, form, at):
        collected = {}
        for network in form:
            bound = [range(self.sizes.get(s, s)) for s in network.sums.values()]
            for places in itertools.product(*bound):
                number, factors = self.monomial(network, at | dict(zip(network.sums, places, strict=True)))
                collected[factors] = collected.get(factors, 0) + number
        left = [(number, factors) for factors, number in collected.items() if abs(number) > 1e-12]
        return sum(
            number * math.prod(self.power(self.atom(a, i), e) for (a, i), e in factors)
            for number, factors in left
        )

    def monomial(self, network, at):
        number, factors = network.number, {}
        for a, index, e in network.factors:
            places = tuple(at[i] if i < 0 else i for i in index)
            if a == DELTA or a in self.machine.conditions:
                truth = places[0] == places[1] if a == DELTA else self.atom(a, places)
                number *= truth == 1  # a condition without value hides nothing: any number will do
            elif self.machine.atoms[a].data in self.sizes:
                number *= self.sizes[self.machine.atoms[a].data] ** e
            else:
                factors[a, places] = factors.get((a, places), 0) + e
        return number, tuple(sorted(factors.items()))

    def power(self, base, exponent):
        with np.errstate(all="ignore"):
            return np.float64(base) ** float(exponent)

    def atom(self, number, places):
        atom = self.machine.atoms[number]
        if atom.kind == "input":
            return places[0] if atom.data is sources.Iota else self.inputs[atom.data][places]
        x = [self.form(form, {AXIS + k: i for k, i in enumerate(places)}) for form in atom.forms]
        if atom.kind in ("sum", "truth", "root"):
            return x[0] if x else float(atom.data)
        table = {"less": np.less, "equal": np.equal, "real": np.isfinite, "abs": np.abs, "exp": np.exp,
                 "log": np.log, "tanh": np.tanh, "select": lambda c, a, b: a if c else b}  # fmt: skip
        with np.errstate(all="ignore"):
            return table[atom.data](*x)


WRITTEN = [(name, f) for pairs in (DIFFERENT, EQUAL) for name, pair in pairs.items() for f in pair]


@pytest.mark.thorough
def test_forms_are_what_numpy_computes():
    """At all points where a function has a value, its form has this value, whatever hidden branches do."""
    compared = 0
    for name, f in WRITTEN:
        graph, machine = symad.trace(f, shapes_of(f)), IsomorphismFinder()
        try:
            form = machine.form(ForAllSizes(Terms()).element(graph.output_nodes[0], (FREE,)))
        except Refused:
            assert name == "twice a mask"  # −∞ is no factor
            continue
        for size, seed in itertools.product((1, 2, 3), range(3)):
            arrays, expected = values(f, (size, size), seed)
            inputs = dict(zip((node.op for node in graph.input_nodes), arrays, strict=True))
            point = Point(machine, inputs, {n: size})
            for i in np.flatnonzero(np.isfinite(expected)):
                compared += 1
                assert point.form(form, {FREE: i}) == pytest.approx(expected[i], rel=1e-9, abs=1e-12), name
    assert compared > 1000

"""Derivatives and identities for all sizes: conditions, selections, slices and gathered rows included."""

from functools import partial

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.claims import Derivative, Derived
from symad.models.sequences import ar
from symad.verification.proof.node_proofs import find_for_all_sizes
from symad.verification.users import with_inputs_of

n, d, k = sp.symbols("n d k", integer=True, positive=True)

CERTIFIED = {
    "a quadratic form": (lambda X, W: ((X @ W) ** 2).sum(), [(n, d), (d, k)]),
    "least squares": (lambda X, w, y: ((X @ w - y) ** 2).sum(), [(n, d), (d,), (n,)]),
    "logistic": (lambda X, w, y: np.logaddexp(0, -y * (X @ w)).sum(), [(n, d), (d,), (n,)]),
    "leaky ReLU": (lambda x: np.where(x > 0, x, 0.2 * x).sum(), [(n,)]),
    "differences": (lambda x: ((x[1:] - x[:-1]) ** 2).sum(), [(n,)]),
    "a linear map": (lambda X, w: X @ w, [(n, d), (d,)]),
}


NOT_REPLAYED = {"differences"}
"""Slices have no rule for all sizes in the checker: they are compared at chosen sizes."""


def known_for_all_sizes(certificate):
    """Whether every claim is replayed by the checker, for all sizes."""
    return all(e.checked for e in certificate.entries if " at " not in e.name)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CERTIFIED)
def test_derivatives_are_known_for_all_sizes(name):
    f, shapes = CERTIFIED[name]
    certificate = symad.check(symad.trace(f, shapes))
    assert certificate.status == ("measured" if name in NOT_REPLAYED else "proved"), str(certificate)
    assert known_for_all_sizes(certificate) == (name not in NOT_REPLAYED)


@pytest.mark.thorough
def test_autoregression_of_any_order_and_length():
    certificate = symad.check(symad.trace(ar.loss(), [ar.w, ar.b, ar.x]))
    assert certificate.status == "measured"  # it has slices


def test_what_the_checker_derives_is_assumed_by_nobody():
    f, shapes = CERTIFIED["least squares"]
    certificate = symad.check(symad.trace(f, shapes))
    assert not any("gradient (reverse) is right" in text for text in certificate.assumes)


DIFFERENT = {
    "other ends": (lambda x: (x[1:] ** 2).sum(), lambda x: (x[:-1] ** 2).sum()),
    "other places": (lambda x: x[:2].sum(), lambda x: x[1:3].sum()),
    "neighbours": (lambda x: (x[1:] * x[:-1]).sum(), lambda x: (x[1:] * x[1:]).sum()),
    "reversed": (lambda x: x[::-1], lambda x: x),
    "the other branch": (lambda x: np.where(x > 0, x, 0).sum(), lambda x: np.where(x < 0, x, 0).sum()),
    "weights": (lambda x: (np.arange(x.shape[0]) * x).sum(), lambda x: x.sum()),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_refuted(name):
    a, b = (symad.trace(f, [(n,)]) for f in DIFFERENT[name])
    assert symad.equal(a, b).status == "refuted"


EQUAL = {
    "both branches": (lambda x: (np.where(x > 0, x, 0) + np.where(x > 0, 0, x)).sum(), lambda x: x.sum()),
    "twice the same condition": (
        lambda x: np.where(x > 0, np.where(x > 0, x, 7), 0),
        lambda x: np.where(x > 0, x, 0),
    ),
    "reversed twice": (lambda x: x[::-1][::-1], lambda x: x),
}


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_is_certified(name):
    a, b = (symad.trace(f, [(n,)]) for f in EQUAL[name])
    certificate = symad.equal(a, b)
    assert certificate.status == ("measured" if name == "reversed twice" else "proved")


def _largest(z):
    return z.max(-1, keepdims=True)


SHIFTED = {
    "a vector": (
        lambda z: np.log(np.exp(z - z.max()).sum()) + z.max(),
        lambda z: np.log(np.exp(z).sum()),
        (n,),
    ),
    "rows": (
        lambda z: np.log(np.exp(z - _largest(z)).sum(-1)) + z.max(-1),
        lambda z: np.log(np.exp(z).sum(-1)),
        (n, d),
    ),
    "shares of rows": (
        lambda z: np.exp(z - _largest(z)) / np.exp(z - _largest(z)).sum(-1, keepdims=True),
        lambda z: np.exp(z) / np.exp(z).sum(-1, keepdims=True),
        (n, d),
    ),
    "a transposed matrix": (lambda z: z.T.max(0), lambda z: z.max(1), (n, d)),
}

VECTOR, ROWS = SHIFTED["a vector"][1], SHIFTED["rows"][1]

MISTAKEN = {
    "the sign of the shift": (lambda z: np.log(np.exp(z - z.max()).sum()) - z.max(), VECTOR, (n,)),
    "the smallest": (lambda z: np.log(np.exp(z - z.max()).sum()) + z.min(), VECTOR, (n,)),
    "the other axis": (lambda z: np.log(np.exp(z - _largest(z)).sum(-1)) + z.max(0), ROWS, (n, n)),
    "the axis of an extreme": (lambda z: z.T.max(0), lambda z: z.max(0), (n, n)),
    "the kind of an extreme": (lambda z: z.max(0), lambda z: z.min(0), (n, d)),
}


@pytest.mark.sample(2, without=("rows",))
@pytest.mark.parametrize("name", SHIFTED)
def test_a_shift_by_the_largest_element_makes_no_difference(name):
    left, right, shape = SHIFTED[name]
    """Extremes along axes have no rule for all sizes in the checker: chosen sizes are compared."""
    certificate = symad.equal(*[symad.trace(f, [shape]) for f in (left, right)], seed=1)
    told = " ".join(str(certificate).split())
    assert certificate.status == "measured" and "of other sizes nothing is known" in told


@pytest.mark.thorough
@pytest.mark.parametrize("name", MISTAKEN)
def test_a_mistaken_shift_is_refuted(name):
    left, right, shape = MISTAKEN[name]
    assert symad.equal(*[symad.trace(f, [shape]) for f in (left, right)], seed=1).status == "refuted"


MANY = 50_000
CONFUSED = {
    "each element": (lambda x, p: x, lambda x, p: np.broadcast_to(x[p], (MANY,))),
    "each function": (lambda x, p: np.exp(x), lambda x, p: np.broadcast_to(np.exp(x[p]), (MANY,))),
    "a sum": (lambda x, p: (x * x).sum(), lambda x, p: (x * x[p]).sum()),
    "a sum of functions": (lambda x, p: np.exp(x + x).sum(), lambda x, p: np.exp(x + x[p]).sum()),
}


@pytest.mark.parametrize("name", CONFUSED)
@pytest.mark.parametrize("position", [0, 10_000, 20_000, 30_000, 40_000])
def test_a_position_is_no_index_symbol_however_large(name, position):
    left, right = (symad.trace(partial(f, p=position), [(MANY,)]) for f in CONFUSED[name])
    for one, other in ((left, left), (left, right)):
        claim = Derived(Derivative("value", one.output_nodes), with_inputs_of(one, other).output_nodes)
        assert bool(find_for_all_sizes([claim], [(0, 0, 0)]).goals) == (one is other)

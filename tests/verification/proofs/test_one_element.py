"""Claims about arrays of any size are decided by one element, where it stands for all, and nowhere else."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.verification import Certificate
from symad.verification.rewriting.restated.by_elements import by_one_element
from symad.verification.users import with_inputs_of

n, d = sp.symbols("n d", integer=True, positive=True)

GRADIENTS = {
    "relu": (lambda x: np.maximum(x, 0).sum(), lambda x: np.where(x > 0, 1, 0), "proved"),
    "leaky": (lambda x: np.where(x > 0, x, x / 5).sum(), lambda x: np.where(x > 0, 1, 0.2), "refuted"),
    "huber": (
        lambda x: np.where(np.abs(x) < 1, x**2 / 2, np.abs(x) - sp.Rational(1, 2)).sum(),
        lambda x: np.clip(x, -1, 1),
        "tested",
    ),
    "wrong": (lambda x: np.maximum(x, 0).sum(), lambda x: np.where(x > 0, 1, x), "refuted"),
    "mean": (lambda x: np.maximum(x, 0).mean(), lambda x: np.where(x > 0, 1, 0) / x.shape[0], "proved"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_with_conditions_are_decided_for_all_sizes(name):
    f, gradient, status = GRADIENTS[name]
    certificate = symad.verify(symad.trace(f, [(n,)]), gradient=symad.trace(gradient, [(n,)]), seed=1)
    assert certificate.status == status, str(certificate)
    assert status == "refuted" or all("for all n" in entry.claim for entry in certificate.entries)
    kept = Certificate.from_json(certificate.to_json()).recheck(seed=1)
    assert kept.status == status


def test_broadcast_arrays_have_elements_of_their_own():
    f = symad.trace(lambda x, b: np.maximum(x + b, 0), [(n, d), (d,)])
    g = symad.trace(lambda x, b: np.where(x + b > 0, x + b, 0), [(n, d), (d,)])
    assert symad.equal(f, g).status == "tested"


@pytest.mark.parametrize(("slope", "status"), [(1, "tested"), (2, "refuted")])
def test_domains_are_conditions_on_each_element(slope, status):
    f = symad.trace(lambda x: np.abs(x).sum(), [(n,)])
    gradient = symad.trace(lambda x: slope * np.ones_like(x), [(n,)])
    assert symad.verify(f, gradient=gradient, where=lambda x: x > 0).status == status


APART = {
    "pairs": (lambda x: np.where(x[:, None] == x[None, :], 1, 0), lambda x: 0 * x[:, None] * x, [(n,)]),
    "differences": (
        lambda x: np.maximum(x[:, None] - x, 0),
        lambda x: np.where(x[:, None] > x, x[:, None] - x, 0),
        [(n,)],
    ),
    "a transpose": (lambda x: np.maximum(x, 0), lambda x: np.maximum(x.T, 0), [(n, n)]),
    "reversed": (lambda x: np.maximum(x, 0), lambda x: np.maximum(x[::-1], 0), [(n,)]),
    "a mean": (lambda x: np.maximum(x - x.mean(), 0), lambda x: np.maximum(x, 0), [(n,)]),
    "weights": (lambda x: np.arange(n) * x, lambda x: x, [(n,)]),
    "a largest element": (lambda x: np.maximum(x, 0), lambda x: np.maximum(x, x.max()), [(n,)]),
    "scalars": (lambda x: np.stack([x[0], x[1]]), lambda x: np.stack([x[1], x[0]]), [(2,)]),
    "running sums": (lambda x: np.cumsum(np.abs(x)), lambda x: np.abs(x), [(n,)]),
}


@pytest.mark.parametrize("name", APART)
def test_where_elements_depend_on_other_elements_none_stands_for_all(name):
    f, g, shapes = APART[name]
    left = symad.trace(f, shapes)
    right = with_inputs_of(left, symad.trace(g, shapes))
    assert by_one_element([left.output_nodes[0], right.output_nodes[0]]) is None


def test_promises_about_arrays_hold_for_the_element():
    x = sp.IndexedBase("x", shape=(n,), positive=True)
    f, g = symad.trace(lambda x: np.abs(x), [x]), symad.trace(lambda x: 1 * x, [x])
    assert symad.equal(f, g).status == "tested"
    free = [(n,)]
    assert symad.equal(symad.trace(np.abs, free), symad.trace(lambda x: 1 * x, free)).status == "refuted"

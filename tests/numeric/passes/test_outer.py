"""Contractions over an axis of one element."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.numeric import lower

m, n = sp.symbols("m n", integer=True, positive=True)

CASES = {
    "column by row": ("ik,kj->ij", (5, 1), (1, 7)),
    "column by column": ("ik,jk->ij", (5, 1), (7, 1)),
    "stacks": ("bik,bkj->bij", (3, 5, 1), (3, 1, 7)),
    "two axes": ("ikl,klj->ij", (5, 1, 1), (1, 1, 7)),
    "an axis of one that stays": ("ik,kj->ij", (1, 1), (1, 7)),
    "more elements": ("ik,kj->ij", (5, 2), (2, 7)),
    "transposed": ("ik,kj->ji", (5, 1), (1, 7)),
    "axes exchanged": ("bik,kj->ibj", (3, 5, 1), (1, 7)),
    "a diagonal": ("iik,kj->ij", (5, 5, 1), (1, 7)),
    "an axis of one operand": ("ik,j->ij", (5, 1), (7,)),
    "a number": ("ik,ik->", (5, 1), (5, 1)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_against_einsum(name, backend):
    spec, *shapes = CASES[name]
    graph = symad.trace(lambda a, b: np.einsum(spec, a, b), shapes)
    rng = np.random.default_rng(0)
    values = [rng.normal(size=s) for s in shapes]
    np.testing.assert_allclose(lower(graph, backend=backend)(*values), np.einsum(spec, *values), rtol=1e-13)


def test_sizes_that_are_not_known():
    graph = symad.trace(lambda a, b: a @ b, [(m, n), (n, 4)])
    kernel = lower(graph)
    for rows, inner in ((3, 1), (2, 5)):
        a, b = np.ones((rows, inner)), np.arange(4.0 * inner).reshape(inner, 4)
        np.testing.assert_allclose(kernel(a, b), a @ b)


def test_the_cotangent_of_one_output():
    def loss(x, w, v):
        return np.sum((np.maximum(x @ w, 0) @ v) ** 2)

    shapes = [(6, 5), (5, 4), (4, 1)]
    kernel = lower(symad.gradient(symad.trace(loss, shapes), wrt=[0, 1, 2]))
    rng = np.random.default_rng(1)
    x, w, v = (rng.normal(size=s) for s in shapes)
    h = np.maximum(x @ w, 0)
    y_bar = 2 * h @ v
    h_bar = y_bar @ v.T * (x @ w > 0)
    for got, wanted in zip(kernel(x, w, v), (h_bar @ w.T, x.T @ h_bar, h.T @ y_bar), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)

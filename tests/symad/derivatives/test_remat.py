"""Rematerialised parts: the same values and derivatives; inner values are recomputed instead of kept."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import sympy as sp

import symad
from symad import functions
from symad.derivatives.hessian import MODES
from symad.higher_order.remat import Remat
from symad.numeric import lower

RNG = np.random.default_rng(0)
x, y = sp.symbols("x y", real=True)


def block(p, h):
    z = np.tanh(p["W"] @ h)
    return h + np.sin(z) * z, np.sum(z**3)


def network(layer, depth):
    def f(W, V, h):
        total = 0.0
        for k in range(depth):
            h, extra = layer({"W": W if k % 2 else V}, h)
            total = total + extra
        return total + np.sum(h**2)

    return symad.trace(f, inputs=[(3, 3), (3, 3), (3,)])


POINT = [RNG.normal(size=s) for s in ((3, 3), (3, 3), (3,))]


def close(found, expected, rtol=1e-12):
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(f, e, rtol=rtol, atol=1e-13)


def test_values_and_gradients_are_the_same():
    plain, again = network(block, 3), network(symad.remat(block), 3)
    assert sum(isinstance(n.op, Remat) for n in again.nodes) == 3
    assert again(*POINT) == pytest.approx(plain(*POINT), rel=1e-14)
    expected = symad.value_and_gradient(plain)(*POINT)
    close(symad.value_and_gradient(again)(*POINT), expected)
    close(lower(symad.value_and_gradient(again))(*POINT), expected)
    close(symad.pushforward(again)(*POINT, *POINT), symad.pushforward(plain)(*POINT, *POINT))


@pytest.mark.parametrize("mode", MODES)
def test_hessians(mode):
    plain, again = network(block, 2), network(functions.remat(block), 2)
    for row, other in zip(
        symad.hessian(again, wrt=["W", "h"], mode=mode)(*POINT),
        symad.hessian(plain, wrt=["W", "h"])(*POINT),
        strict=True,
    ):
        close(row, other, 1e-10)


def test_equal_parts_are_computed_again_all_the_same():
    """The part's value is in the graph outside of it too, and is not taken from there."""

    def f(h):
        return np.sum(np.sin(h) * symad.remat(lambda v: np.cos(np.sin(v)))(h))

    graph = symad.trace(f, inputs=[(5,)])
    source = lower(symad.gradient(graph)).source
    plain = symad.trace(lambda h: np.sum(np.sin(h) * np.cos(np.sin(h))), inputs=[(5,)])
    assert source.count("np.sin(") == 1 + 1 + 2  # outside, in the part, and in its derivative twice
    assert lower(symad.gradient(plain)).source.count("np.sin(") == 2
    v = RNG.normal(size=5)
    np.testing.assert_allclose(symad.gradient(graph)(v), symad.gradient(plain)(v), rtol=1e-13)


def test_a_graph_and_an_expression():
    expression = sp.exp(sp.sin(x) * y) + x / y
    part = symad.remat(symad.trace(expression, inputs=[x, y]))
    close(symad.gradient(part)(0.3, 0.7), symad.gradient(expression)(0.3, 0.7))
    assert symad.remat(expression)(0.3, 0.7) == pytest.approx(float(expression.subs({x: 0.3, y: 0.7})))


def test_arrays_pass_through():
    assert symad.remat(lambda a, b=1.0: a * b)(3.0, b=2.0) == 6.0


def test_inside_a_scan_and_in_batches():
    def f(W, xs, recompute):
        def step(h, v):
            return np.tanh(W @ h + np.sin(v) * h)

        return np.sum(functions.scan(symad.remat(step) if recompute else step, np.ones(3), xs) ** 2)

    graphs = [symad.trace(lambda W, xs, r=r: f(W, xs, r), inputs=[(3, 3), (6, 3)]) for r in (False, True)]
    w, xs = POINT[0], RNG.normal(size=(6, 3))
    close(symad.gradient(graphs[1])(w, xs), symad.gradient(graphs[0])(w, xs))
    close(lower(symad.gradient(graphs[1]))(w, xs), symad.gradient(graphs[0])(w, xs))
    rows = np.stack([xs, -xs])
    batched = symad.vmap(symad.gradient(graphs[1], wrt="W"), (None, 0))
    np.testing.assert_allclose(
        batched(w, rows), [symad.gradient(graphs[0], wrt="W")(w, r) for r in rows], rtol=1e-12
    )


@pytest.mark.thorough
def test_measured_memory_falls():
    """A chain of 30 blocks with five inner values each: what is kept falls from all to the states."""
    n, depth = 50_000, 30

    def inner(h):
        return h + 0.1 * np.sin(np.cos(np.exp(-np.square(np.sin(h)))))

    def peak(layer):
        def f(h):
            for _ in range(depth):
                h = layer(h)
            return np.sum(h)

        kernel = lower(symad.gradient(symad.trace(f, inputs=[(n,)])))
        h = RNG.normal(size=n)
        tracemalloc.start()  # the first call: later ones use its memory again
        found = kernel(h)
        size = tracemalloc.get_traced_memory()[1] / (8 * n)
        tracemalloc.stop()
        return size, found

    (everything, expected), (states, found) = peak(inner), peak(symad.remat(inner))
    assert states < 2.5 * depth
    assert states < 0.6 * everything
    assert np.size(found) == np.size(expected) == n

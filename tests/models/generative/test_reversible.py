"""Reversible blocks: the inverse as an identity, gradients against stored activations, memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import ShapeError
from symad.models.layers.reversible import forward, inverse, reversible
from symad.numeric import lower

RNG = np.random.default_rng(0)
N = 4


def F(x, W, V):
    return np.tanh(W @ x)


def G(y, W, V):
    return np.sin(V @ y) * y


def loss(y1, y2, target):
    return np.sum((y1 - target) ** 2) + np.sum(y1 * y2)


def parameters(depth):
    return [0.5 * RNG.normal(size=(depth, N, N)) for _ in range(2)]


def stored(depth, x1, x2, theta, target):
    """The whole chain as one graph."""

    def f(x1, x2, W, V, target):
        for k in range(depth):
            x1, x2 = forward(F, G, x1, x2, W[k], V[k])
        return loss(x1, x2, target)

    shapes = [(N,), (N,), (depth, N, N), (depth, N, N), (N,)]
    return symad.value_and_gradient(symad.trace(f, inputs=shapes), wrt=[0, 1, 2, 3])(x1, x2, *theta, target)


def test_the_inverse_is_proved_for_any_two_functions():
    """With F and G undefined functions, both compositions are the identity, term by term."""
    x1, x2 = sp.symbols("x1 x2", real=True)
    f, g = sp.Function("F"), sp.Function("G")
    assert inverse(f, g, *forward(f, g, x1, x2)) == (x1, x2)
    assert forward(f, g, *inverse(f, g, x1, x2)) == (x1, x2)


def test_the_inverse_of_a_network_is_proved():
    """For the F and G of these tests, by the equality of their graphs."""
    x1, x2 = (sp.MatrixSymbol(name, N, 1) for name in ("x", "z"))
    W, V = (sp.MatrixSymbol(name, N, N) for name in "WV")
    inputs = [x1, x2, W, V]

    def back_again(k):
        def f(x1, x2, W, V):
            return inverse(F, G, *forward(F, G, x1, x2, W, V), W, V)[k]

        return symad.trace(f, inputs=inputs)

    for k, half in enumerate((x1, x2)):
        certificate = symad.equal(back_again(k), symad.trace(half, inputs=inputs))
        assert {entry.status for entry in certificate.entries} == {"proved"}


@pytest.mark.parametrize("compiled", [None, lower])
@pytest.mark.parametrize("depth", [1, 2, 12])
def test_gradients_are_those_of_stored_activations(compiled, depth):
    chain = reversible(F, G, loss, [(N,), (N, N), (N, N)], [(N,)], compiled)
    x1, x2, target = RNG.normal(size=(3, N))
    theta = parameters(depth)
    found = chain.value_and_gradient(x1, x2, theta, [target])
    for f, e in zip(found, stored(depth, x1, x2, theta, target), strict=True):
        np.testing.assert_allclose(f, e, rtol=1e-10, atol=1e-10)


def test_against_torch():
    torch = pytest.importorskip("torch")
    depth = 5
    x1, x2, target = RNG.normal(size=(3, N))
    theta = parameters(depth)
    t = [torch.tensor(v, requires_grad=True) for v in (x1, x2, *theta)]
    a, b = t[:2]
    for k in range(depth):
        a = a + torch.tanh(t[2][k] @ b)
        b = b + torch.sin(t[3][k] @ a) * a
    (torch.sum((a - torch.tensor(target)) ** 2) + torch.sum(a * b)).backward()
    chain = reversible(F, G, loss, [(N,), (N, N), (N, N)], [(N,)], lower)
    found = chain.value_and_gradient(x1, x2, theta, [target])[1:]
    for f, e in zip(found, t, strict=True):
        np.testing.assert_allclose(f, e.grad, rtol=1e-10, atol=1e-11)


def test_memory_does_not_grow_with_the_number_of_blocks():
    n = 20_000
    chain = reversible(
        lambda x, a: np.tanh(a * x), lambda y, a: np.sin(y) * a, lambda y1, y2: np.sum(y1 * y2), [(n,), ()],
        compiled=lower,
    )  # fmt: skip
    x1, x2 = RNG.normal(size=(2, n))
    peaks = []
    for depth in (4, 64):
        a = np.full(depth, 0.1)
        tracemalloc.start()
        chain.value_and_gradient(x1, x2, [a])
        peaks.append(tracemalloc.get_traced_memory()[1] / (8 * n))
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 1
    assert peaks[1] < 30  # numbers of the size of one half; 64 blocks stored would be 128 and more


def test_parameters_of_different_depths():
    chain = reversible(F, G, loss, [(N,), (N, N), (N, N)], [(N,)])
    with pytest.raises(ShapeError, match=r"of \[2, 3\] blocks"):
        chain.value_and_gradient(np.ones(N), np.ones(N), [np.ones((k, N, N)) for k in (2, 3)], [np.ones(N)])

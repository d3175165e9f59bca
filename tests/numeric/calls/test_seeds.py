"""Hessians and Jacobians of arrays whose unit seeds are never written out, against PyTorch."""

import itertools

import numpy as np
import pytest
import sympy

import symad
from symad import functions
from symad.core.dims import size
from symad.core.graph import Graph
from symad.derivatives.hessian import MODES
from symad.numeric import lower
from symad.numeric.passes import prepare
from symad.numeric.passes.algebra.merging import total, written_out
from symad.numeric.passes.algebra.networks import Misfit, Name, NetworkTerm, product, regrouped
from symad.numeric.passes.algebra.unit_seeds import factor_seeds
from symad.ops.basic.sources import array_constant

RNG = np.random.default_rng(5)


def normal(*shape):
    return RNG.normal(size=shape)


# ---- networks, against sums over all positions -----------------------------------------------------


def literal(term):
    """The array of a term, element by element (slow, by definition)."""
    names = list(dict.fromkeys((*term.names, *(n for _, own in term.factors for n in own))))
    result = np.zeros([n.size for n in term.names])
    for position in itertools.product(*(range(n.size) for n in names)):
        at = dict(zip(names, position, strict=True))
        value = 1.0
        for node, own in term.factors:
            value *= node.op.array[tuple(at[n] for n in own)] if own else node.op.value
        result[tuple(at[n] for n in term.names)] += value
    return result.reshape([int(size(n.size for n in axis)) for axis in term.axes])


def array_of(terms, shape):
    return Graph((), (written_out(terms, shape),))()


def random_term(pattern, shapes):
    """A term with axes of names as in ``pattern`` and a factor for each string of ``shapes``."""
    name = {letter: Name(number) for letter, number in zip("ijklm", (2, 3, 4, 2, 3), strict=True)}
    factors = [
        (array_constant(normal(*(name[x].size for x in own))), tuple(name[x] for x in own)) for own in shapes
    ]
    return NetworkTerm(tuple(factors), tuple(tuple(name[x] for x in axis) for axis in pattern))


@pytest.mark.parametrize(
    ("pattern", "shapes"),
    [
        (("ij", "k", "j"), ("ki", "kj")),
        (("i", "i"), ()),
        (("ij", "i", "j"), ()),
        (("ij", "k", "ji"), ("k",)),
        (("jk", "k", "j"), ("jk", "j", "k")),
        (("i", "l", "i"), ("il",)),
    ],
)
def test_terms_are_written_out(pattern, shapes):
    term = random_term(pattern, shapes)
    expected = literal(term)
    assert np.allclose(array_of([term], expected.shape), expected)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((("ij", "k", "j"), ("ki", "kj")), (("ij", "k", "m"), ("ki", "kjm"))),
        ((("ij", "i", "j"), ()), (("ij", "l", "m"), ("jl", "im"))),
        ((("ij", "i", "j"), ("i",)), (("ij", "i", "m"), ("jm",))),
        ((("ij", "k", "k"), ("k",)), (("ij", "k", "k"), ("ik", "j"))),
    ],
)
@pytest.mark.parametrize("most", [1, 4])
def test_terms_are_added(one, other, most):
    a, b = random_term(*one), random_term(*other)
    expected = literal(a) - literal(b)
    parts = total([(1, a), (-1, b)], most)
    assert len(parts) <= most
    assert np.allclose(sum(array_of([p], expected.shape) for p in parts), expected)


def test_terms_are_multiplied():
    a = random_term(("ij", "k", "j"), ("ki", "kj"))
    b = NetworkTerm(((array_constant(normal(4, 3)), (k := Name(4), j := Name(3))),), ((k,), (j,)))
    whole, matrix = literal(a), literal(b)
    for out in ("sk", "s", "jks", ""):
        expected = np.einsum(f"skj,kj->{out}", whole, matrix)
        found = product([a, b], ["skj", "kj"], out)
        assert np.allclose(array_of([found], expected.shape), expected)
    with pytest.raises(Misfit):
        product([a, b], ["skj", "jk"], "s")


def test_axes_are_cut_and_joined():
    term = random_term(("i", "i", "jk"), ("ij", "k"))
    expected = literal(term)
    assert np.allclose(array_of([regrouped(term, (4, 3, 4))], (4, 3, 4)), expected.reshape(4, 3, 4))
    with pytest.raises(Misfit):
        regrouped(term, (6, 8))
    diagonal = regrouped(NetworkTerm((), ((n := Name(6),), (n,))), (2, 3, 6))
    assert np.array_equal(array_of([diagonal], (2, 3, 6)), np.eye(6).reshape(2, 3, 6))


# ---- models, against PyTorch -----------------------------------------------------------------------


def tanh_network(xp, W, b, V, c, x, y):
    r = xp.tanh(xp.tanh(x @ W + b) @ V + c) - y
    return xp.mean(r**2)


def residual_network(xp, W, b, V, x):
    h = x @ W + b
    h = h + xp.tanh(h @ V)
    return xp.sum(xp.exp(-h) * h)


def weighted(xp, W, v, x):
    """Parameters that meet each other elementwise, in quotients and in sums over the batch."""
    h = (x @ W) * v / (2 + xp.cos(v))
    return xp.sum(xp.sum(xp.sin(h), axis=0) ** 2)


def quadratic(xp, W, x):
    """A product of the parameters with themselves."""
    return xp.sum((x @ W @ W.T) ** 2)


def turned(xp, W, v, x):
    """Reshaped and transposed parameters."""
    return xp.sum(xp.tanh(x @ W.reshape(4, 3)) ** 3) + xp.sum(xp.sin(W.T @ v))


def logistic(xp, w, x, y):
    z = x @ w
    return xp.mean(xp.log(1 + xp.exp(z)) - y * z) + 0.1 * xp.sum(w**2)


def normalized(xp, W, g, x):
    """Layer norm: means of tangents over the units."""
    h = x @ W
    c = h - xp.mean(h, axis=1).reshape(5, 1)
    return xp.sum(xp.tanh(g * c / xp.sqrt(xp.mean(c**2, axis=1).reshape(5, 1) + 0.1)) ** 2)


def outer(xp, u, v, M):
    """Sums of vectors along different axes."""
    return xp.sum(xp.sin(u[:, None] * v[None, :] + M + u[:, None]))


CASES = {
    "network": (
        tanh_network,
        [normal(3, 4), normal(4), normal(4, 2), normal(2)],
        [normal(6, 3), normal(6, 2)],
    ),
    "residual": (residual_network, [normal(3, 4), normal(4), normal(4, 4)], [normal(5, 3)]),
    "weighted": (weighted, [normal(3, 4), normal(4)], [normal(5, 3)]),
    "quadratic": (quadratic, [normal(3, 2)], [normal(4, 3)]),
    "turned": (turned, [normal(2, 6), normal(2)], [normal(5, 4)]),
    "normalized": (normalized, [normal(3, 4), normal(4)], [normal(5, 3)]),
    "outer": (outer, [normal(3), normal(4), normal(3, 4)], []),
    "logistic": (logistic, [normal(4)], [normal(7, 4), normal(7)]),
}


def by_torch(loss, weights, data):
    torch = pytest.importorskip("torch")
    tensors = [torch.tensor(a, dtype=torch.float64) for a in weights]
    fixed = [torch.tensor(a, dtype=torch.float64) for a in data]
    sizes = [a.size for a in weights]

    def flat(vector):
        parts = [p.reshape(a.shape) for p, a in zip(torch.split(vector, sizes), tensors, strict=True)]
        return loss(torch, *parts, *fixed)

    return torch.func.hessian(flat)(torch.cat([t.reshape(-1) for t in tensors])).numpy()


def traced(loss, arrays):
    return symad.trace(lambda *a: loss(np, *a), inputs=[a.shape for a in arrays])


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_hessians_are_those_of_torch(name):
    loss, weights, data = CASES[name]
    graph = traced(loss, [*weights, *data])
    expected = by_torch(loss, weights, data)
    for mode in MODES:
        kernel = lower(symad.hessian(graph, wrt=list(range(len(weights))), mode=mode))
        assert np.allclose(kernel(*weights, *data), expected, rtol=1e-10, atol=1e-11), mode


@pytest.mark.thorough
def test_hessians_through_loops():
    """Tangents that run through a loop are written out before it."""
    torch = pytest.importorskip("torch")
    W, U, x = normal(3, 3), normal(2, 3), normal(4, 5, 2)

    def ours(W, U, x):
        states = functions.scan(lambda h, x_t: np.tanh(h @ W + x_t @ U), np.zeros((5, 3)), x)
        return np.sum(states**2)

    def theirs(xp, W, U):
        h, total_ = xp.zeros((5, 3), dtype=xp.float64), 0.0
        for x_t in torch.tensor(x):
            h = xp.tanh(h @ W + x_t @ U)
            total_ = total_ + xp.sum(h**2)
        return total_

    kernel = lower(symad.hessian(symad.trace(ours, inputs=[W.shape, U.shape, x.shape]), wrt=[0, 1]))
    assert np.allclose(kernel(W, U, x), by_torch(theirs, [W, U], []), rtol=1e-10, atol=1e-11)


def test_softmax_regression():
    torch = pytest.importorskip("torch")
    W, b, x, y = normal(3, 4), normal(4), normal(6, 3), np.eye(4)[RNG.integers(0, 4, 6)]

    def ours(W, b, x, y):
        return -np.sum(y * functions.log_softmax(x @ W + b, axis=-1))

    def theirs(xp, W, b):
        return -xp.sum(torch.tensor(y) * xp.log_softmax(torch.tensor(x) @ W + b, dim=-1))

    graph = symad.trace(ours, inputs=[W.shape, b.shape, x.shape, y.shape])
    kernel = lower(symad.hessian(graph, wrt=[0, 1]))
    assert np.allclose(kernel(W, b, x, y), by_torch(theirs, [W, b], []), rtol=1e-10, atol=1e-12)


def test_symbolic_sizes():
    n, p, q = sympy.symbols("n p q", integer=True, positive=True)
    graph = symad.trace(lambda W, x: np.sum(np.tanh(x @ W) ** 2), inputs=[(p, q), (n, p)])
    kernel = lower(symad.hessian(graph, wrt=[0]))
    W, x = normal(3, 4), normal(5, 3)
    expected = by_torch(lambda xp, W, x: xp.sum(xp.tanh(x @ W) ** 2), [W], [x])
    assert np.allclose(kernel(W, x), expected, rtol=1e-10)


def test_jacobians_of_arrays():
    torch = pytest.importorskip("torch")
    W, b, x = normal(3, 4), normal(4), normal(5, 3)
    graph = symad.trace(lambda W, b, x: np.tanh(x @ W + b), inputs=[W.shape, b.shape, x.shape])
    point = [torch.tensor(a) for a in (W, b, x)]
    for wrt in ([0, 1], [2], [0]):
        parts = torch.func.jacrev(lambda W, b, x: torch.tanh(x @ W + b), argnums=tuple(wrt))(*point)
        expected = np.concatenate([p.reshape(20, -1).numpy() for p in parts], 1)
        for mode in ("forward", "reverse"):
            kernel = lower(symad.jacobian(graph, wrt=wrt, mode=mode))
            assert np.allclose(kernel(W, b, x), expected, rtol=1e-12, atol=1e-14)


def test_no_array_has_an_element_for_each_seed_and_example():
    """H of a network is n×n, and nothing on the way is as large as one tangent of one layer."""
    B, p, h, q = 400, 6, 5, 3
    shapes = [(p, h), (h,), (h, q), (q,), (B, p), (B, q)]
    graph = symad.trace(lambda *a: tanh_network(np, *a), inputs=shapes)
    hessian = symad.hessian(graph, wrt=[0, 1, 2, 3])
    before, after = prepare(hessian), factor_seeds(prepare(hessian))
    largest = [max(int(size(n.shape)) for n in g.nodes) for g in (before, after)]
    assert largest[0] >= p * h * B * h
    assert largest[1] <= B * max(p * p, p * h, h * h)
    assert symad.flops(after) < symad.flops(before) / 2


def test_ops_that_mix_positions_get_whole_arrays():
    """Slices and pieces that are put together: their tangents are written out."""
    torch = pytest.importorskip("torch")
    W, x = normal(3, 4), normal(5, 3)

    def ours(W, x):
        h = np.tanh(x @ W)
        padded = np.concatenate([h[1:, ::2], h[:-1, 1::2]], axis=1)
        return np.sum(padded * h[1:] ** 2)

    def theirs(xp, W):
        h = xp.tanh(torch.tensor(x) @ W)
        padded = xp.cat([h[1:, ::2], h[:-1, 1::2]], dim=1)
        return xp.sum(padded * h[1:] ** 2)

    kernel = lower(symad.hessian(symad.trace(ours, inputs=[W.shape, x.shape]), wrt=[0]))
    assert np.allclose(kernel(W, x), by_torch(theirs, [W], []), rtol=1e-10, atol=1e-12)

"""Sums over pairs as an op: values and derivatives against torch, by graph and by blocks."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.errors import ShapeError, TraceError
from symad.functions import pairwise
from symad.fused.pair_sum import PairSumCotangent
from symad.numeric import lower
from symad.numeric.eager.pairwise import pairwise as blocked

torch = pytest.importorskip("torch")


def gaussian(x, y, ell):
    return sp.exp(-(x - y).dot(x - y) / (2 * ell**2))


def weighted(x, y, w, c):
    """A sum over components with weights, and components that stand alone."""
    return sum(w[k] * x[k] * y[k] for k in range(3)) - c * sp.Abs(x[0] - y[2]) + w[1] * x[1]


def torch_logits(name, x, y, *params):
    difference = x[:, None] - y[None]
    if name == "gaussian":
        return torch.exp(-(difference**2).sum(-1) / (2 * params[0] ** 2))
    w, c = params
    return (w * x[:, None] * y[None]).sum(-1) - c * (x[:, None, 0] - y[None, :, 2]).abs() + w[1] * x[:, 1:2]


def torch_reduce(k, b, reduce):
    if reduce == "sum":
        return k @ b
    if reduce == "logsumexp":
        return torch.logsumexp(k + torch.log(b), 1)
    return torch.softmax(k, 1) @ b


CASES = {
    "gaussian": (gaussian, {"ell": ()}),
    "weighted": (weighted, {"w": (3,), "c": ()}),
}


def setting(name, reduce, columns=None):
    """The graph of a loss, values, and the same loss in torch."""
    f, sizes = CASES[name]
    shapes = [(5, 3), (4, 3), (4,) if columns is None else (4, columns), *sizes.values()]
    rng = np.random.default_rng(3)
    values = [rng.uniform(0.3, 1.2, s) for s in shapes]
    values = [np.asarray(v) for v in values]

    def loss(x, y, b, *params):
        out = pairwise(f, x, y, b, reduce=reduce, params=dict(zip(sizes, params, strict=True)))
        return (out**3).sum()

    def torch_loss(x, y, b, *params):
        return (torch_reduce(torch_logits(name, x, y, *params), b, reduce) ** 3).sum()

    return symad.trace(loss, shapes), values, torch_loss


SETTINGS = [
    ("gaussian", "sum", None), ("gaussian", "softmax", 2), ("weighted", "sum", 2),
    ("weighted", "softmax", None), ("weighted", "logsumexp", None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "reduce", "columns"), SETTINGS)
def test_value_and_gradients(name, reduce, columns):
    graph, values, torch_loss = setting(name, reduce, columns)
    leaves = [torch.tensor(v, requires_grad=True) for v in values]
    expected = torch_loss(*leaves)
    expected.backward()
    both = symad.value_and_gradient(graph)
    assert any(isinstance(n.op, PairSumCotangent) for n in both.nodes)
    for f in (both, lower(both)):
        value, *gradients = f(*values)
        assert value == pytest.approx(expected.item(), rel=1e-13)
        for g, leaf in zip(gradients, leaves, strict=True):
            np.testing.assert_allclose(g, leaf.grad.numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["forward-over-reverse", "reverse-over-forward", "reverse-over-reverse"])
def test_hessian_vector_products(mode):
    graph, values, torch_loss = setting("weighted", "softmax")
    directions = [np.random.default_rng(4).normal(size=v.shape) for v in values]
    points, along = (tuple(torch.tensor(v) for v in group) for group in (values, directions))
    _, expected = torch.autograd.functional.hvp(torch_loss, points, along)
    product = symad.hvp(graph, mode=mode)
    for f in (product, lower(product)):
        for got, want in zip(f(*values, *directions), expected, strict=True):
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-9, atol=1e-11)


def test_blocks_of_rows():
    """More pairs than one block holds, and the log-sum-exps of softmax."""
    rng = np.random.default_rng(5)
    x, y, b = rng.normal(size=(2100, 2)), rng.normal(size=(600, 2)), rng.normal(size=(600, 2))
    graph = symad.trace(
        lambda *a: pairwise(lambda x, y: -(x - y).dot(x - y), *a, reduce="softmax", return_lse=True),
        [x.shape, y.shape, b.shape],
    )
    kernel = lower(graph)
    expected = blocked(lambda x, y: -(x - y).dot(x - y), x, y, b, reduce="softmax", return_lse=True)
    for got, want in zip(kernel(x, y, b), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-13)
    assert "import symad" not in kernel.source


def test_numbers_of_points_may_be_symbols():
    n, m = sp.symbols("n m", integer=True, positive=True)
    graph = symad.trace(
        lambda x, y, ell: pairwise(gaussian, x, y, params={"ell": ell}).sum(), [(n, 2), (m, 2), ()]
    )
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(4, 2)), rng.normal(size=(6, 2))
    kernel = lower(symad.value_and_gradient(graph))
    expected = np.exp(-((x[:, None] - y) ** 2).sum(-1) / 2).sum()
    assert kernel(x, y, 1.0)[0] == pytest.approx(expected, rel=1e-13)


def test_arrays_give_arrays_and_vmap_follows_the_definition():
    rng = np.random.default_rng(7)
    x, y, b = rng.normal(size=(3, 2)), rng.normal(size=(4, 2)), rng.normal(size=4)
    expected = np.exp(-((x[:, None] - y) ** 2).sum(-1) / 2) @ b
    np.testing.assert_allclose(pairwise(gaussian, x, y, b, params={"ell": 1.0}), expected, rtol=1e-13)
    graph = symad.trace(
        lambda x, y, b: pairwise(gaussian, x, y, b, params={"ell": 1.0}), [x.shape, y.shape, b.shape]
    )
    stacked = symad.vmap(graph)(np.stack([x, 2 * x]), np.stack([y, y]), np.stack([b, b]))
    np.testing.assert_allclose(stacked, [graph(x, y, b), graph(2 * x, y, b)], rtol=1e-13)


def test_what_does_not_fit():
    def trace(f, *shapes, **options):
        return symad.trace(lambda *a: pairwise(f, *a, **options), list(shapes))

    plain = lambda x, y: (x - y).dot(x - y)  # noqa: E731
    with pytest.raises(ShapeError, match=r"x \(5, 3\), y \(4, 2\)"):
        trace(plain, (5, 3), (4, 2))
    with pytest.raises(ShapeError, match="logsumexp takes one column"):
        trace(plain, (5, 3), (4, 3), (4, 2), reduce="logsumexp")
    with pytest.raises(ShapeError, match="reduce='mean' is not one of sum, logsumexp, softmax"):
        trace(plain, (5, 3), (4, 3), reduce="mean")
    with pytest.raises(TraceError, match="uses gain, which is not an argument"):
        trace(lambda x, y: sp.Symbol("gain") * x[0], (5, 3), (4, 3))
    with pytest.raises(TraceError, match="asks for parameter ell"):
        trace(gaussian, (5, 3), (4, 3))

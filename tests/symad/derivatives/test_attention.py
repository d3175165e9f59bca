"""Attention as an op: values and derivatives of every order against torch, by graph and by blocks."""

import numpy as np
import pytest
import sympy as sp

import symad
from symad.core.graph import topological
from symad.errors import ShapeError, TraceError
from symad.functions import attention
from symad.fused.attention_ops import (
    Attention,
    AttentionCotangent,
    AttentionOp,
    AttentionSecond,
)
from symad.models.layers.parameters import trace_model
from symad.models.transformers.attention import MultiHead
from symad.numeric import lower
from symad.numeric.eager.attention import attention as blocked

torch = pytest.importorskip("torch")

SHAPES = {"q": (2, 4, 5, 3), "k": (2, 2, 6, 3), "v": (2, 2, 6, 2), "slope": (4,)}


def draw(seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s) for s in SHAPES.values()]


def alibi_with_cap(s, b, h, i, j, slope):
    return 2 * sp.tanh((s + slope[h] * (j - i)) / 2)


def window(b, h, i, j):
    return (i - j < 3) & (j - i < 2)


def heads(q, k, v, slope):
    return attention(q, k, v, score=alibi_with_cap, mask=window, params={"slope": slope}, return_lse=True)


def loss(q, k, v, slope):
    out, lse = heads(q, k, v, slope)
    return (out**2).sum() + lse.sum()


def torch_loss(q, k, v, slope):
    k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    i, j = torch.arange(5)[:, None], torch.arange(6)
    s = q @ k.transpose(-1, -2) / 3**0.5
    t = 2 * torch.tanh((s + slope[:, None, None] * (j - i)) / 2)
    t = t.masked_fill(~((i - j < 3) & (j - i < 2)), -torch.inf)
    return ((torch.softmax(t, -1) @ v) ** 2).sum() + torch.logsumexp(t, -1).sum()


@pytest.fixture(scope="module")
def graph():
    return symad.trace(loss, list(SHAPES.values()))


def test_value_and_gradients(graph):
    values = draw()
    leaves = [torch.tensor(v, requires_grad=True) for v in values]
    expected = torch_loss(*leaves)
    expected.backward()
    both = symad.value_and_gradient(graph)
    for f in (both, lower(both)):
        value, *gradients = f(*values)
        assert value == pytest.approx(expected.item(), rel=1e-13)
        for g, leaf in zip(gradients, leaves, strict=True):
            np.testing.assert_allclose(g, leaf.grad.numpy(), rtol=1e-11, atol=1e-13)


def test_outputs_and_log_sum_exps_go_back_in_one_pass(graph):
    """(ō, 0) and (0, L̄) are joined to (ō, L̄); the values are compared with torch above."""
    source = lower(symad.gradient(graph)).source
    entry = source[source.rindex("\ndef ") :]
    assert entry.count("_attention_cotangents(") == 1


def test_gradients_are_made_of_the_cotangent_op(graph):
    ops = {type(n.op) for n in topological(symad.gradient(graph).output_nodes)}
    assert AttentionCotangent in ops
    assert sp.exp not in {getattr(n.op, "head", None) for n in symad.gradient(graph).nodes}


MODES = ["forward-over-reverse", "reverse-over-forward", "reverse-over-reverse"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wrt", [(0, 1, 2), (0, 1, 2, 3)])
def test_hessian_vector_products(graph, mode, wrt):
    """With the parameters held fixed, and along all arguments."""
    values, directions = draw(), draw(1)
    product = symad.hvp(graph, wrt=list(wrt), mode=mode)
    points = [torch.tensor(v) for v in values]
    fixed = [points[k] for k in range(4) if k not in wrt]

    def value(*moving):
        return torch_loss(*moving, *fixed)

    moving = tuple(points[k] for k in wrt)
    along = tuple(torch.tensor(directions[k]) for k in wrt)
    _, expected = torch.autograd.functional.hvp(value, moving, along)
    for f in (product, lower(product)):
        found = f(*values, *[directions[k] for k in wrt])
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-9, atol=1e-11)


def test_products_at_fixed_parameters_use_tiles_only(graph):
    product = symad.hvp(graph, wrt=[0, 1, 2])
    assert any(isinstance(n.op, AttentionSecond) for n in product.nodes)
    pairs = [n for n in product.nodes if n.shape == (2, 4, 5, 6)]
    assert pairs == []


def test_lowered_code_walks_over_tiles(graph):
    rng = np.random.default_rng(4)
    q, k, v = (rng.normal(size=(1, 2, 600, 4)) for _ in range(3))
    kernel = lower(symad.trace(lambda q, k, v: attention(q, k, v, causal=True), [a.shape for a in (q, k, v)]))
    expected = blocked(q, k, v, causal=True)
    np.testing.assert_allclose(kernel(q, k, v), expected, rtol=1e-12, atol=1e-15)
    assert "(1, 2, 600, 600)" not in kernel.source
    assert "import symad" not in kernel.source
    assert "def _attention(" in kernel.source


def test_rows_without_keys():
    def f(q, k, v):
        out, lse = attention(q, k, v, mask=lambda b, h, i, j: j < i - 1, return_lse=True)
        return out, lse

    shapes = [(4, 2)] * 3
    rng = np.random.default_rng(5)
    values = [rng.normal(size=s) for s in shapes]
    g = symad.trace(f, shapes)
    for run in (g, lower(g)):
        out, lse = run(*values)
        assert not out[:2].any()
        assert np.isneginf(lse[:2]).all()
        assert np.isfinite(lse[2:]).all()
    total = symad.gradient(symad.trace(lambda *a: (f(*a)[0] ** 2).sum(), shapes))
    for run in (total, lower(total)):
        bars = run(*values)
        assert all(np.isfinite(b).all() for b in bars)
        assert not bars[0][:2].any()


def test_relative_tables_and_documents():
    """A learned table of relative positions, and an integer array that the mask reads."""
    n = 5
    document = np.array([0, 0, 1, 1, 1])

    def f(q, k, v, table):
        return attention(
            q, k, v, score=lambda s, b, h, i, j, table: s + table[i - j + n - 1],
            mask=lambda b, h, i, j, document: sp.Eq(document[i], document[j]),
            params={"table": table, "document": document},
        )  # fmt: skip

    rng = np.random.default_rng(6)
    values = [*(rng.normal(size=(n, 3)) for _ in range(3)), rng.normal(size=2 * n - 1)]
    g = symad.trace(lambda *a: (f(*a) ** 3).sum(), [v.shape for v in values])
    leaves = [torch.tensor(v, requires_grad=True) for v in values]
    q, k, v, table = leaves
    i, j = torch.arange(n)[:, None], torch.arange(n)
    t = q @ k.T / 3**0.5 + table[i - j + n - 1]
    t = t.masked_fill(torch.tensor(document[:, None] != document), -torch.inf)
    ((torch.softmax(t, -1) @ v) ** 3).sum().backward()
    for run in (symad.gradient(g), lower(symad.gradient(g))):
        for got, leaf in zip(run(*values), leaves, strict=True):
            np.testing.assert_allclose(got, leaf.grad.numpy(), rtol=1e-11, atol=1e-13)


def test_symbolic_sizes():
    n, d = sp.symbols("n d", integer=True, positive=True)
    g = symad.trace(lambda q, k, v: attention(q, k, v, causal=True).sum(), [(1, 2, n, d)] * 3)
    values = [a[:1, :2] for a in (draw()[0], draw(1)[0], draw(2)[0])]
    kernel = lower(symad.value_and_gradient(g))
    assert kernel(*values)[0] == pytest.approx(blocked(*values, causal=True).sum(), rel=1e-13)


def test_vmap_joins_the_batch():
    g = symad.trace(lambda q, k, v: attention(q, k, v, causal=True), [(1, 1, 4, 2)] * 3)
    batched = symad.vmap(g)
    assert [n for n in batched.nodes if isinstance(n.op, Attention)]
    rng = np.random.default_rng(7)
    values = [rng.normal(size=(3, 1, 1, 4, 2)) for _ in range(3)]
    expected = [g(*[v[k] for v in values]) for k in range(3)]
    np.testing.assert_allclose(batched(*values), expected, rtol=1e-13)


def test_a_model_with_tiled_heads():
    """The gradient of a causal multi-head layer is that of the layer with an explicit mask."""
    model = MultiHead(8, 2)
    rng = np.random.default_rng(8)
    X = rng.normal(size=(3, 5, 8))

    def tiled(p, X):
        return (model.apply(p, X, attend=lambda *a: attention(*a, causal=True)) ** 2).sum()

    def masked(p, X):
        return (model.apply(p, X, mask=np.tri(5, dtype=bool)) ** 2).sum()

    values = [0.5 * rng.normal(size=s) for s in model.shapes.values()]
    found, expected = (
        lower(symad.gradient(trace_model(f, model.shapes, X)))(*values, X) for f in (tiled, masked)
    )
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    graph = trace_model(tiled, model.shapes, X)
    assert any(isinstance(n.op, AttentionOp) for n in graph.nodes)


def test_arrays_give_arrays():
    q, k, v, _ = draw()
    out, lse = attention(q, k, v, causal=True, return_lse=True)
    expected = blocked(q, k, v, causal=True, return_lse=True)
    np.testing.assert_allclose(out, expected[0], rtol=1e-12)
    np.testing.assert_allclose(lse, expected[1], rtol=1e-12)


def test_what_does_not_fit():
    with pytest.raises(ShapeError, match=r"given: q \(5, 3\), k \(6, 4\)"):
        symad.trace(attention, [(5, 3), (6, 4), (6, 4)])
    with pytest.raises(ShapeError, match="multiple of the key heads"):
        symad.trace(attention, [(1, 3, 5, 3), (1, 2, 5, 3), (1, 2, 5, 3)])
    with pytest.raises(ShapeError, match="alike for all three"):
        symad.trace(attention, [(5, 3), (1, 5, 3), (5, 3)])
    with pytest.raises(TraceError, match="uses gain, which is not an argument"):
        symad.trace(
            lambda q, k, v: attention(q, k, v, score=lambda s, *_: s * sp.Symbol("gain")), [(5, 3)] * 3
        )
    with pytest.raises(
        TraceError, match=r"index floor\(s\) of t\[floor\(s\)\] contains the scaled product s"
    ):
        attention(*[np.ones((5, 3))] * 3, score=lambda s, *_, t: s + t[sp.floor(s)], params={"t": np.ones(5)})
    with pytest.raises(TraceError, match="a parameter is called h, like a position"):
        symad.trace(lambda q, k, v: attention(q, k, v, params={"h": 1.0}), [(5, 3)] * 3)
    with pytest.raises(TraceError, match="return a SymPy Boolean"):
        symad.trace(lambda q, k, v: attention(q, k, v, mask=lambda *_: 1.0), [(5, 3)] * 3)


ROWS, COLUMNS = np.arange(5)[:, None], np.arange(6)
SCORES = {
    "0": (lambda s, b, h, i, j: sp.Integer(0), lambda s: 0 * s),
    "of i": (lambda s, b, h, i, j: i**2, lambda s: 0 * s + ROWS**2),
    "of i and j": (lambda s, b, h, i, j: -abs(i - j), lambda s: 0 * s - abs(ROWS - COLUMNS)),
    "0 or -oo": (
        lambda s, b, h, i, j: sp.Piecewise((0, j <= i), (-sp.oo, True)),
        lambda s: np.where(COLUMNS <= ROWS, 0, -np.inf),
    ),
    "-oo first": (
        lambda s, b, h, i, j: sp.Piecewise((-sp.oo, i < j), (2 * s, j > 1), (-sp.oo, j > 0), (s, True)),
        lambda s: np.select(
            [ROWS < COLUMNS, COLUMNS > 1, COLUMNS > 0], [-np.inf + 0 * s, 2 * s, -np.inf + 0 * s], s
        ),
    ),
    "s + 0 or -oo": (
        lambda s, b, h, i, j: s + sp.Piecewise((0, j <= i), (-sp.oo, True)),
        lambda s: np.where(COLUMNS <= ROWS, s, -np.inf),
    ),
}


@pytest.mark.parametrize("name", SCORES)
def test_scores_without_products_and_scores_of_minus_infinity(name):
    """Values, gradients and Hessian-vector products against torch, on the whole score matrix."""
    score, whole = SCORES[name]
    shapes = [(5, 3), (6, 3), (6, 2)]
    rng = np.random.default_rng(1)
    point, v = ([rng.normal(size=shape) for shape in shapes] for _ in range(2))
    values = [torch.tensor(a, requires_grad=True) for a in point]

    def loss(q, k, v):
        s = q @ k.T / 3**0.5
        zero = whole(0 * s.detach().numpy())
        with np.errstate(invalid="ignore"):
            slope = torch.tensor(np.nan_to_num(whole(1 + 0 * s.detach().numpy()) - zero))  # affine in s
        return ((torch.softmax(torch.tensor(zero) + slope * s, -1) @ v) ** 2).sum()

    first = torch.autograd.grad(loss(*values), values, create_graph=True)
    dot = sum((g * torch.tensor(a)).sum() for g, a in zip(first, v, strict=True))
    second = torch.autograd.grad(dot, values, allow_unused=True)
    zeros = [np.zeros(shape) if a is None else a.numpy() for a, shape in zip(second, shapes, strict=True)]
    graph = symad.trace(lambda q, k, v: (attention(q, k, v, score=score) ** 2).sum(), shapes)
    gradient, product = symad.gradient(graph), symad.hvp(graph)
    for call in (lambda g: g, lower, lambda g: lower(g, backend="c")):
        for made, right in zip(call(gradient)(*point), first, strict=True):
            np.testing.assert_allclose(made, right.detach().numpy(), rtol=1e-10, atol=1e-12)
        for made, right in zip(call(product)(*point, *v), zeros, strict=True):
            np.testing.assert_allclose(made, right, rtol=1e-10, atol=1e-12)

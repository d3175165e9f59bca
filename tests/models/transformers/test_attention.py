"""Attention: the worked numbers, torch, both conventions, masks, causality, equivariance."""

import numpy as np
import pytest
import sympy

import symad
from symad.errors import ShapeError
from symad.models.layers.parameters import trace_model
from symad.models.transformers import attention as att
from symad.models.transformers.attention import MultiHead
from tests.models.reference import agrees_with_torch

Q = np.array([[0.212, 0.04, 0.63, 0.36], [0.1, 0.14, 0.86, 0.77]])
K = np.array([[0.31, 0.84, 0.963, 0.57], [0.45, 0.94, 0.73, 0.58]])
V = np.array([[0.36, 0.61, 0.1, 0.98], [0.31, 0.36, 0.19, 0.72]])
rng = np.random.default_rng(0)


def test_worked_example():
    scores = Q @ K.T / 2
    assert scores.round(6).tolist() == [[0.455605, 0.40085], [0.70784, 0.6255]]
    weights = att.weights(Q, K)
    assert weights.round(6).tolist() == [[0.513685, 0.486315], [0.520573, 0.479427]]
    expected = [[0.335684, 0.488421, 0.143768, 0.853558], [0.336029, 0.490143, 0.143148, 0.855349]]
    assert att.attention(Q, K, V).round(6).tolist() == expected
    assert att.attention_columns(Q.T, K.T, V.T).round(6).T.tolist() == expected


def test_traced_with_symbolic_sizes():
    n, m, d, v = sympy.symbols("n m d v", integer=True, positive=True)
    graph = symad.trace(att.attention, [(n, d), (m, d), (m, v)])
    np.testing.assert_allclose(graph(Q, K, V), att.attention(Q, K, V), rtol=1e-15)


@pytest.mark.parametrize("causal", [False, True])
def test_one_head_against_torch(causal):
    q, k, v, y = (rng.normal(size=(6, 3)) for _ in range(4))

    def loss(p, y):
        mask = att.causal_mask(6) if causal else None
        return np.sum(att.attention(p["q"], p["k"], p["v"], mask) * y)

    def reference(torch, p, y):
        run = torch.nn.functional.scaled_dot_product_attention
        return (run(p["q"], p["k"], p["v"], is_causal=causal) * y).sum()

    agrees_with_torch(loss, {"q": q.shape, "k": k.shape, "v": v.shape}, reference, y)


def test_many_heads_against_torch():
    """torch.nn.functional.multi_head_attention_forward, in its layout, with biases and a batch."""
    model = MultiHead(6, 3, bias=True)
    X, Y = rng.normal(size=(2, 5, 6)), rng.normal(size=(2, 5, 6))

    def loss(p, X, Y):
        return np.mean((model.apply(p, X, mask=att.causal_mask(5)) - Y) ** 2)

    def reference(torch, p, X, Y):
        joined = [p[f"W_{k}"].permute(0, 2, 1).reshape(6, 6) for k in "QKV"]
        biases = [p[f"b_{k}"].reshape(6) for k in "QKV"]
        x = X.transpose(0, 1)
        hidden = torch.ones(5, 5).triu(1).bool()
        out, _ = torch.nn.functional.multi_head_attention_forward(
            x, x, x, 6, 3, torch.cat(joined), torch.cat(biases), None, None, False, 0.0,
            p["W_O"].reshape(6, 6).T, p["b_O"], attn_mask=hidden, need_weights=False,
        )  # fmt: skip
        return ((out.transpose(0, 1) - Y) ** 2).mean()

    agrees_with_torch(loss, model.shapes, reference, X, Y)


def test_cross_attention_against_torch():
    model = MultiHead(4, 2, key=3, value=5, out=7, context=6)
    X, Z, Y = rng.normal(size=(5, 4)), rng.normal(size=(8, 6)), rng.normal(size=(5, 7))

    def loss(p, X, Z, Y):
        return np.sum(model.apply(p, X, Z) * Y)

    def reference(torch, p, X, Z, Y):
        total = 0
        for h in range(2):
            q, k, v = X @ p["W_Q"][h], Z @ p["W_K"][h], Z @ p["W_V"][h]
            total = total + torch.softmax(q @ k.T / 3**0.5, -1) @ v @ p["W_O"][h]
        return (total * Y).sum()

    agrees_with_torch(loss, model.shapes, reference, X, Z, Y)


def test_self_attention_of_columns_against_torch():
    shapes = {"W_Q": (3, 4), "W_K": (3, 4), "W_V": (4, 2)}
    X = rng.normal(size=(4, 5))

    def reference(torch, p, X):
        S = torch.softmax(X.T @ p["W_K"].T @ p["W_Q"] @ X, 0)
        return torch.sin(p["W_V"].T @ X @ S).sum()

    agrees_with_torch(
        lambda p, X: np.sum(np.sin(att.self_attention_columns(p["W_Q"], p["W_K"], p["W_V"], X))),
        shapes, reference, X,
    )  # fmt: skip


def blocks_of_jacobian(f, n, d):
    """‖∂Y_t/∂x_{t'}‖ as an (n, n) array, at a random point."""
    graph = symad.trace(f, [(n, d)])
    jacobian = symad.jacobian(graph)(rng.normal(size=(n, d)))
    return np.abs(jacobian.reshape(n, -1, n, d)).max(axis=(1, 3))


def masked_head(mask):
    model = MultiHead(4, 2)
    p = {k: rng.normal(size=s) for k, s in model.shapes.items()}
    return lambda X: model.apply(p, X, mask=mask)


def test_causal_attention_does_not_see_the_future():
    seen = blocks_of_jacobian(masked_head(att.causal_mask(5)), 5, 4) > 0
    np.testing.assert_array_equal(seen, np.tril(np.ones((5, 5), dtype=bool)))


def test_prefix_mask():
    seen = blocks_of_jacobian(masked_head(att.prefix_mask(5, 3)), 5, 4) > 0
    expected = np.tril(np.ones((5, 5), dtype=bool))
    expected[:, :3] = True
    np.testing.assert_array_equal(seen, expected)


def test_the_multiplicative_mask_is_refuted():
    """Its rows do not sum to one, and the future leaks through the denominator."""
    mask = att.causal_mask(4)
    X = rng.normal(size=(4, 3))
    assert att.multiplicative_mask(X, X, mask)[0].sum() < 0.99
    leaks = blocks_of_jacobian(lambda X: att.multiplicative_mask(X, X, mask), 4, 3)
    assert (leaks[np.triu_indices(4, 1)] > 1e-6).all()
    np.testing.assert_allclose(att.weights(X, X, mask).sum(axis=1), 1, rtol=1e-14)


def test_a_query_that_sees_nothing_gives_zero_and_no_slope():
    mask = np.array([[True, False], [False, False]])
    np.testing.assert_array_equal(att.attention(Q, K, V, mask)[1], 0)
    np.testing.assert_array_equal(att.attention(Q, K, V, mask)[0], V[0])

    def total(q, k, v):
        return np.sum(att.attention(q, k, v, mask) ** 2)

    slopes = symad.gradient(symad.trace(total, [(2, 4)] * 3))(Q, K, V)
    assert all(np.isfinite(s).all() for s in slopes)
    np.testing.assert_array_equal(slopes[2][1], 0)


def test_permutation_equivariance():
    """Attn(P X) = P Attn(X) for every permutation of four rows."""
    from itertools import permutations

    f, X = masked_head(None), rng.normal(size=(4, 4))
    for order in permutations(range(4)):
        np.testing.assert_allclose(f(X[list(order)]), f(X)[list(order)], rtol=1e-12, atol=1e-14)


def test_permutation_equivariance_proved():
    """Attn(P X) = P Attn(X) as expressions in all entries of X and of two heads' weights: the same sums."""

    def symbols(name, shape):
        return np.array(sympy.symbols(f"{name}:{np.prod(shape)}", real=True), dtype=object).reshape(shape)

    model, X = MultiHead(2, 2), symbols("x", (3, 2))
    p = [symbols(name, shape) for name, shape in model.shapes.items()]
    graph = trace_model(lambda p, X: model.apply(p, X), model.shapes, (3, 2))
    for order in ([1, 0, 2], [1, 2, 0]):  # these two generate all permutations
        for a, b in zip(graph(*p, X[order]).ravel(), graph(*p, X)[order].ravel(), strict=True):
            assert sympy.expand(a - b) == 0
    masked = trace_model(lambda p, X: model.apply(p, X, mask=att.causal_mask(3)), model.shapes, (3, 2))
    assert sympy.expand(masked(*p, X[[1, 0, 2]])[0, 0] - masked(*p, X)[1, 0]) != 0


def test_initial_values_and_errors():
    p = MultiHead(64, 4, bias=True).init(0)
    assert abs(p["W_Q"].std() - 0.02) < 0.002
    assert not p["b_O"].any()
    with pytest.raises(ShapeError, match="3 heads do not divide the width 4"):
        MultiHead(4, 3)
    assert MultiHead(sympy.Symbol("d"), 2, key=3).shapes["W_K"] == (2, sympy.Symbol("d"), 3)


def test_shapes_are_symbols_in_multi_head_attention():
    n, d, h, k = sympy.symbols("n d h k", integer=True, positive=True)
    model = MultiHead(d, h, key=k)
    graph = trace_model(lambda p, X: model.apply(p, X, mask=att.causal_mask(n)), model.shapes, (n, d))
    small = MultiHead(6, 2, key=5)
    p, X = small.init(1, 0.5), rng.normal(size=(7, 6))
    expected = small.apply(p, X, mask=att.causal_mask(7))
    np.testing.assert_allclose(graph(*p.values(), X), expected, rtol=1e-13)

"""Encoder-only and encoder-decoder transformers: torch, pooling, masked tokens, a toy translation."""

from dataclasses import replace

import numpy as np
import pytest
import sympy

import symad
from symad.errors import ShapeError, SymadError
from symad.models.layers.parameters import trace_model
from symad.models.transformers.encoder_decoder_transformer import EncoderDecoderTransformer
from symad.models.transformers.encoder_only import Encoder, corrupt, pool
from symad.models.transformers.transformer import Transformer
from symad.numeric import lower
from symad.numeric.training.loop import batches, train
from symad.numeric.training.optimizers import Adam
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(0)
BODY = Transformer(7, 6, 4, 2, 2, mask="none", order="post")
TOKENS = rng.integers(0, 7, (2, 5))


def heads(torch, p, name, x, z, hidden=None):
    """Multi-head attention of x to z, head by head; ``hidden`` are conditions (n, m) or (B, n, m)."""
    total = p[f"{name}b_O"]
    for h in range(p[f"{name}W_Q"].shape[0]):
        q = x @ p[f"{name}W_Q"][h] + p[f"{name}b_Q"][h]
        k, v = (z @ p[f"{name}W_{c}"][h] + p[f"{name}b_{c}"][h] for c in "KV")
        s = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        s = s if hidden is None else s.masked_fill(hidden, -torch.inf)
        total = total + torch.softmax(s, -1) @ v @ p[f"{name}W_O"][h]
    return total


def norm(torch, p, name, x):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], p[f"{name}gamma"], p[f"{name}beta"])


def feed(torch, p, name, x):
    hidden = torch.nn.functional.gelu(x @ p[f"{name}W_1"] + p[f"{name}b_1"])
    return hidden @ p[f"{name}W_2"] + p[f"{name}b_2"]


def torch_features(torch, p, tokens, order, causal=False, memory=None, hidden=None):
    """A transformer of two layers with learned positions, layer norm and GELU."""
    n = tokens.shape[1]
    x = p["E"][tokens] + p["P"][:n]
    if causal:
        hidden = torch.ones(n, n).triu(1).bool()

    def add(k, number, x, f):
        if order == "pre":
            return x + f(norm(torch, p, f"layer{k}_norm{number}_", x))
        return norm(torch, p, f"layer{k}_norm{number}_", x + f(x))

    for k in (1, 2):
        x = add(k, 1, x, lambda v, k=k: heads(torch, p, f"layer{k}_", v, v, hidden))
        if memory is not None:
            x = add(k, 3, x, lambda v, k=k: heads(torch, p, f"layer{k}_cross_", v, memory))
        x = add(k, 2, x, lambda v, k=k: feed(torch, p, f"layer{k}_", v))
    return norm(torch, p, "norm_", x) if order == "pre" else x


def test_masked_language_model_against_torch():
    model = Encoder(BODY)
    chosen = (rng.uniform(size=(2, 5)) < 0.5).astype(float)
    targets = rng.integers(0, 7, (2, 5))

    def reference(torch, p, tokens, targets, chosen):
        z = torch_features(torch, p, tokens, "post") @ p["E"].T
        each = torch.nn.functional.cross_entropy(z.permute(0, 2, 1), targets, reduction="none")
        return (each * chosen).sum() / chosen.sum()

    agrees_with_torch(model.masked_loss, model.shapes, reference, TOKENS, targets, chosen)


@pytest.mark.parametrize("pooling", ["first", "mean", "max"])
def test_classification_with_padding_against_torch(pooling):
    model = Encoder(BODY, 3, pooling)
    labels, seen = np.array([2, 0]), np.array([[True] * 5, [True, True, False, True, False]])

    def reference(torch, p, tokens, labels, seen):
        x = torch_features(torch, p, tokens, "post", hidden=~seen[:, None, :])
        if pooling == "first":
            pooled = x[:, 0]
        elif pooling == "mean":
            pooled = (x * seen[..., None]).sum(1) / seen.sum(1, keepdim=True)
        else:
            pooled = x.masked_fill(~seen[..., None], -torch.inf).amax(1)
        return torch.nn.functional.cross_entropy(pooled @ p["W"].T + p["c"], labels)

    def loss(p, tokens, labels, seen):
        return model.classification_loss(p, tokens, labels, seen > 0)

    agrees_with_torch(loss, model.shapes, reference, TOKENS, labels, seen, sizes=[(2, 5), (2,), (2, 5)])


def test_padding_changes_nothing():
    """Two more tokens that none sees: the classes' scores stay."""
    model = Encoder(BODY, 3)
    p = model.init(1, 0.5)
    padded = np.hstack([TOKENS[:, :4], [[1, 2], [3, 4]]])
    seen = np.arange(6)[None, :] < np.array([[4], [4]])
    np.testing.assert_allclose(
        model.classify(p, padded, seen), model.classify(p, TOKENS[:, :4]), rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_without_positions_pooling_forgets_the_order(pooling):
    model = Encoder(Transformer(7, 6, 4, 1, 2, mask="none", position="none"), 3, pooling)
    p = model.init(1, 0.5)
    np.testing.assert_allclose(
        model.classify(p, TOKENS[:, ::-1]), model.classify(p, TOKENS), rtol=1e-11, atol=1e-14
    )


def test_pooling():
    x = np.array([[1.0, 8], [2, 5], [6, 3]])
    seen = np.array([True, True, False])
    assert pool(x, "first").tolist() == [1, 8]
    assert pool(x, "mean").tolist() == [3, 16 / 3]
    assert pool(x, "max").tolist() == [6, 8]
    assert pool(x, "mean", seen).tolist() == [1.5, 6.5]
    assert pool(x, "max", seen).tolist() == [2, 8]


def test_corruption():
    tokens = rng.integers(1, 50, (200, 60))
    corrupted, chosen = corrupt(tokens, 50, 0, rng)
    np.testing.assert_array_equal(corrupted[chosen == 0], tokens[chosen == 0])
    hit = chosen == 1
    assert abs(hit.mean() - 0.15) < 0.01
    assert abs((corrupted[hit] == 0).mean() - 0.8) < 0.03
    assert abs((corrupted[hit] == tokens[hit]).mean() - 0.1) < 0.03
    assert (corrupt(tokens[:, :1], 50, 0, rng)[1] == 1).all()  # never a row without a choice


@pytest.mark.thorough
@pytest.mark.parametrize("order", ["pre", "post"])
def test_encoder_decoder_against_torch(order):
    model = EncoderDecoderTransformer(6, 5, 6, 4, 2, 2, hidden=6, order=order)
    x, before, y = rng.integers(0, 6, (2, 4)), *rng.integers(0, 5, (2, 2, 3))

    def reference(torch, p, x, before, y):
        read, write = (
            {k[8:]: v for k, v in p.items() if k.startswith(side)} for side in ("encoder_", "decoder_")
        )
        z = torch_features(torch, read, x, order)
        out = torch_features(torch, write, before, order, causal=True, memory=z) @ write["E"].T
        return torch.nn.functional.cross_entropy(out.reshape(-1, 5), y.reshape(-1))

    agrees_with_torch(model.loss, model.shapes, reference, x, before, y)


@pytest.mark.parametrize("switches", [
    {},
    {"position": "rotary", "norm": "rms", "block": "swiglu", "bias": False},
    {"position": "relative", "order": "deep"},
    {"position": "alibi", "block": "geglu"},
    {"position": "sinusoidal", "order": "post", "block": "relu"},
], ids=lambda s: s.get("position", "default"))  # fmt: skip
def test_the_decoder_is_causal_and_sees_the_whole_source(switches):
    """∂scores_t/∂y_{t'} = 0 for t' > t, ∂scores_t/∂z ≠ 0 everywhere, from the pattern alone."""
    body = replace(EncoderDecoderTransformer(5, 5, 5, 4, 1, 2, **switches).decoder, tied=False)
    p = body.init(0)
    graph = symad.trace(lambda E, z: body.scores(p | {"E": E}, np.arange(5), z), [(5, 4), (3, 4)])
    targets = symad.jacobian_sparsity(graph, [0]).toarray().reshape(5, 5, 5, 4).any(axis=(1, 3))
    np.testing.assert_array_equal(targets, np.tril(np.ones((5, 5), dtype=bool)))
    assert symad.jacobian_sparsity(graph, [1]).toarray().all()


def test_the_cache_gives_the_same_scores_with_a_memory():
    body = EncoderDecoderTransformer(5, 7, 6, 4, 2, 2, position="rotary").decoder
    p, z, tokens = body.init(0, 0.5), rng.normal(size=(3, 4)), rng.integers(0, 7, 4)
    expected = body.scores(p, tokens, z)
    K, V = body.empty_cache()
    for t, token in enumerate(tokens):
        scores, K, V = body.step(p, np.asarray(token), K, V, z)
        np.testing.assert_allclose(scores, expected[t], rtol=1e-12, atol=1e-14)


@pytest.mark.thorough
def test_learns_to_translate():
    """Each source token has one word in the target language, and the order is reversed."""
    words = np.array([0, 3, 1, 5, 2, 4])
    x = rng.integers(1, 6, (640, 4))
    y = words[x[:, ::-1]]
    before = np.hstack([np.zeros((640, 1), dtype=int), y[:, :-1]])
    model = EncoderDecoderTransformer(6, 6, 4, 16, 1, 2, hidden=32)
    loss = trace_model(model.loss, model.shapes, *[(64, 4)] * 3)
    stream = batches(x[:512], before[:512], y[:512], size=64)
    found = train(loss, model.init(0, 0.2), stream, Adam(0.015), 160, clip=1.0)
    right = model.translate(found.parameters, x[512:], 4) == y[512:]
    assert right.mean() > 0.9


def test_sizes_may_be_symbols():
    B, n, m, v, d = sympy.symbols("B n m v d", integer=True, positive=True)
    model = EncoderDecoderTransformer(v, v, 6, 2 * d, 1, 2)
    graph = trace_model(model.loss, model.shapes, (B, n), (B, m), (B, m))
    small = EncoderDecoderTransformer(7, 7, 6, 4, 1, 2)
    p, data = small.init(0, 0.5), (TOKENS, TOKENS[:, :3], TOKENS[:, 2:])
    np.testing.assert_allclose(graph(*p.values(), *data), small.loss(p, *data), rtol=1e-13)
    np.testing.assert_allclose(lower(graph)(*p.values(), *data), small.loss(p, *data), rtol=1e-13)


def test_bad_input():
    with pytest.raises(SymadError, match="mask='causal'"):
        Encoder(Transformer(7, 6, 4, 1, 2))
    with pytest.raises(SymadError, match="pooling='sum'"):
        Encoder(BODY, pooling="sum")
    with pytest.raises(ShapeError, match=r"not \(2, 0\)"):
        corrupt(np.zeros((2, 0), dtype=int), 5, 0, rng)
    with pytest.raises(SymadError, match="rate=0"):
        corrupt(TOKENS, 5, 0, rng, rate=0)
    model = EncoderDecoderTransformer(5, 5, 5, 4, 1, 2)
    p = model.decoder.init()
    with pytest.raises(SymadError, match="no memory is given"):
        model.decoder.scores(p, TOKENS)
    with pytest.raises(ShapeError, match="features must be 4"):
        model.decoder.scores(p, TOKENS, np.zeros((2, 3, 5)))
    with pytest.raises(ShapeError, match="token 6"):
        model.scores(model.init(), np.array([[6]]), np.array([[0]]))
    with pytest.raises(SymadError, match="order='sandwich'"):
        EncoderDecoderTransformer(5, 5, 5, 4, 1, 2, order="sandwich")

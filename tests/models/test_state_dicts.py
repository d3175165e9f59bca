"""Attention with all options, and models of GPT-2's and Llama's shape, against torch modules built here."""

import numpy as np
import pytest
import sympy

import symad
from symad.errors import ShapeError, SymadError
from symad.models.layers.parameters import trace_model
from symad.models.transformers import attention as att
from symad.models.transformers import positions
from symad.models.transformers.state_dicts import gpt2, llama
from symad.models.transformers.transformer import Transformer
from symad.numeric import lower

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

rng = np.random.default_rng(0)
TOKENS = rng.integers(0, 11, (2, 6))


# ---- torch modules under the published names -------------------------------------------------------


class Conv1D(nn.Module):
    """A linear map stored (in, out)."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(0.3 * torch.randn(inputs, outputs, dtype=torch.float64))
        self.bias = nn.Parameter(0.3 * torch.randn(outputs, dtype=torch.float64))

    def forward(self, x):
        return x @ self.weight + self.bias


class GPT2Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = nn.ModuleDict({"c_attn": Conv1D(d, 3 * d), "c_proj": Conv1D(d, d)})
        self.mlp = nn.ModuleDict({"c_fc": Conv1D(d, 4 * d), "c_proj": Conv1D(4 * d, d)})

    def forward(self, x):
        B, n, d = x.shape
        q, k, v = self.attn["c_attn"](self.ln_1(x)).split(d, dim=-1)
        q, k, v = (a.view(B, n, self.heads, -1).transpose(1, 2) for a in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn["c_proj"](y.transpose(1, 2).reshape(B, n, d))
        hidden = F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh")
        return x + self.mlp["c_proj"](hidden)


class GPT2(nn.Module):
    def __init__(self, vocabulary, context, d, layers, heads):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, d), nn.Embedding(context, d)
        self.h = nn.ModuleList(GPT2Block(d, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(d)
        self.double()

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[-1]))
        for block in self.h:
            x = block(x)
        return self.ln_f(x) @ self.wte.weight.T


class LlamaAttention(nn.Module):
    def __init__(self, d, heads, key_heads, size):
        super().__init__()
        self.heads, self.key_heads, self.size = heads, key_heads, size
        self.q_proj = nn.Linear(d, heads * size, bias=False)
        self.k_proj = nn.Linear(d, key_heads * size, bias=False)
        self.v_proj = nn.Linear(d, key_heads * size, bias=False)
        self.o_proj = nn.Linear(heads * size, d, bias=False)

    def turn(self, x, base):
        """As the published code does: x cos + rotate_half(x) sin."""
        half = self.size // 2
        rates = base ** (-torch.arange(0, self.size, 2, dtype=torch.float64) / self.size)
        angles = torch.arange(x.shape[-2])[:, None] * rates
        both = torch.cat([angles, angles], -1)
        return x * both.cos() + torch.cat([-x[..., half:], x[..., :half]], -1) * both.sin()

    def forward(self, x, base, window):
        B, n, _ = x.shape
        q = self.q_proj(x).view(B, n, self.heads, -1).transpose(1, 2)
        k, v = (f(x).view(B, n, self.key_heads, -1).transpose(1, 2) for f in (self.k_proj, self.v_proj))
        t = torch.arange(n)
        mask = (t[:, None] >= t) & (t[:, None] - t < window)
        y = F.scaled_dot_product_attention(
            self.turn(q, base), self.turn(k, base), v, attn_mask=mask, enable_gqa=True
        )
        return self.o_proj(y.transpose(1, 2).reshape(B, n, -1))


class LlamaLayer(nn.Module):
    def __init__(self, d, hidden, *heads):
        super().__init__()
        self.self_attn = LlamaAttention(d, *heads)
        names = {"gate_proj": (d, hidden), "up_proj": (d, hidden), "down_proj": (hidden, d)}
        self.mlp = nn.ModuleDict({k: nn.Linear(*s, bias=False) for k, s in names.items()})
        self.input_layernorm = nn.RMSNorm(d, eps=1e-6)
        self.post_attention_layernorm = nn.RMSNorm(d, eps=1e-6)

    def forward(self, x, base, window):
        x = x + self.self_attn(self.input_layernorm(x), base, window)
        z = self.post_attention_layernorm(x)
        return x + self.mlp["down_proj"](F.silu(self.mlp["gate_proj"](z)) * self.mlp["up_proj"](z))


class Llama(nn.Module):
    def __init__(self, vocabulary, d, layers, hidden, *heads):
        super().__init__()
        self.model = nn.Module()
        self.model.embed_tokens = nn.Embedding(vocabulary, d)
        self.model.layers = nn.ModuleList(LlamaLayer(d, hidden, *heads) for _ in range(layers))
        self.model.norm = nn.RMSNorm(d, eps=1e-6)
        self.lm_head = nn.Linear(d, vocabulary, bias=False)
        self.double()
        for p in self.parameters():
            nn.init.normal_(p, std=0.4)

    def forward(self, tokens, base=10000.0, window=10**9):
        x = self.model.embed_tokens(tokens)
        for layer in self.model.layers:
            x = layer(x, base, window)
        return self.lm_head(self.model.norm(x))


def agrees(module, model, p, **options):
    """Scores and all gradients of the loss."""
    expected = module(torch.tensor(TOKENS), **options)
    np.testing.assert_allclose(model.scores(p, TOKENS), expected.detach().numpy(), rtol=1e-11, atol=1e-11)
    tokens = sympy.IndexedBase(sympy.Symbol("tokens", integer=True), shape=TOKENS.shape)
    graph = trace_model(model.scores, model.shapes, tokens)
    found = lower(graph)(*p.values(), TOKENS)
    np.testing.assert_allclose(found, expected.detach().numpy(), rtol=1e-11, atol=1e-11)
    return graph, expected


def test_gpt2():
    torch.manual_seed(0)
    module = GPT2(11, 8, 12, 2, 3)
    state = {f"transformer.{k}": v for k, v in module.state_dict().items()}
    model, p = gpt2(state, heads=3)
    p = {name: p[name] for name in model.shapes}
    graph, expected = agrees(module, model, p)
    seed = rng.normal(size=expected.shape)
    (expected * torch.tensor(seed)).sum().backward()
    bars = dict(zip(p, symad.pullback(graph, list(p))(*p.values(), TOKENS, seed)[1:], strict=True))
    np.testing.assert_allclose(bars["E"], module.wte.weight.grad.numpy(), rtol=1e-10, atol=1e-11)
    c_attn = module.h[1].attn["c_attn"].weight.grad.numpy()
    ours = np.concatenate([bars[f"layer2_W_{k}"].transpose(1, 0, 2).reshape(12, 12) for k in "QKV"], 1)
    np.testing.assert_allclose(ours, c_attn, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize(("key_heads", "window"), [(4, 100), (2, 100), (1, 3)])
def test_llama(key_heads, window):
    torch.manual_seed(1)
    module = Llama(11, 8, 2, 20, 4, key_heads, 6)
    model, p = llama(module.state_dict(), heads=4, base=500.0, epsilon=1e-6, window=window)
    p = {name: p[name] for name in model.shapes}
    assert model.heads_of.groups == key_heads
    agrees(module, model, p, base=500.0, window=window)
    K, V = model.empty_cache()
    for t in range(6):  # the cache holds key heads alone, and the window holds there too
        scores, K, V = model.step(p, TOKENS[0, t], K, V)
        np.testing.assert_allclose(scores, model.scores(p, TOKENS[0])[t], rtol=1e-11, atol=1e-12)
    assert K.shape == (2, key_heads, 6, 6)


def test_state_dicts_that_do_not_fit_are_refused():
    state = GPT2(11, 8, 12, 2, 3).state_dict()
    with pytest.raises(ShapeError, match=r"h\.1\.mlp\.c_proj\.weight"):
        gpt2({k: v for k, v in state.items() if k != "h.1.mlp.c_proj.weight"}, 3)
    with pytest.raises(ShapeError, match=r"ln_f\.weight has the shape \(5,\), not \(12,\)"):
        gpt2(state | {"ln_f.weight": np.ones(5)}, 3)
    with pytest.raises(ShapeError, match="no place for adapter"):
        gpt2(state | {"adapter": np.ones(5)}, 3)
    with pytest.raises(ShapeError, match="5 heads"):
        gpt2(state, 5)
    with pytest.raises(ShapeError, match="embed_tokens"):
        llama(state, 3)


# ---- attention ---------------------------------------------------------------------------------------

Q, K, V = rng.normal(size=(2, 4, 5, 6)), rng.normal(size=(2, 2, 7, 6)), rng.normal(size=(2, 2, 7, 3))
ADDITIVE = np.where(rng.uniform(size=(5, 7)) < 0.4, -np.inf, rng.normal(size=(5, 7)))
ADDITIVE[2] = -np.inf


@pytest.mark.thorough
def test_grouped_heads_with_an_additive_mask_and_a_scale():
    def ours(Q, K, V, M):
        return att.attention(Q, K, V, additive=M, scale=0.7)

    tensors = [torch.tensor(v, requires_grad=True) for v in (Q, K, V)]
    expected = F.scaled_dot_product_attention(
        *tensors, attn_mask=torch.tensor(ADDITIVE), scale=0.7, enable_gqa=True
    )
    # PyTorch's row without a visible key is 0 or not a number, depending on its version; ours is 0.
    rows = [0, 1, 3, 4]
    graph = symad.trace(ours, [Q.shape, K.shape, V.shape, ADDITIVE.shape])
    seed = rng.normal(size=(2, 4, 5, 3))
    for f in (ours, graph, lower(graph), lower(graph, backend="c")):
        made = f(Q, K, V, ADDITIVE)
        np.testing.assert_allclose(made[:, :, rows], expected.detach().numpy()[:, :, rows], rtol=1e-12)
        assert np.all(made[:, :, 2] == 0)
    (expected[:, :, rows] * torch.tensor(seed[:, :, rows])).sum().backward()
    bars = lower(symad.pullback(graph, ["Q", "K", "V"]))(Q, K, V, ADDITIVE, seed)[1:]
    for k, (bar, tensor) in enumerate(zip(bars, tensors, strict=True)):
        reference = tensor.grad.numpy()
        if k == 0:
            reference[:, :, 2] = 0
        assert np.isfinite(bar).all()
        np.testing.assert_allclose(bar, reference, rtol=1e-10, atol=1e-12)


def test_the_cap_of_scores():
    scores = 5 * np.tanh(np.einsum("bhnk,bhmk->bhnm", Q, np.repeat(K, 2, 1)) / np.sqrt(6) / 5)
    expected = torch.softmax(torch.tensor(scores), -1).numpy() @ np.repeat(V, 2, 1)
    np.testing.assert_allclose(att.attention(Q, K, V, cap=5.0), expected, rtol=1e-12)


def test_heads_that_do_not_divide_are_refused():
    with pytest.raises(ShapeError, match="3 key heads do not divide 4"):
        att.attention(Q, np.ones((2, 3, 7, 6)), np.ones((2, 3, 7, 3)))
    with pytest.raises(ShapeError, match="key_heads=3"):
        att.MultiHead(8, 4, key_heads=3)
    with pytest.raises(SymadError, match="window=3"):
        Transformer(7, 6, 8, 2, 2, mask="none", window=3)
    with pytest.raises(SymadError, match="rotary='split'"):
        Transformer(7, 6, 8, 2, 2, rotary="split")


def test_a_window_is_what_its_pattern_says():
    n = 6
    graph = symad.trace(lambda X: att.attention(X, X, X, att.window_mask(n, 2)), [(n, 1)])
    jacobian = symad.jacobian(graph)(rng.normal(size=(n, 1)))
    seen = np.tril(np.ones((n, n))) * (1 - np.tril(np.ones((n, n)), -2))
    assert np.array_equal(jacobian != 0, seen.astype(bool))


def test_interleaved_pairs_are_complex_numbers():
    """(x_{2i} + i x_{2i+1}) e^{i t/base^{2i/d}}, and half-split pairs are the same for permuted features."""
    x, t = rng.normal(size=(5, 6)), np.arange(5)
    z = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * t[:, None] * 10000.0 ** (-np.arange(0, 6, 2) / 6))
    made = positions.rotate(x, t, interleaved=True)
    np.testing.assert_allclose(made, np.stack([z.real, z.imag], -1).reshape(5, 6), rtol=1e-13)
    order = [0, 2, 4, 1, 3, 5]
    np.testing.assert_allclose(positions.rotate(x[:, order], t), made[:, order], rtol=1e-13)


@pytest.mark.thorough
@pytest.mark.parametrize("options", [{}, {"cap": 2.0, "scale": 0.5}, {"mask": np.array([[True, False]])}])
def test_certificates(options):
    """Two query heads that share one key head."""
    graph = symad.trace(
        lambda Q, K, V: att.attention(Q, K, V, **options).sum(), [(2, 1, 1), (1, 2, 1), (1, 2, 1)]
    )
    assert symad.check(graph).status in ("proved", "tested")

"""Value and gradient of models at matrix level, each in the natural form for symad, JAX and PyTorch.

A case has the arrays (weights first, then data), a loss for libraries with NumPy's interface (NumPy's own
functions traced by symad, or jax.numpy), and losses for PyTorch. Gradients are taken with respect to the
weights. The docstrings give the mathematics.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from symad import functions

Loss = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """A loss ``loss(xp, *weights, *data)``, and its arrays."""

    name: str
    loss: Loss
    weights: dict[str, Any]
    data: dict[str, Any]
    torch: dict[str, Loss] = field(default_factory=dict)
    """Losses ``f(torch, *weights, *data)`` by the name of the form."""


def for_symad() -> SimpleNamespace:
    """NumPy's functions and symad's, for tracing."""
    return SimpleNamespace(
        np=np,
        zeros=lambda *shape: np.zeros(shape),
        scan=lambda step, initial, xs: functions.scan(step, initial, xs),
        sigmoid=functions.sigmoid,
        softmax=lambda x: functions.softmax(x, axis=-1),
        softplus=functions.softplus,
        gelu=functions.gelu,
        relu=functions.relu,
        silu=functions.silu,
    )


def for_jax(dtype: str) -> SimpleNamespace:
    """JAX's functions."""
    import jax

    def scan(step: Any, initial: Any, xs: Any) -> Any:
        def carry(state: Any, x: Any) -> Any:
            new = step(state, x)
            return new, new

        return jax.lax.scan(carry, initial, xs)[1]

    return SimpleNamespace(
        np=jax.numpy,
        zeros=lambda *shape: jax.numpy.zeros(shape, dtype),
        scan=scan,
        sigmoid=jax.nn.sigmoid,
        softmax=jax.nn.softmax,
        softplus=jax.nn.softplus,
        gelu=lambda x: jax.nn.gelu(x, approximate=False),
        relu=jax.nn.relu,
        silu=jax.nn.silu,
    )


def _normal(seed: int, **shapes: Any) -> dict[str, Any]:
    """Normal arrays; two-dimensional ones are divided by the root of their number of rows."""
    rng = np.random.default_rng(seed)
    made = {}
    for name, shape in shapes.items():
        scale = 1 / math.sqrt(shape[0]) if len(shape) == 2 and name[0].isupper() else 1.0
        made[name] = rng.normal(size=shape) * scale
    return made


# ---- sequences -----------------------------------------------------------------------------------


def _ar() -> Case:
    """AR(16) on 10⁵ samples: the mean of (y_t − Σ_k w_k x_{t−k} − b)²."""
    order, n = 16, 100_000

    def loss(xp: Any, w: Any, b: Any, x: Any) -> Any:
        m = n - order
        predicted = b
        for k in range(order):
            predicted = predicted + w[k] * x[order - 1 - k : order - 1 - k + m]
        return xp.np.mean((x[order:] - predicted) ** 2)

    def unfold(torch: Any, w: Any, b: Any, x: Any) -> Any:
        windows = x[:-1].unfold(0, order, 1)
        return torch.mean((x[order:] - windows @ w.flip(0) - b) ** 2)

    def convolution(torch: Any, w: Any, b: Any, x: Any) -> Any:
        predicted = torch.nn.functional.conv1d(x[None, None, :-1], w.flip(0)[None, None])[0, 0]
        return torch.mean((x[order:] - predicted - b) ** 2)

    rng = np.random.default_rng(0)
    weights = {"w": rng.normal(size=order) / order, "b": np.array(0.1)}
    return Case("ar", loss, weights, {"x": rng.normal(size=n)}, {"unfold": unfold, "conv1d": convolution})


def _rnn() -> Case:
    """tanh RNN, hidden 64, input 32, T = 100, batch 32: mean square of a linear readout at all steps."""
    T, B, D, H, K = 100, 32, 32, 64, 8

    def loss(xp: Any, W: Any, U: Any, b: Any, V: Any, x: Any, y: Any) -> Any:
        states = xp.scan(lambda h, x_t: xp.np.tanh(h @ W + x_t @ U + b), xp.np.zeros((B, H)), x)
        return xp.np.mean((states @ V - y) ** 2)

    def cells(torch: Any, W: Any, U: Any, b: Any, V: Any, x: Any, y: Any) -> Any:
        h, states = torch.zeros((B, H), dtype=x.dtype), []
        for projected in x @ U + b:
            h = torch.tanh(h @ W + projected)
            states.append(h)
        return torch.mean((torch.stack(states) @ V - y) ** 2)

    def kernel(torch: Any, W: Any, U: Any, b: Any, V: Any, x: Any, y: Any) -> Any:
        weights = (U.T.contiguous(), W.T.contiguous(), b, torch.zeros_like(b))
        h = torch.zeros((1, B, H), dtype=x.dtype)
        states, _ = torch.rnn_tanh(x, h, weights, True, 1, 0.0, True, False, False)
        return torch.mean((states @ V - y) ** 2)

    weights = _normal(1, W=(H, H), U=(D, H), b=(H,), V=(H, K))
    return Case("rnn", loss, weights, _normal(2, x=(T, B, D), y=(T, B, K)), {"cells": cells, "rnn": kernel})


def _lstm() -> Case:
    """LSTM, hidden 64, input 32, T = 100, batch 32; gates i, f, g, o: mean square of a linear readout."""
    T, B, D, H, K = 100, 32, 32, 64, 8

    def loss(xp: Any, W: Any, U: Any, b: Any, V: Any, x: Any, y: Any) -> Any:
        def step(state: Any, x_t: Any) -> Any:
            h, c = state
            z = h @ W + x_t @ U + b
            i, f, g, o = (z[:, k * H : (k + 1) * H] for k in range(4))
            c = xp.sigmoid(f) * c + xp.sigmoid(i) * xp.np.tanh(g)
            return xp.sigmoid(o) * xp.np.tanh(c), c

        zero = xp.zeros(B, H)
        states, _ = xp.scan(step, (zero, zero), x)
        return xp.np.mean((states @ V - y) ** 2)

    def cells(torch: Any, W: Any, U: Any, b: Any, V: Any, x: Any, y: Any) -> Any:
        h = c = torch.zeros((B, H), dtype=x.dtype)
        states = []
        for projected in x @ U + b:
            i, f, g, o = (h @ W + projected).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        return torch.mean((torch.stack(states) @ V - y) ** 2)

    def kernel(torch: Any, W: Any, U: Any, b: Any, V: Any, x: Any, y: Any) -> Any:
        weights = (U.T.contiguous(), W.T.contiguous(), b, torch.zeros_like(b))
        zero = torch.zeros((1, B, H), dtype=x.dtype)
        states, _, _ = torch.lstm(x, (zero, zero), weights, True, 1, 0.0, True, False, False)
        return torch.mean((states @ V - y) ** 2)

    weights = _normal(3, W=(H, 4 * H), U=(D, 4 * H), b=(4 * H,), V=(H, K))
    return Case("lstm", loss, weights, _normal(4, x=(T, B, D), y=(T, B, K)), {"cells": cells, "lstm": kernel})


# ---- attention -----------------------------------------------------------------------------------


def _heads(xp: Any, x: Any, Q: Any, K: Any, V: Any, O: Any, heads: int) -> Any:  # noqa: E741
    """Causal multi-head self-attention of rows x (n, d)."""
    n, d = x.shape
    width = d // heads
    q, k, v = ((x @ M).reshape(n, heads, width).transpose(1, 0, 2) for M in (Q, K, V))
    scores = q @ k.transpose(0, 2, 1) / math.sqrt(width)
    mask = xp.np.tril(xp.np.ones((n, n), bool))
    p = xp.softmax(xp.np.where(mask, scores, -xp.np.inf))
    return (p @ v).transpose(1, 0, 2).reshape(n, d) @ O


def _torch_heads(torch: Any, x: Any, Q: Any, K: Any, V: Any, O: Any, heads: int) -> Any:  # noqa: E741
    n, d = x.shape
    q, k, v = ((x @ M).view(n, heads, d // heads).transpose(0, 1)[None] for M in (Q, K, V))
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return y[0].transpose(0, 1).reshape(n, d) @ O


def _attention() -> Case:
    """Causal attention, n = 512, d = 256, 4 heads: mean square distance from a target."""
    n, d, heads = 512, 256, 4

    def loss(xp: Any, Q: Any, K: Any, V: Any, O: Any, x: Any, y: Any) -> Any:  # noqa: E741
        return xp.np.mean((_heads(xp, x, Q, K, V, O, heads) - y) ** 2)

    def sdpa(torch: Any, Q: Any, K: Any, V: Any, O: Any, x: Any, y: Any) -> Any:  # noqa: E741
        return torch.mean((_torch_heads(torch, x, Q, K, V, O, heads) - y) ** 2)

    weights = _normal(5, Q=(d, d), K=(d, d), V=(d, d), O=(d, d))
    return Case("attention", loss, weights, _normal(6, x=(n, d), y=(n, d)), {"sdpa": sdpa})


def _transformer() -> Case:
    """A pre-norm causal block, n = 256, d = 256, 4 heads, GELU MLP of 4d: mean square distance."""
    n, d, heads = 256, 256, 4

    def norm(xp: Any, x: Any, g: Any, b: Any) -> Any:
        centered = x - xp.np.mean(x, axis=-1, keepdims=True)
        variance = xp.np.mean(centered**2, axis=-1, keepdims=True)
        return g * centered / xp.np.sqrt(variance + 1e-5) + b

    def loss(
        xp: Any, Q: Any, K: Any, V: Any, O: Any, W1: Any, b1: Any, W2: Any, b2: Any,  # noqa: E741
        g1: Any, c1: Any, g2: Any, c2: Any, x: Any, y: Any,
    ) -> Any:  # fmt: skip
        h = x + _heads(xp, norm(xp, x, g1, c1), Q, K, V, O, heads)
        h = h + xp.gelu(norm(xp, h, g2, c2) @ W1 + b1) @ W2 + b2
        return xp.np.mean((h - y) ** 2)

    def natural(
        torch: Any, Q: Any, K: Any, V: Any, O: Any, W1: Any, b1: Any, W2: Any, b2: Any,  # noqa: E741
        g1: Any, c1: Any, g2: Any, c2: Any, x: Any, y: Any,
    ) -> Any:  # fmt: skip
        F = torch.nn.functional
        h = x + _torch_heads(torch, F.layer_norm(x, (d,), g1, c1), Q, K, V, O, heads)
        h = h + F.gelu(F.layer_norm(h, (d,), g2, c2) @ W1 + b1) @ W2 + b2
        return torch.mean((h - y) ** 2)

    weights = _normal(
        7, Q=(d, d), K=(d, d), V=(d, d), O=(d, d), W1=(d, 4 * d), b1=(4 * d,), W2=(4 * d, d), b2=(d,),
        g1=(d,), c1=(d,), g2=(d,), c2=(d,),
    )  # fmt: skip
    return Case("transformer", loss, weights, _normal(8, x=(n, d), y=(n, d)), {"natural": natural})


# ---- kernels and generative models ---------------------------------------------------------------


def _rbf() -> Case:
    """RBF ridge regression, N = 2000, D = 16: ½|K a − y|² + (λ/2) aᵀK a, K_ij = e^{−γ|x_i − x_j|²}."""
    N, D, ridge = 2000, 16, 0.1

    def loss(xp: Any, a: Any, gamma: Any, x: Any, y: Any) -> Any:
        square = xp.np.sum(x**2, axis=1)
        distance = square[:, None] + square[None, :] - 2 * (x @ x.T)
        K = xp.np.exp(-gamma * distance)
        f = K @ a
        return 0.5 * xp.np.sum((f - y) ** 2) + 0.5 * ridge * xp.np.sum(a * f)

    def natural(torch: Any, a: Any, gamma: Any, x: Any, y: Any) -> Any:
        square = torch.sum(x**2, dim=1)
        K = torch.exp(-gamma * (square[:, None] + square[None, :] - 2 * (x @ x.T)))
        f = K @ a
        return 0.5 * torch.sum((f - y) ** 2) + 0.5 * ridge * torch.dot(a, f)

    rng = np.random.default_rng(9)
    weights = {"a": rng.normal(size=N) / N, "gamma": np.array(0.05)}
    return Case("rbf", loss, weights, _normal(10, x=(N, D), y=(N,)), {"natural": natural})


def _vae() -> Case:
    """VAE 784-256-32-256-784, batch 128: Bernoulli reconstruction from logits plus KL, noise given."""
    B, X, H, Z = 128, 784, 256, 32

    def loss(
        xp: Any, W1: Any, b1: Any, Wm: Any, bm: Any, Ws: Any, bs: Any, W2: Any, b2: Any, W3: Any, b3: Any,
        x: Any, noise: Any,
    ) -> Any:  # fmt: skip
        h = xp.np.tanh(x @ W1 + b1)
        mean, logvar = h @ Wm + bm, h @ Ws + bs
        z = mean + xp.np.exp(0.5 * logvar) * noise
        logits = xp.np.tanh(z @ W2 + b2) @ W3 + b3
        reconstruction = xp.np.sum(xp.softplus(logits) - x * logits)
        divergence = 0.5 * xp.np.sum(mean**2 + xp.np.exp(logvar) - 1 - logvar)
        return (reconstruction + divergence) / B

    def natural(
        torch: Any, W1: Any, b1: Any, Wm: Any, bm: Any, Ws: Any, bs: Any, W2: Any, b2: Any, W3: Any, b3: Any,
        x: Any, noise: Any,
    ) -> Any:  # fmt: skip
        h = torch.tanh(x @ W1 + b1)
        mean, logvar = h @ Wm + bm, h @ Ws + bs
        z = mean + torch.exp(0.5 * logvar) * noise
        logits = torch.tanh(z @ W2 + b2) @ W3 + b3
        bce = torch.nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
        return (bce + 0.5 * torch.sum(mean**2 + torch.exp(logvar) - 1 - logvar)) / B

    weights = _normal(
        11, W1=(X, H), b1=(H,), Wm=(H, Z), bm=(Z,), Ws=(H, Z), bs=(Z,), W2=(Z, H), b2=(H,), W3=(H, X), b3=(X,)
    )
    rng = np.random.default_rng(12)
    data = {"x": (rng.random((B, X)) < 0.3).astype(float), "noise": rng.normal(size=(B, Z))}
    return Case("vae", loss, weights, data, {"natural": natural})


def _gan() -> Case:
    """GAN, generator 32-256-784, discriminator 784-256-1, batch 128: both losses, from logits.

    It is one scalar whose gradient in the generator's weights is that of the non-saturating loss, and in the
    discriminator's weights that of its cross-entropy: the usual pair of steps on the same batch.
    """
    B, X, H, Z = 128, 784, 256, 32

    def discriminator(xp: Any, x: Any, A1: Any, a1: Any, A2: Any, a2: Any) -> Any:
        return xp.relu(x @ A1 + a1) @ A2 + a2

    def loss(
        xp: Any, G1: Any, g1: Any, G2: Any, g2: Any, A1: Any, a1: Any, A2: Any, a2: Any, x: Any, z: Any
    ) -> Any:
        fake = xp.np.tanh(xp.relu(z @ G1 + g1) @ G2 + g2)
        real = discriminator(xp, x, A1, a1, A2, a2)
        seen = discriminator(xp, fake, A1, a1, A2, a2)
        return xp.np.mean(xp.softplus(-real)) + xp.np.mean(xp.softplus(seen))

    def natural(
        torch: Any, G1: Any, g1: Any, G2: Any, g2: Any, A1: Any, a1: Any, A2: Any, a2: Any, x: Any, z: Any
    ) -> Any:
        F = torch.nn.functional
        fake = torch.tanh(F.relu(z @ G1 + g1) @ G2 + g2)
        real = F.relu(x @ A1 + a1) @ A2 + a2
        seen = F.relu(fake @ A1 + a1) @ A2 + a2
        return torch.mean(F.softplus(-real)) + torch.mean(F.softplus(seen))

    weights = _normal(13, G1=(Z, H), g1=(H,), G2=(H, X), g2=(X,), A1=(X, H), a1=(H,), A2=(H, 1), a2=(1,))
    return Case("gan", loss, weights, _normal(14, x=(B, X), z=(B, Z)), {"natural": natural})


def _ddpm() -> Case:
    """DDPM noise prediction by an MLP 66-256-256-64 with SiLU, batch 256: mean |ε − ε̂|²."""
    B, X, T, H = 256, 64, 32, 256

    def loss(
        xp: Any, W1: Any, U1: Any, b1: Any, W2: Any, b2: Any, W3: Any, b3: Any, x: Any, e: Any, s: Any,
        r: Any,
        t: Any,
    ) -> Any:  # fmt: skip
        noisy = s[:, None] * x + r[:, None] * e
        h = xp.silu(noisy @ W1 + t @ U1 + b1)
        h = xp.silu(h @ W2 + b2)
        return xp.np.mean((e - (h @ W3 + b3)) ** 2)

    def natural(
        torch: Any, W1: Any, U1: Any, b1: Any, W2: Any, b2: Any, W3: Any, b3: Any, x: Any, e: Any, s: Any,
        r: Any, t: Any,
    ) -> Any:  # fmt: skip
        F = torch.nn.functional
        h = F.silu((s[:, None] * x + r[:, None] * e) @ W1 + t @ U1 + b1)
        h = F.silu(h @ W2 + b2)
        return torch.mean((e - (h @ W3 + b3)) ** 2)

    weights = _normal(15, W1=(X, H), U1=(T, H), b1=(H,), W2=(H, H), b2=(H,), W3=(H, X), b3=(X,))
    data = _normal(16, x=(B, X), e=(B, X), s=(B,), r=(B,), t=(B, T))
    return Case("ddpm", loss, weights, data, {"natural": natural})


CASES: dict[str, Callable[[], Case]] = {
    "ar": _ar,
    "rnn": _rnn,
    "lstm": _lstm,
    "attention": _attention,
    "transformer": _transformer,
    "rbf": _rbf,
    "vae": _vae,
    "gan": _gan,
    "ddpm": _ddpm,
}

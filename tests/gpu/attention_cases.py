"""Attention in plain NumPy float64, and the encoding of 16-bit numbers, for the kernel tests."""

from __future__ import annotations

import numpy as np

NAMES = ("bfloat16", "float16", "float32", "float64")


def encode(x, name):
    """Float64 numbers in the storage of an element type; bfloat16 as its bits in uint16."""
    if name == "bfloat16":
        bits = np.asarray(x, np.float32).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.asarray(x, np.dtype(name))


def decode(x, name):
    """The stored numbers in float64."""
    if name == "bfloat16":
        return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return np.asarray(x, np.float64)


def reference(q, k, v, out_bar, lse_bar, scale, score=None, slope=None, visible=None):
    """o, L, q̄, k̄, v̄ and t̄ by the definition, all pairs at once.

    ``score`` and ``slope`` map the array of s to t and ∂t/∂s; ``visible`` is a Boolean array that
    broadcasts to (batch, heads, N, M).
    """
    group = q.shape[1] // k.shape[1]
    keys, values = np.repeat(k, group, 1), np.repeat(v, group, 1)
    s = scale * np.einsum("bhnd,bhmd->bhnm", q, keys)
    t = s if score is None else score(s)
    seen = np.broadcast_to(True if visible is None else visible, s.shape)
    t = np.where(seen, t, -np.inf)
    top = t.max(-1, keepdims=True)
    p = np.exp(t - np.where(np.isneginf(top), 0, top))
    total = p.sum(-1, keepdims=True)
    p = p / np.where(total > 0, total, 1)
    with np.errstate(divide="ignore"):
        lse = (np.where(np.isneginf(top), 0, top) + np.log(total))[..., 0]
    out = p @ values
    delta = (out_bar * out).sum(-1) - lse_bar
    t_bar = p * (out_bar @ values.swapaxes(-1, -2) - delta[..., None])
    s_bar = scale * t_bar * (1.0 if slope is None else slope(s))

    def shared(x):
        return x.reshape(x.shape[0], k.shape[1], group, *x.shape[2:]).sum(2)

    q_bar = s_bar @ keys
    k_bar = shared(s_bar.swapaxes(-1, -2) @ q)
    v_bar = shared(p.swapaxes(-1, -2) @ out_bar)
    return out, lse, q_bar, k_bar, v_bar, t_bar


def relative(x, y):
    """‖x − y‖ / ‖y‖ in the Frobenius norm; infinite if x contains NaN or ∞."""
    difference = np.linalg.norm(np.asarray(x, np.float64) - y)
    return difference / max(np.linalg.norm(y), 1e-300) if np.isfinite(difference) else np.inf

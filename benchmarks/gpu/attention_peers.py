"""Other attention implementations behind one interface, for attention.py.

A peer is called with (array library, [q, k, v, ō], causal, timed) and returns (forward, backward, values):
two calls to time, and one that returns (o, q̄, k̄, v̄) as arrays of that library. It raises `Unavailable` if
it cannot run.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from benchmarks.machine import loaded

Peer = tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]


class Unavailable(Exception):
    """A package is missing, or the implementation does not support this problem."""


def unfused(xp: Any, arrays: list[Any], causal: bool, timed: bool) -> Peer:
    """Three matrix products and a softmax on N × M matrices, as one writes in CuPy."""
    q, k, v, out_bar = arrays
    if q.dtype.itemsize == 2:
        raise Unavailable("CuPy's elementwise kernels are not used in bfloat16 here")
    scale = q.dtype.type(1 / math.sqrt(q.shape[-1]))
    n, m = q.shape[2], k.shape[2]
    bias = None
    if causal:
        hidden = xp.arange(m) > xp.arange(n)[:, None]
        bias = xp.where(hidden, q.dtype.type(-np.inf), q.dtype.type(0))

    def probabilities() -> Any:
        s = q @ k.swapaxes(-1, -2)
        s *= scale
        if bias is not None:
            s += bias
        s -= s.max(axis=-1, keepdims=True)
        xp.exp(s, out=s)
        s /= s.sum(axis=-1, keepdims=True)
        return s

    p = probabilities()
    out = p @ v

    def forward() -> Any:
        return probabilities() @ v

    def backward() -> tuple[Any, ...]:
        v_bar = p.swapaxes(-1, -2) @ out_bar
        t_bar = out_bar @ v.swapaxes(-1, -2)
        t_bar -= (out_bar * out).sum(axis=-1, keepdims=True)
        t_bar *= p
        t_bar *= scale
        return t_bar @ k, t_bar.swapaxes(-1, -2) @ q, v_bar

    return forward, backward, lambda: (out, *backward())


def _tensors(xp: Any, arrays: list[Any]) -> list[Any]:
    """The arrays as torch tensors on the same memory; the first three require gradients."""
    if not loaded("torch"):
        raise Unavailable("torch cannot be loaded")
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    made = [torch.from_numpy(a) if xp is np else torch.from_dlpack(a)
            for a in arrays]  # fmt: skip
    return [t.requires_grad_(i < 3) for i, t in enumerate(made)]


def _through_autograd(xp: Any, function: Callable[..., Any], tensors: list[Any]) -> Peer:
    import torch

    *qkv, out_bar = tensors
    out = function(*qkv)

    def forward() -> Any:
        with torch.no_grad():
            return function(*qkv)

    def backward() -> Any:
        return torch.autograd.grad(out, qkv, out_bar, retain_graph=True)

    def values() -> list[Any]:
        found = [t.detach() for t in (out, *backward())]
        return [t.numpy() if t.device.type == "cpu" else xp.from_dlpack(t) for t in found]

    return forward, backward, values


def sdpa(backend: str, xp: Any, arrays: list[Any], causal: bool, timed: bool) -> Peer:
    """torch's scaled_dot_product_attention with one backend forced."""
    tensors = _tensors(xp, arrays)
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    chosen = getattr(SDPBackend, backend)

    def function(q: Any, k: Any, v: Any) -> Any:
        with sdpa_kernel(chosen):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    try:
        return _through_autograd(xp, function, tensors)
    except RuntimeError as error:
        raise Unavailable(str(error).splitlines()[0]) from error


def twice_through_math(xp: Any, arrays: list[Any], causal: bool) -> Callable[[], list[Any]]:
    """Tangents of (q̄, k̄, v̄) along (q, k, v, ō) by differentiating torch's unfused attention twice.

    ∂⟨q̄, u⟩ + ... is symmetric in the direction, so that a second reverse pass gives the product; ō varies
    too, which adds the cotangents themselves.
    """
    *qkv, out_bar = _tensors(xp, arrays)
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def call() -> list[Any]:
        with sdpa_kernel(SDPBackend.MATH):
            out = torch.nn.functional.scaled_dot_product_attention(*qkv, is_causal=causal)
            bars = torch.autograd.grad(out, qkv, out_bar, create_graph=True)
            slope = sum((b * x.detach()).sum() for b, x in zip(bars, qkv, strict=True))
            products = torch.autograd.grad(slope, qkv)
        found = [(p + b).detach() for p, b in zip(products, bars, strict=True)]
        return [t.numpy() if t.device.type == "cpu" else xp.from_dlpack(t) for t in found]

    return call


def flex(xp: Any, arrays: list[Any], causal: bool, timed: bool) -> Peer:
    """Compiled FlexAttention with its block mask."""
    if not timed:
        raise Unavailable("needs a GPU")
    tensors = _tensors(xp, arrays)
    compiled, create_block_mask = _flex()
    n, m = tensors[0].shape[2], tensors[1].shape[2]
    blocks = create_block_mask(_causal, None, None, n, m, device="cuda") if causal else None

    def function(q: Any, k: Any, v: Any) -> Any:
        return compiled(q, k, v, block_mask=blocks)

    return _through_autograd(xp, function, tensors)


def _flex() -> tuple[Any, Any]:
    try:
        import torch
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    except ImportError as error:
        raise Unavailable("no FlexAttention in this torch") from error
    torch._dynamo.reset()  # after eight shapes dynamo would fall back to eager code
    return torch.compile(flex_attention, dynamic=False), create_block_mask


def _causal(b: Any, h: Any, i: Any, j: Any) -> Any:
    return j <= i


def _alibi(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return s + (j - i) * 2.0 ** (-(h + 1) / 2)


def _soft_cap(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    import torch

    return 20 * torch.tanh(s / 20)


def flex_first_call(timed: bool) -> dict[str, Any]:
    """Seconds of FlexAttention's first forward and backward, and ms of later ones, by score."""
    if not timed:
        return {}
    try:
        _flex()
    except Unavailable as error:
        return {"failed": str(error)}
    import torch

    found: dict[str, Any] = {}
    for name, score in (("ALiBi", _alibi), ("soft cap", _soft_cap)):
        compiled, create_block_mask = _flex()
        shape = (1, 16, 16384, 128)
        qkv = [
            torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)
            for _ in range(3)
        ]
        try:
            torch.cuda.synchronize()
            begin = time.perf_counter()
            blocks = create_block_mask(_causal, None, None, 16384, 16384, device="cuda")
            out = compiled(*qkv, score_mod=score, block_mask=blocks)
            torch.autograd.grad(out.sum(), qkv)
            torch.cuda.synchronize()
            found[name] = {"first_s": time.perf_counter() - begin}
            for _ in range(3):
                compiled(*qkv, score_mod=score, block_mask=blocks)
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(10):
                compiled(*qkv, score_mod=score, block_mask=blocks)
            stop.record()
            torch.cuda.synchronize()
            found[name]["forward_ms"] = start.elapsed_time(stop) / 10
        except Exception as error:
            found[name] = {"failed": f"{type(error).__name__}: {error}"[:200]}
    return found


PEERS: dict[str, Callable[..., Peer]] = {
    "unfused CuPy": unfused,
    "torch SDPA flash": partial(sdpa, "FLASH_ATTENTION"),
    "torch SDPA cuDNN": partial(sdpa, "CUDNN_ATTENTION"),
    "torch SDPA memory-efficient": partial(sdpa, "EFFICIENT_ATTENTION"),
    "torch SDPA math": partial(sdpa, "MATH"),
    "FlexAttention": flex,
}

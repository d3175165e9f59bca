"""Stages of tiled attention: the code that a GPU runs, and the same tiles in NumPy."""

from __future__ import annotations

import numpy as np
import sympy as sp

import symad
from symad.cli.tour.stage import Finding, Made, TourModel, stage
from symad.functions import attention

HEADS, LENGTH, WIDTH = 2, 6, 3


def slopes(s: sp.Expr, b: sp.Expr, h: sp.Expr, i: sp.Expr, j: sp.Expr, slope: sp.Basic) -> sp.Expr:
    """A soft cap on scores with a linear bias per head."""
    return 2 * sp.tanh((s + slope[h] * (j - i)) / 2)


@stage(
    "tiled attention",
    "any score function and mask; tiles of pairs, forward, backward and second order",
    quick=True,
)
def tiled() -> TourModel:
    """The squared output of causal attention with learned slopes."""

    def loss(q, k, v, slope):  # type: ignore[no-untyped-def]  # as users write it
        out = attention(q, k, v, causal=True, score=slopes, params={"slope": slope})
        return (out**2).sum()

    rng = np.random.default_rng(3)
    shapes = [(1, HEADS, LENGTH, WIDTH)] * 3 + [(HEADS,)]
    small = symad.trace(
        lambda q, k, v: (attention(q, k, v, scale=1) ** 2).sum(), [(1, 1, 1, 1), (1, 1, 2, 1), (1, 1, 2, 1)]
    )
    return TourModel(symad.trace(loss, shapes), [rng.normal(size=s) for s in shapes], use=tiles, check=small)


def tiles(made: Made) -> list[Finding]:
    """The tiles against all pairs, the traffic, and the CUDA code."""
    from symad.errors import LoweringError
    from symad.numeric import lower
    from symad.numeric.eager.attention import attention as blocked
    from symad.numeric.eager.attention import attention_traffic

    rng = np.random.default_rng(4)
    q, k, v = (rng.normal(size=(1, 1, 300, 16)) for _ in range(3))
    s = q @ k.swapaxes(2, 3) / 4
    p = np.where(np.tri(300, dtype=bool), np.exp(s), 0)
    apart = np.abs(blocked(q, k, v, causal=True) - p / p.sum(3, keepdims=True) @ v).max()
    found = [Finding(f"tiles and all pairs of 300 positions differ by {apart:.0e}", bool(apart < 1e-13))]
    for length in (1024, 4096, 16384):
        moved = attention_traffic(length, 64, 128)
        whole, some, cached = (float(moved[n]) / 1e6 for n in ("standard", "tiled", "tiled, keys in cache"))
        text = f"{length:6,d} positions: {whole:6.1f} million numbers moved with an N × N array, "
        found.append(Finding(f"{text}{some:5.1f} by tiles, {cached:.1f} if keys stay in cache", some < whole))
    product = symad.hvp(made.graph, wrt=[0, 1, 2])
    square = any(node.shape[-2:] == (LENGTH, LENGTH) for node in product.nodes)
    found.append(Finding("a Hessian-vector product in q, k and v has no N × N array", not square))
    try:
        source = lower(product, backend="cupy").source
    except LoweringError as error:
        return [*found, Finding(f"no CUDA code: {error}", False)]
    kernels = [n for n in ("forward", "tangent", "second_q", "second_kv") if f"attention_{n}" in source]
    text = f"as CUDA code: kernels {', '.join(kernels)} in {len(source) // 1000} thousand characters"
    return [*found, Finding(text, len(kernels) == 4)]

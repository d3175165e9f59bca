"""Attention with any score function and mask: each is a line of SymPy, and each has its derivatives.

A score function changes s = scale ⟨q_i, k_j⟩; a mask selects the visible pairs. Linear biases (ALiBi), soft
caps, sliding windows, prefixes and documents take one line each. The same call runs tile by tile in NumPy
and, if CuPy finds a device, in CUDA kernels; no N × N array is formed.
Run: python examples/speed/40_attention_scores.py [--out DIR] for the picture.
"""

import argparse
from pathlib import Path

import numpy as np
import sympy as sp

import symad
from symad.functions import attention as graph_attention
from symad.gpu import attention
from symad.numeric import lower
from symad.numeric.eager.attention import attention_traffic

N, HEADS, WIDTH = 96, 4, 16
SLOPES = 2.0 ** -(8 / HEADS * np.arange(1, HEADS + 1))  # Press et al. 2022, section 3
DOCUMENT = np.repeat(np.arange(4), [30, 10, 36, 20]).astype(np.int32)


def alibi(s, b, h, i, j, slope):
    """Press, Smith and Lewis 2022: a penalty per head that grows with the distance."""
    return s + slope[h] * (j - i)


VARIANTS = {
    "causal": {"causal": True},
    "ALiBi": {"causal": True, "score": alibi, "params": {"slope": SLOPES}},
    "soft cap": {"causal": True, "score": lambda s, b, h, i, j: 2 * sp.tanh(s / 2)},
    "sliding window": {"mask": lambda b, h, i, j: (j <= i) & (i - j < 16)},
    "prefix": {"mask": lambda b, h, i, j: (j <= i) | (j < 24)},
    "documents": {
        "mask": lambda b, h, i, j, doc: sp.Eq(doc[i], doc[j]) & (j <= i),
        "params": {"doc": DOCUMENT},
    },
}

# The same by hand in NumPy, for head 1: scores, and the visible pairs.
BY_HAND = {
    "causal": lambda s, i, j: (s, j <= i),
    "ALiBi": lambda s, i, j: (s + SLOPES[1] * (j - i), j <= i),
    "soft cap": lambda s, i, j: (2 * np.tanh(s / 2), j <= i),
    "sliding window": lambda s, i, j: (s, (j <= i) & (i - j < 16)),
    "prefix": lambda s, i, j: (s, (j <= i) | (j < 24)),
    "documents": lambda s, i, j: (s, (DOCUMENT[i] == DOCUMENT[j]) & (j <= i)),
}


def library():
    """CuPy if it finds a device, otherwise NumPy."""
    try:
        import cupy
    except Exception:
        return np
    return cupy if cupy.is_available() else np


def probabilities(q, k, by_hand):
    """The weights of head 1 over all pairs, from the definition: for the picture and the check."""
    i, j = np.arange(N)[:, None], np.arange(N)
    t, seen = by_hand(q[0, 1] @ k[0, 1].T / np.sqrt(WIDTH), i, j)
    e = np.where(seen, np.exp(t), 0)
    return e / e.sum(1, keepdims=True)


def learned_slopes(q, k, v):
    """The gradient with respect to the slopes, from a graph and from lowered code."""
    def loss(q, k, v, slope):
        out = graph_attention(q, k, v, causal=True, score=alibi, params={"slope": slope})
        return (out**2).sum()

    graph = symad.trace(loss, [q.shape, k.shape, v.shape, SLOPES.shape])
    gradient = lower(symad.gradient(graph, wrt="slope"))
    product = lower(symad.hvp(graph, wrt=[0, 1, 2]))
    return gradient(q, k, v, SLOPES), product(q, k, v, SLOPES, v, q, k)


def main() -> None:
    """Compare every variant with its definition; print traffic and derivatives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the picture")
    options = parser.parse_args()
    xp = library()
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(1, HEADS, N, WIDTH)) for _ in range(3))
    weights = {}
    print(f"backend {xp.__name__}: {HEADS} heads, {N} positions, float64")
    for name, how in VARIANTS.items():
        params = {key: xp.asarray(value) for key, value in how.get("params", {}).items()}
        out = attention(*(xp.asarray(a) for a in (q, k, v)), **{**how, "params": params})
        out = out if xp is np else xp.asnumpy(out)
        weights[name] = probabilities(q, k, BY_HAND[name])
        apart = np.abs(out[0, 1] - weights[name] @ v[0, 1]).max()
        share = (weights[name] > 0).mean()
        print(f"{name:15s} {share:4.0%} of the pairs, differs by {apart:.0e} from the definition")
        assert apart < 1e-12
    slope_bar, products = learned_slopes(q, k, v)
    print("gradient with respect to the slopes:", np.array2string(slope_bar, precision=3))
    print(f"a Hessian-vector product in q, k and v: norm {np.linalg.norm(products[0]):.3f}")
    traffic = attention_traffic(16384, 128, 128)
    print("16384 positions of width 128, millions of numbers between slow and fast memory:")
    for name in ("standard", "tiled", "tiled, keys in cache"):
        print(f"  {name:22s}{float(traffic[name]) / 1e6:7.1f}")
    if options.out:
        picture(options.out, weights)


def picture(folder, weights) -> None:
    """The weights of one head under every variant."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import LogNorm

    figure, axes = plt.subplots(2, 3, figsize=(9, 6.2), layout="constrained", sharex=True, sharey=True)
    for panel, (name, p) in zip(axes.flat, weights.items(), strict=True):
        shown = np.ma.masked_where(p == 0, p)
        image = panel.imshow(shown, norm=LogNorm(1e-4, 1), cmap="viridis")
        panel.set_title(name)
    for panel in axes[1]:
        panel.set_xlabel("key j")
    for panel in axes[:, 0]:
        panel.set_ylabel("query i")
    figure.colorbar(image, ax=axes, label="weight (white: hidden)", shrink=0.7)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "attention_scores.png", dpi=150)


if __name__ == "__main__":
    main()

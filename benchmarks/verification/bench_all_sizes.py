"""CPU seconds of `check` for functions with symbolic sizes, and for attention with arrays of known sizes.

Both gradients and all four Hessians are proved, or the status says what is known instead. The second time is
that of `verify` for symad's own gradient as the candidate.

Usage: python benchmarks/verification/bench_all_sizes.py [--runs 3]
"""

import argparse
import platform
import statistics
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import sympy as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import symad
from symad import functions
from symad.verification.proof import node_proofs

T, n, d, k, h = sp.symbols("T n d k h", integer=True, positive=True)


def layer_norm(x, scale, shift):
    """Σ of cubes of a normed array."""
    c = x - x.mean(-1, keepdims=True)
    return ((c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * scale + shift) ** 3).sum()


def network(f):
    """The loss of a network with one hidden layer."""
    return lambda X, y, W, b, u: ((f(X @ W + b) @ u - y) ** 2).mean()


def attention(q, s, v, causal=False):
    """Σ of squares of attention."""
    return (functions.attention(q, s, v, causal=causal) ** 2).sum()


def causal(q, s, v):
    """The same where each position sees those before it, and itself."""
    return attention(q, s, v, causal=True)


def normed(x, scale, shift):
    """Rows with mean 0 and variance 1, scaled and shifted."""
    c = x - x.mean(-1, keepdims=True)
    return c / np.sqrt((c * c).mean(-1, keepdims=True) + 1e-5) * scale + shift


def block(x, q, s, v, out, g1, c1, g2, c2, W1, b1, W2, b2):
    """A block of a transformer: causal attention and a network with GELU, each after a norm."""
    z = normed(x, g1, c1)
    x = x + functions.attention(z @ q, z @ s, z @ v, causal=True) @ out
    return x + functions.gelu(normed(x, g2, c2) @ W1 + b1) @ W2 + b2


def blocks(count):
    """The squared distance of that many blocks from given values, and the shapes by (T, d, h)."""

    def loss(x, y, *p):
        for k in range(count):
            x = block(x, *p[12 * k : 12 * k + 12])
        return ((x - y) ** 2).sum()

    def shapes(T, d, h):
        return [(T, d)] * 2 + ([(d, d)] * 4 + [(d,)] * 4 + [(d, h), (h,), (h, d), (d,)]) * count

    return loss, shapes


LAYERS = [(n, d), (n,), (d, k), (k,), (k,)]
CASES = {
    "attention": (attention, [(T, d), (n, d), (n, k)]),
    "causal attention": (causal, [(T, d), (T, d), (T, k)]),
    "self-attention with weights": (
        lambda X, q, s, v: attention(X @ q, X @ s, X @ v), [(T, d), (d, k), (d, k), (d, k)],
    ),
    "layer norm": (layer_norm, [(T, d), (d,), (d,)]),
    "cross-entropy of logits": (
        lambda X, Y, W: -(Y * functions.log_softmax(X @ W)).sum(), [(n, d), (n, k), (d, k)],
    ),
    "network, ReLU": (network(functions.relu), LAYERS),
    "network, tanh": (network(np.tanh), LAYERS),
    "network, SiLU": (network(functions.silu), LAYERS),
    "network, GELU": (network(functions.gelu), LAYERS),
    "attention, 8 by 16": (attention, [(8, 16)] * 3),
    "attention, 128 by 16": (attention, [(128, 16)] * 3),
    "causal, 8 by 16": (causal, [(8, 16)] * 3),
    "causal, 128 by 16": (causal, [(128, 16)] * 3),
    "block of a transformer": (blocks(1)[0], blocks(1)[1](T, d, h)),
    "two blocks": (blocks(2)[0], blocks(2)[1](T, d, h)),
    "block, 4 by 8": (blocks(1)[0], blocks(1)[1](4, 8, 16)),
    "Huber loss": (lambda r: np.where(abs(r) < 1, r * r / 2, abs(r) - 0.5).sum(), [(n,)]),
}  # fmt: skip


def main():
    """Time them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, SymPy {sp.__version__}, NumPy {np.__version__}")
    print(f"{'function':28}  {'check, s':>8}  {'verify, s':>9}  {'steps':>6}  status")
    for name, (f, shapes) in CASES.items():
        graph = symad.trace(f, shapes)
        gradient = symad.gradient(graph)
        ways = partial(symad.check, graph), partial(symad.verify, graph, gradient=gradient)
        (whole, made), (one, _) = [timed(way, options.runs) for way in ways]
        print(f"{name:28}  {whole:8.2f}  {one:9.2f}  {made.proof_steps:6}  {made.status}")


def timed(ask, runs):
    """The median of CPU seconds, and the last certificate."""
    times = []
    for seed in range(runs):
        node_proofs.proofs_of.cache_clear()  # those found in the run before
        start = time.process_time()
        made = ask(seed=seed)
        times.append(time.process_time() - start)
    return statistics.median(times), made


if __name__ == "__main__":
    main()

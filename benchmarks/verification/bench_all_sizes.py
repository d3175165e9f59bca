"""CPU seconds of `check` for functions with symbolic sizes, and for attention with arrays of known sizes.

Both gradients and all four Hessians are proved, or the status says what is known instead.

Usage: python benchmarks/verification/bench_all_sizes.py [--runs 3]
"""

import argparse
import platform
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import sympy as sp

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import symad
from symad import functions
from symad.verification.proof import find_isomorphism

T, n, d, k = sp.symbols("T n d k", integer=True, positive=True)


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
    print(f"{'function':28}  {'CPU s':>6}  {'steps':>6}  status")
    for name, (f, shapes) in CASES.items():
        graph = symad.trace(f, shapes)
        times = []
        for seed in range(options.runs):
            find_isomorphism.known_steps.cache_clear()  # proofs found in the run before
            start = time.process_time()
            certificate = symad.check(graph, seed=seed)
            times.append(time.process_time() - start)
        seconds = statistics.median(times)
        print(f"{name:28}  {seconds:6.2f}  {certificate.proof_steps:6}  {certificate.status}")


if __name__ == "__main__":
    main()

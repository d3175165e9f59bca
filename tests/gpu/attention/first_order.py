"""Arguments and calls of the attention kernels, on the CPU."""

import numpy as np

from tests.gpu.attention_cases import encode


def draw(name, sizes, seed=0):
    """q, k, v, ō in storage, and a cotangent of L."""
    batch, heads, groups, n, m, d, dv = sizes
    rng = np.random.default_rng(seed)
    shapes = [(batch, heads, n, d), (batch, groups, m, d), (batch, groups, m, dv)]
    shapes.append((batch, heads, n, dv))
    arrays = [encode(rng.normal(size=s), name) for s in shapes]
    return arrays, rng.normal(size=(batch, heads, n)).astype(np.float32)

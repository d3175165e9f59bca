"""Arguments of attention on the device."""

import numpy as np
import pytest

from tests.gpu.attention_cases import encode


def device(x, name):
    """A NumPy array as a CuPy array of the dtype; bfloat16 comes as bits."""
    import cupy as cp

    if name != "bfloat16":
        return cp.asarray(x)
    ml_dtypes = pytest.importorskip("ml_dtypes")
    return cp.asarray(x).view(ml_dtypes.bfloat16)


def draw(name, sizes):
    batch, heads, groups, n, m, d, dv = sizes
    rng = np.random.default_rng(0)
    shapes = [(batch, heads, n, d), (batch, groups, m, d), (batch, groups, m, dv)]
    shapes.append((batch, heads, n, dv))
    return [encode(rng.normal(size=s), name) for s in shapes]

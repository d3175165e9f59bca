"""The stand-in's cupyx and cupyx.scipy.linalg."""

from __future__ import annotations

import sys

import numpy as np
from scipy.linalg import solve_triangular as scipy_solve
from scipy.sparse import csr_array

from tests.gpu.cupy_standin import cuda, special
from tests.gpu.cupy_standin.array import Promotion, host, wrapped

scipy_module = sys.modules[__name__]
linalg = scipy_module


def __getattr__(name):
    if name == "scipy":
        return _Scipy
    raise AttributeError(name)


class _Scipy:
    linalg = scipy_module
    special = special
    sparse = scipy_module


def scatter_add(target, indices, updates):
    """target[indices] += updates, repeated indices added; both of one dtype, by atomic additions.

    cupy/_core/_routines_indexing.pyx of 14.2.0, lines 946-953 (13.6.0: 878-884): no bfloat16; float16 is
    added in float16.
    """
    if updates.dtype.name == "bfloat16":
        raise TypeError("cupy.add.at only supports int32, int64, float16, float32, float64, uint32, uint64")
    cuda.launched()
    if target.dtype != updates.dtype:
        raise Promotion(f"scatter_add of {updates.dtype} into {target.dtype}")
    np.add.at(host(target), host(indices), host(updates))


def solve_triangular(matrix, right, lower=False):
    """One triangular system."""
    arrays = (matrix, right)
    return wrapped(_solve(host(matrix), host(right), lower).astype(right.dtype), arrays)


def _solve(matrix, right, lower):
    return scipy_solve(matrix, right, lower=lower)


class csr_matrix:  # CuPy's name
    """A matrix in compressed rows on the device: 32-bit indices, entries of float32 or float64."""

    def __init__(self, parts, shape):
        data, indices, indptr = (host(part) for part in parts)
        if data.dtype not in (np.float32, np.float64):
            raise ValueError(f"only float32 and float64, not {data.dtype}")
        if indices.dtype != np.int32 or indptr.dtype != np.int32:
            raise TypeError("indices must have 32 bits")
        self.data, self.shape = wrapped(data, parts), shape
        self._inside = csr_array((data, indices, indptr), shape=shape)

    def get(self):
        """The explicit transfer to the host."""
        return self._inside

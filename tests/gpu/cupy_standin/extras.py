"""The stand-in's cupyx and cupyx.scipy.linalg."""

from __future__ import annotations

import sys

import numpy as np
from scipy.linalg import solve_triangular as scipy_solve

from tests.gpu.cupy_standin import special
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


def scatter_add(target, indices, updates):
    """target[indices] += updates, repeated indices added; both of one dtype."""
    if target.dtype != updates.dtype:
        raise Promotion(f"scatter_add of {updates.dtype} into {target.dtype}")
    np.add.at(host(target), host(indices), host(updates))


def solve_triangular(matrix, right, lower=False):
    """One triangular system."""
    arrays = (matrix, right)
    return wrapped(_solve(host(matrix), host(right), lower).astype(right.dtype), arrays)


def _solve(matrix, right, lower):
    return scipy_solve(matrix, right, lower=lower)

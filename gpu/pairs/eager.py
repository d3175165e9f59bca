"""Kernel sums over all pairs of two point sets on the GPU, without the matrix of pairs.

The reductions and cotangents of `symad.numeric.pairwise` on CuPy arrays: the op is lowered, and its code is
cached by the shapes and the formula of the pair function. There is one pass for the value, one over rows for
the cotangents of x and the parameters, and one over columns for those of y and b. Sums are taken in a fixed
order, so that results have the same bits in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import sympy as sp

from symad.errors import ShapeError
from symad.gpu.compile import check_device, cupy
from symad.gpu.pairs.printer import MAX_COMPONENTS
from symad.gpu.settings import current, options
from symad.numeric.eager.calls import Library
from symad.numeric.eager.pairwise import PairCotangents, cotangents, reduced
from symad.numeric.eager.pairwise import pairwise as cpu_pairwise
from symad.numeric.eager.pairwise import pairwise_vjp as cpu_pairwise_vjp

Array = Any


def pairwise(
    f: Callable[..., object] | sp.Basic,
    x: Array,
    y: Array,
    b: Array | None = None,
    *,
    reduce: str = "sum",
    params: Mapping[str, Array] | None = None,
    return_lse: bool = False,
    fast: bool = False,
) -> Any:
    """Reduce f(x_i, y_j, θ) over j, weighted by b_j, for every i.

    With k_ij = f(x_i, y_j, θ): "sum" gives a_i = Σ_j k_ij b_j; "logsumexp" gives
    L_i = log Σ_j b_j exp(k_ij) with b_j > 0; "softmax" gives
    a_i = Σ_j b_j exp(k_ij) / Σ_j exp(k_ij).

    The arguments are those of `symad.numeric.pairwise`, with points of at most 128 components, and CuPy
    arrays of float32 or float64 (NumPy arrays, if all are, are computed on the CPU). Kernels are compiled
    once for each formula. ``fast`` allows approximate instructions (tanh, absolute error about 5e-4).

    Returns:
        (N,) or (N, E), as b; (N,) for "logsumexp". float32 exponentials have a relative error of
        about |k| 2⁻²⁴.

    Raises:
        ShapeError: the shapes do not fit, or D > 128.
        TypeError: the arrays are of different libraries or dtypes.
        TraceError: f uses unknown symbols.
        GpuError: there is no usable GPU.
    """
    if _all_numpy(x, y, b):
        return cpu_pairwise(f, x, y, b, reduce=reduce, params=params, return_lse=return_lse)
    with options(fast=fast or current().fast):
        return reduced(_library(x, y, b), f, x, y, b, reduce, params, return_lse)


def pairwise_vjp(
    f: Callable[..., object] | sp.Basic,
    x: Array,
    y: Array,
    b: Array | None,
    out: Array,
    out_bar: Array,
    *,
    lse: Array | None = None,
    reduce: str = "sum",
    params: Mapping[str, Array] | None = None,
    fast: bool = False,
) -> PairCotangents:
    """Cotangents of x, y, b and θ from those of `pairwise`'s result, in two passes over the pairs.

    The arguments are those of `pairwise`, its results, and the cotangent of the first in its shape; ``lse``
    is needed for "softmax".
    """
    if _all_numpy(x, y, b):
        return cpu_pairwise_vjp(f, x, y, b, out, out_bar, lse=lse, reduce=reduce, params=params)
    with options(fast=fast or current().fast):
        return cotangents(_library(x, y, b), f, x, y, b, out, out_bar, lse, reduce, params)


def _library(x: Array, y: Array, b: Array | None) -> Library:
    """CuPy with the options in force, after a check that the kernels accept the arrays.

    Raises:
        ShapeError: D > 128, or there are 2³¹ points or more.
        GpuError: there is no usable GPU, or an array is elsewhere.
    """
    cp = cupy()
    check_device(cp, x=x, y=y, **({} if b is None else {"b": b}))
    if getattr(x, "ndim", 0) == 2 and x.shape[1] > MAX_COMPONENTS:
        raise ShapeError(f"points have {x.shape[1]} components; the kernels take at most {MAX_COMPONENTS}")
    if max(x.shape[:1] + y.shape[:1], default=0) >= 2**31:
        raise ShapeError("the kernels take fewer than 2³¹ points")
    return Library("gpu", cp, "cupy", current())


def _all_numpy(*arrays: Array | None) -> bool:
    return all(a is None or isinstance(a, np.ndarray) for a in arrays)

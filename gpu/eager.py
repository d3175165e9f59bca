"""Attention and sums over pairs, called on device arrays: tiles of pairs, never the matrix of all pairs.

The mathematics, the arguments and the conventions are those of `symad.numeric.attention` and
`symad.numeric.pairwise`, which compute NumPy arrays on the CPU: nothing is copied between the two
memories. The op is lowered, and its code is cached by its formulas; that of attention serves any lengths.
Attention's backward pass needs memory for two numbers per query, never for N × M. Sums over pairs are taken
in one pass for the value, one over rows for the cotangents of x and the parameters, and one over columns for
those of y and b. All sums have a fixed order, so that results have the same bits in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np
import sympy as sp

from symad.errors import ShapeError
from symad.gpu.attention_kernels.plan import ELEMENTS, MAX_HEAD_DIM
from symad.gpu.compile import GpuError, check_device, cupy, machine
from symad.gpu.pairs.printer import MAX_COMPONENTS
from symad.gpu.settings import current, options
from symad.numeric.eager.attention import (
    AttentionCotangents,
    Lengths,
    Rules,
    attended,
    check_arrays,
    cotangents,
)
from symad.numeric.eager.attention import attention as cpu_attention
from symad.numeric.eager.attention import attention_vjp as cpu_attention_vjp
from symad.numeric.eager.calls import Library
from symad.numeric.eager.pairwise import PairCotangents, reduced
from symad.numeric.eager.pairwise import cotangents as pair_cotangents
from symad.numeric.eager.pairwise import pairwise as cpu_pairwise
from symad.numeric.eager.pairwise import pairwise_vjp as cpu_pairwise_vjp

# ---- attention -----------------------------------------------------------------------------------

Array = Any
Function = Callable[..., Any]


def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    score: Function | None = None,
    mask: Function | None = None,
    params: Mapping[str, Array] | None = None,
    scale: float | None = None,
    causal: bool = False,
    lengths: Lengths | None = None,
    return_lse: bool = False,
    fast: bool = False,
    tensor_cores: bool = True,
) -> Any:
    """o_i = Σ_j softmax_j(f(scale ⟨q_i, k_j⟩, b, h, i, j, θ)) v_j over the pairs the mask allows.

    The arguments are those of `symad.numeric.attention`, with head dims of at most 256, and CuPy arrays of
    float16, bfloat16, float32 or float64. NumPy arrays, if all are, are computed on the CPU; arrays that are
    not C-contiguous are copied. Kernels are compiled once for each formula. In addition:

        fast: allow approximate instructions in the score function (tanh, absolute error 5e-4).
        tensor_cores: False computes float32 products by ordinary arithmetic instead of three tf32 products
            each (22 bits of every factor); compute capability 7.5 does so always.

    Returns:
        Outputs (batch, heads, N, d_v) in the dtype of ``q``, with L in float32 (float64 for float64) if
        asked. Rows without visible keys are 0, with L = −∞.

    Raises:
        ShapeError: the shapes do not fit.
        ValueError: no tile for these head dims fits this device.
        TypeError: the arrays are of different libraries or dtypes.
        TraceError: score or mask use unknown symbols or arrays.
        GpuError: there is no usable GPU.

    Example:
        >>> import numpy as np, symad.gpu
        >>> q, k, v = (np.zeros((1, 1, n, 2)) for n in (1, 2, 2))
        >>> v[..., 1] = [1.0, 3.0]
        >>> symad.gpu.attention(q, k, v)  # arrays of NumPy are computed on the CPU
        array([[[[0., 2.]]]])
    """
    if _all_numpy(q, k, v):
        return cpu_attention(
            q, k, v, score=score, mask=mask, params=params, scale=scale, causal=causal,
            lengths=lengths, return_lse=return_lse,
        )  # fmt: skip
    cores = tensor_cores and current().tensor_cores
    with options(fast=fast or current().fast, tensor_cores=cores, wide=True):
        library = _library(q, k, v, params)
        return attended(library, q, k, v, Rules(score, mask, params, scale, causal, lengths), return_lse)


def attention_vjp(
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    lse: Array,
    out_bar: Array,
    *,
    lse_bar: Array | None = None,
    score: Function | None = None,
    mask: Function | None = None,
    params: Mapping[str, Array] | None = None,
    scale: float | None = None,
    causal: bool = False,
    lengths: Lengths | None = None,
    fast: bool = False,
    tensor_cores: bool = True,
    deterministic: bool = True,
) -> AttentionCotangents:
    """Cotangents of all arguments of `attention`, the same bits from run to run.

    With P_ij = exp(t_ij − L_i) and Δ_i = ⟨ō_i, o_i⟩ − L̄_i: t̄_ij = P_ij (⟨ō_i, v_j⟩ − Δ_i),
    v̄_j = Σ_i P_ij ō_i, s̄ = t̄ ∂f/∂s, q̄_i = scale Σ_j s̄_ij k_j, k̄_j = scale Σ_i s̄_ij q_i and
    θ̄ = Σ_ij t̄_ij ∂f/∂θ (Dao et al. 2022, arXiv 2205.14135, algorithm 4, with a score function).

    The arguments are those of `attention`, its results, and the cotangents of these in their shapes;
    ``lse_bar`` is 0 if not given. If not ``deterministic``, q̄ may be summed in any order where that is
    faster: for 16-bit dtypes, head dims up to 128 and scores without parameters per query or pair.
    """
    if _all_numpy(q, k, v):
        return cpu_attention_vjp(
            q, k, v, out, lse, out_bar, lse_bar=lse_bar, score=score, mask=mask, params=params,
            scale=scale, causal=causal, lengths=lengths,
        )  # fmt: skip
    atomics = not deterministic or current().atomics
    cores = tensor_cores and current().tensor_cores
    with options(fast=fast or current().fast, tensor_cores=cores, atomics=atomics, wide=True):
        library = _library(q, k, v, params)
        rules = Rules(score, mask, params, scale, causal, lengths)
        return cotangents(library, q, k, v, out, lse, out_bar, lse_bar, rules)


def _library(q: Array, k: Array, v: Array, params: Mapping[str, Array] | None) -> Library:
    """CuPy with the options in force, after a check that the kernels accept the arrays.

    Raises:
        TypeError: an array is of another library, or its dtype has no kernels.
        ShapeError: there are too many batches or heads, heads are too wide, or integers exceed 32 bits.
        GpuError: there is no usable GPU, it has no tensor cores for this dtype, or an array is elsewhere.
    """
    where = machine()
    check_arrays(where.xp, q, k, v)
    check_device(where.xp, q=q, k=k, v=v)
    if q.dtype.name not in ELEMENTS:
        raise TypeError(f"q, k, v have dtype {q.dtype}; the kernels take {', '.join(ELEMENTS)}")
    if where.capability < (8, 0) and q.dtype != np.float32:
        raise GpuError(
            f"attention in {q.dtype} needs compute capability 8.0; this device has "
            f"{'.'.join(map(str, where.capability))}: use float32"
        )
    widths = q.shape[3], v.shape[3]
    if max(q.shape[0], q.shape[1]) > 65535 or 0 in widths:
        raise ShapeError(
            f"q {q.shape}, k {k.shape}, v {v.shape}: at most 65535 batches and heads, at least one column"
        )
    if max(widths) > MAX_HEAD_DIM:
        raise ShapeError(
            f"head dims {widths[0]} and {widths[1]}: the kernels take at most {MAX_HEAD_DIM}; use backend "
            "numpy, or split the heads"
        )
    for name, value in (params or {}).items():
        _check_parameter(where.xp, name, value)
    return Library("gpu", where.xp, "cupy", current(), device=True)


def _check_parameter(xp: ModuleType, name: str, value: Array) -> None:
    """Check that a parameter is a number or an array of the library; integers fit in 32 bits."""
    if getattr(value, "ndim", 0) and not isinstance(value, xp.ndarray):
        raise TypeError(
            f"parameter {name} is a {type(value).__module__}.{type(value).__name__}; give a {xp.__name__} "
            "array, like q, k and v"
        )
    dtype = getattr(value, "dtype", None)
    if dtype is not None and dtype.kind in "iu" and dtype.itemsize > 4 and value.size:
        low, high = value.min().item(), value.max().item()
        if low < -(2**31) or high >= 2**31:
            raise ShapeError(f"parameter {name} holds {low} to {high}; kernels take 32-bit integers")


def _all_numpy(*arrays: Array | None) -> bool:
    return all(a is None or isinstance(a, np.ndarray) for a in arrays)


# ---- sums over pairs -----------------------------------------------------------------------------


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

    Example:
        >>> import numpy as np, symad.gpu
        >>> x, y = np.array([[0.0], [1.0]]), np.array([[1.0], [3.0]])
        >>> symad.gpu.pairwise(lambda x, y: (x - y) @ (x - y), x, y)  # on the CPU
        array([10.,  4.])
    """
    if _all_numpy(x, y, b):
        return cpu_pairwise(f, x, y, b, reduce=reduce, params=params, return_lse=return_lse)
    with options(fast=fast or current().fast):
        return reduced(_pair_library(x, y, b), f, x, y, b, reduce, params, return_lse)


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
        return pair_cotangents(_pair_library(x, y, b), f, x, y, b, out, out_bar, lse, reduce, params)


def _pair_library(x: Array, y: Array, b: Array | None) -> Library:
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

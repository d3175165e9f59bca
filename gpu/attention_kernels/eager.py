"""Tiled attention on the GPU with any score function and mask, and its deterministic derivative.

The mathematics, the arguments and the conventions are those of `symad.numeric.attention`; NumPy
arrays are passed on to it. The kernels are in gpu/kernels; memory beyond arguments and results
is two numbers per query in the backward, never N × M.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from symad.gpu.attention_kernels.arguments import Lengths, all_numpy, check_arrays
from symad.gpu.attention_kernels.launch import AttentionCall
from symad.gpu.compile import machine
from symad.numeric.pairs.eager_attention import AttentionCotangents
from symad.numeric.pairs.eager_attention import attention as cpu_attention
from symad.numeric.pairs.eager_attention import attention_vjp as cpu_attention_vjp

Array = Any
Function = Callable[..., Any]


def attention(
    q: Array,
    k: Array,
    v: Array,
    *,
    score: Function | None = None,
    mask: Function | None = None,
    params: Mapping[str, Any] | None = None,
    scale: float | None = None,
    causal: bool = False,
    lengths: Lengths | None = None,
    return_lse: bool = False,
    fast: bool = False,
    tensor_cores: bool = True,
) -> Any:
    """o_i = Σ_j softmax_j(f(scale ⟨q_i, k_j⟩, b, h, i, j, θ)) v_j over the pairs the mask allows.

    Args:
        q: queries (batch, heads, N, d), d ≤ 256: CuPy arrays of float16, bfloat16, float32 or
            float64 (or NumPy arrays, all of them). Others than C-contiguous ones are copied.
        k: keys (batch, kv heads, M, d); query head h reads key head h // (heads / kv heads).
        v: values (batch, kv heads, M, d_v), d_v ≤ 256.
        score: f(s, b, h, i, j, **params) -> SymPy expression. Kernels are compiled once for each
            formula.
        mask: (b, h, i, j, **params) -> SymPy Boolean, true where a pair takes part.
        params: parameter values by name; numbers, or arrays that the functions index.
        scale: factor of ⟨q_i, k_j⟩; 1/√d if not given.
        causal: hide the pairs with j > i; their tiles are never computed.
        lengths: (N_b, M_b) integer arrays (batch,), or None for full length.
        return_lse: also return L_i = log Σ_j exp(t_ij), shape (batch, heads, N), float32 (float64
            for float64).
        fast: allow approximate instructions in the score function (tanh, absolute error 5e-4).
        tensor_cores: False computes float32 products by ordinary arithmetic instead of three
            tf32 products each (22 bits of every factor); compute capability 7.5 does so always.

    Returns:
        Outputs (batch, heads, N, d_v) in the dtype of ``q``, with L if asked. Rows without visible
        keys are 0, with L = −∞.

    Raises:
        ShapeError: the shapes do not fit, or the head dim is too large for this device.
        TypeError: arrays of different libraries or dtypes.
        TraceError: score or mask use unknown symbols or arrays.
        GpuError: there is no usable GPU.
    """
    if all_numpy(q, k, v):
        return cpu_attention(
            q, k, v, score=score, mask=mask, params=params, scale=scale, causal=causal,
            lengths=lengths, return_lse=return_lse,
        )  # fmt: skip
    where = machine()
    element = check_arrays(where, q, k, v, tensor_cores)
    call = AttentionCall.make(
        where, q, k, v, score, mask, params, scale, causal, lengths, fast, element
    )
    out, lse = call.forward()
    return (out, lse) if return_lse else out


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
    params: Mapping[str, Any] | None = None,
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

    Args:
        q: queries, as for `attention`; likewise every argument not named here.
        k: keys.
        v: values.
        out: the outputs o.
        lse: the log-sum-exps L.
        out_bar: cotangent of ``out``, in its shape and dtype.
        lse_bar: cotangent of ``lse``; 0 if not given.
        score: the score function.
        mask: the mask function.
        params: parameter values by name.
        scale: factor of ⟨q_i, k_j⟩.
        causal: as for `attention`.
        lengths: as for `attention`.
        fast: as for `attention`.
        tensor_cores: as for `attention`.
        deterministic: False lets q̄ be added up in any order where that is faster: for 16-bit
            dtypes, head dims up to 128 and scores without parameters per query or pair.
    """
    if all_numpy(q, k, v):
        return cpu_attention_vjp(
            q, k, v, out, lse, out_bar, lse_bar=lse_bar, score=score, mask=mask, params=params,
            scale=scale, causal=causal, lengths=lengths,
        )  # fmt: skip
    where = machine()
    element = check_arrays(where, q, k, v, tensor_cores)
    call = AttentionCall.make(
        where, q, k, v, score, mask, params, scale, causal, lengths, fast, element
    )
    return call.backward(out, lse, out_bar, lse_bar, deterministic)

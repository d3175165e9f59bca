"""Attention of NumPy arrays by `symad.gpu.attention` and by lowered graphs, on the stand-in or on a GPU."""

from __future__ import annotations

import contextlib

import numpy as np
import sympy as sp

import symad
from symad.functions import attention as attention_op
from symad.gpu.compile import _machine
from symad.gpu.eager import attention, attention_vjp
from symad.numeric import lower
from symad.numeric.eager.attention import AttentionCotangents
from symad.numeric.eager.calls import kernel_of
from tests.gpu.cupy_agreement import library
from tests.gpu.cupy_standin import cuda


@contextlib.contextmanager
def device(shared_memory=227 << 10, capability=(9, 0)):
    """Replaces the device by one of another size, and clears the caches about the previous device."""
    before = cuda.Device.attributes, cuda.Device.compute_capability
    major, minor = capability
    cuda.Device.attributes = {
        **before[0], "MaxSharedMemoryPerBlockOptin": shared_memory,
        "ComputeCapabilityMajor": major, "ComputeCapabilityMinor": minor,
    }  # fmt: skip
    cuda.Device.compute_capability = f"{major}{minor}"
    forget()
    try:
        yield
    finally:
        cuda.Device.attributes, cuda.Device.compute_capability = before
        forget()


def forget():
    """Clears the caches of device properties and of kernels."""
    _machine.cache_clear()
    kernel_of.cache_clear()


def given(cp, array, name=None):
    """A NumPy array on the device; bfloat16 is given as its bits. The stand-in does not copy memory."""
    if name != "bfloat16" or array.dtype != np.uint16:
        return cp.asarray(array)
    import ml_dtypes

    return cp.asarray(array.view(ml_dtypes.bfloat16))


def stored(array):
    """A device array copied to the host, bfloat16 as its bits."""
    host = array.get()
    return host.view(np.uint16) if host.dtype.name == "bfloat16" else host


def on_device(cp, values):
    """Parameters or lengths with their arrays moved to the device."""
    return {n: cp.asarray(v) if isinstance(v, np.ndarray) else v for n, v in (values or {}).items()}


def forward_backward(name, arrays, lse_bar, deterministic=True, where="stand-in", **options):
    """(o, L) and the cotangents, for arrays in their storage type."""
    with library(where) as cp:
        q, k, v, out_bar = (given(cp, a, name) for a in arrays)
        options["params"] = on_device(cp, options.get("params"))
        if "lengths" in options:
            options["lengths"] = tuple(n if n is None else cp.asarray(n) for n in options["lengths"])
        out, lse = attention(q, k, v, return_lse=True, **options)
        bar = lse_bar if lse_bar is None else cp.asarray(lse_bar.astype(lse.dtype))
        bars = attention_vjp(
            q, k, v, out, lse, out_bar, lse_bar=bar, deterministic=deterministic, **options
        )
        params = {n: stored(g) for n, g in bars.params.items()}
        return stored(out), stored(lse), AttentionCotangents(*map(stored, (bars.q, bars.k, bars.v)), params)


def second_order(name, groups, tensor_cores=True, where="stand-in", **options):
    """ȯ, L̇ and the tangents of q̄, k̄, v̄ from ((q, k, v), (ō, L̄), and the tangents of both)."""
    arrays, bars, dots, bar_dots = groups
    params = options.pop("params", {})
    lengths = dict(zip("qkv", sp.symbols("N M M", integer=True, positive=True), strict=True))
    shapes = [(*a.shape[:2], lengths[n], a.shape[3]) for n, a in zip("qkv", arrays, strict=True)]

    def value(q, k, v, *more):
        named = dict(zip(params, more, strict=True))
        return attention_op(q, k, v, params=named, return_lse=True, **options)

    graph = symad.trace(value, [*shapes, *map(np.shape, params.values())])
    pulled = symad.pullback(graph, wrt=[0, 1, 2])
    count = len(pulled.inputs)
    pushed = symad.pushforward(pulled, wrt=[0, 1, 2, count - 2, count - 1])
    with library(where) as cp, symad.gpu.options(wide=True, tensor_cores=tensor_cores):
        kernel = lower(pushed, backend="cupy", dtype=name)
        values = [*arrays, *params.values(), *bars, *dots, *bar_dots]
        found = kernel(*(given(cp, np.asarray(a), name) for a in values))
        return [stored(a) for a in found[-5:]]

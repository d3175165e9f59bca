"""The arguments of an attention call on the GPU: checked, and brought into the form kernels read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from symad.errors import ShapeError
from symad.gpu.attention_kernels.compiled_score import CompiledScore, compile_score
from symad.gpu.attention_kernels.plan import ELEMENTS, PLAIN_FLOAT32, Element
from symad.gpu.compile import GpuError, Machine, check_device
from symad.numeric.pairs.eager_attention import LIMITS, check_heads
from symad.numeric.pairs.scores import B, I, J, Load, Parameter, Score, trace_score

Array = Any
Function = Callable[..., Any]
Lengths = tuple[Array | None, Array | None]
_NULL = np.uint64(0)  # CuPy's launcher takes no None for a null pointer


def check_arrays(
    machine: Machine, q: Array, k: Array, v: Array, tensor_cores: bool = True
) -> Element:
    """Check that q, k, v are (batch, heads, length, width) arrays of one library and dtype.

    Returns:
        The element type of the kernels.

    Raises:
        ShapeError: the axes do not fit together.
        TypeError: an array of another library, or a dtype without kernels.
        GpuError: an array lies on another device, or the device has no tensor cores for this dtype.
    """
    xp = machine.xp
    named = (("q", q), ("k", k), ("v", v))
    for name, array in named:
        if not isinstance(array, xp.ndarray):
            kind = type(array)
            raise TypeError(
                f"{name} is a {kind.__module__}.{kind.__name__}, others are {xp.__name__} arrays; "
                f"give q, k and v as {xp.__name__} arrays, or all of them as NumPy arrays"
            )
        if array.ndim != 4:
            raise ShapeError(f"{name} has shape {array.shape}; give (batch, heads, length, width)")
    check_device(xp, q=q, k=k, v=v)
    if not q.dtype == k.dtype == v.dtype:
        raise TypeError(f"q, k, v have dtypes {q.dtype}, {k.dtype}, {v.dtype}; use one dtype")
    element = ELEMENTS.get(q.dtype.name)
    if element is None:
        raise TypeError(f"q, k, v have dtype {q.dtype}; the kernels take {', '.join(ELEMENTS)}")
    old = machine.capability < (8, 0)
    if q.dtype == np.float32 and (old or not tensor_cores):
        element = PLAIN_FLOAT32
    elif old:
        raise GpuError(
            f"attention in {q.dtype} needs compute capability 8.0; this device has "
            f"{'.'.join(map(str, machine.capability))}: use float32"
        )
    shapes = check_heads(q, k, v)
    if max(q.shape[0], q.shape[1]) > 65535 or 0 in (q.shape[3], v.shape[3]):
        raise ShapeError(f"{shapes}: at most 65535 batches and heads, at least one column")
    return element


def compiled_score(
    score: Function | None,
    mask: Function | None,
    kinds: tuple[Parameter, ...],
    limits: tuple[str, ...],
    causal: bool,
    real: str,
    fast: bool,
) -> CompiledScore:
    """The compiled score, its mask narrowed to i < query_lengths[b] and j < key_lengths[b]."""
    return _compiled(trace_score(score, mask, kinds, causal), limits, real, fast)


@lru_cache(maxsize=256)
def _compiled(traced: Score, limits: tuple[str, ...], real: str, fast: bool) -> CompiledScore:
    """The same for a traced score, kept by its expressions."""
    for name in limits:
        load = Load(sp.Dummy(name, integer=True), name, (B,))
        loop = I if name == LIMITS[0] else J
        traced = replace(
            traced,
            mask=sp.And(traced.mask, loop < load.symbol),
            parameters=(*traced.parameters, Parameter(name, 1, True)),
            loads=(*traced.loads, load),
        )
    return compile_score(traced, real, fast)


def rows_of_16_bytes(xp: Any, array: Array) -> Array:
    """A contiguous array whose rows are a multiple of 16 bytes: zeros are added where needed."""
    per = 16 // array.dtype.itemsize
    return with_width(xp, array, -(-array.shape[-1] // per) * per)


def with_width(xp: Any, array: Array, width: int) -> Array:
    """The array, contiguous, with rows cut or filled with zeros to ``width``.

    Copied as bits: CuPy has few kernels for bfloat16.
    """
    if array.shape[-1] == width and array.flags.c_contiguous:
        return array
    bits = np.dtype(f"u{array.dtype.itemsize}")
    made = xp.zeros((*array.shape[:-1], width), bits)
    common = min(width, array.shape[-1])
    made[..., :common] = array.view(bits)[..., :common]
    return made.view(array.dtype)


def aligned(argument: Any) -> bool:
    """Whether an array starts at a multiple of 16 bytes, as kernels with copies of 16 bytes need."""
    if getattr(argument, "ndim", 0) == 0 or argument.dtype.fields is not None:
        return True
    place = argument.ctypes.data if isinstance(argument, np.ndarray) else argument.data.ptr
    return int(place) % 16 == 0


def pointer(array: Array | None) -> Any:
    """The array as a kernel takes it: a null pointer for None."""
    return _NULL if array is None else array


def check_shape(xp: Any, name: str, array: Array, shape: tuple[int, ...], dtype: Any) -> None:
    """Check an array of results, or of their cotangents."""
    if not isinstance(array, xp.ndarray):
        raise TypeError(f"{name} is a {type(array)}; give a {xp.__name__} array")
    check_device(xp, **{name: array})
    if array.shape != shape or array.dtype != dtype:
        raise ShapeError(
            f"{name} has shape {array.shape} and dtype {array.dtype}; this attention has "
            f"{shape} and {np.dtype(dtype)}"
        )


def all_numpy(*arrays: Array) -> bool:
    """Whether all are NumPy arrays."""
    return all(isinstance(a, np.ndarray) for a in arrays)

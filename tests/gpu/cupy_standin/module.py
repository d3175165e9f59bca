"""The stand-in's main namespace: what generated code uses of CuPy, and nothing else."""

from __future__ import annotations

import types

import numpy as np

from tests.gpu.cupy_standin import cuda
from tests.gpu.cupy_standin.array import device_operands, host, ndarray, wrapped
from tests.gpu.cupy_standin.kernels import ElementwiseKernel, RawKernel, RawModule, ReductionKernel

__version__ = "14.0 (stand-in)"
__all__ = ["ElementwiseKernel", "RawKernel", "RawModule", "ReductionKernel", "cuda", "ndarray"]

float16, float32, float64, int64, bool_ = np.float16, np.float32, np.float64, np.int64, np.bool_
int32, uint64 = np.int32, np.uint64
nan, inf, pi, dtype, finfo = np.nan, np.inf, np.pi, np.dtype, np.finfo


def _on_device(name, function):
    def call(*args, **kwargs):
        if not any(True for _ in device_operands(args)):
            raise TypeError(f"cupy.{name} of {args!r}: no device array among the arguments")
        options = {k: v for k, v in kwargs.items() if not (name == "einsum" and k == "optimize")}
        with np.errstate(all="ignore"):
            return wrapped(function(*host(args), **host_options(options)), args)

    return call


def host_options(options):
    return {key: host(value) for key, value in options.items()}


FUNCTIONS = [
    "abs", "exp", "log", "sqrt", "floor", "isfinite", "where", "maximum", "minimum", "stack", "concatenate",
    "tensordot", "einsum", "vdot", "trace", "tril", "triu", "reshape", "ravel", "broadcast_to",
    "zeros_like", "square", "power", "true_divide", "logical_and", "logical_or", "logical_not",
    "ones_like", "cumprod", "swapaxes", "round",
    "ascontiguousarray", "argsort", "flatnonzero", "clip", "moveaxis", "repeat", "atleast_1d",
]  # fmt: skip
globals().update({name: _on_device(name, getattr(np, name)) for name in FUNCTIONS})


def asarray(value, dtype=None):
    """The explicit transfer: NumPy arrays and numbers come to the device here."""
    return ndarray(np.asarray(host(value) if not isinstance(value, np.ndarray) else value, dtype))


def array(value, dtype=None):
    return ndarray(np.array(host(value) if not isinstance(value, np.ndarray) else value, dtype))


def from_dlpack(value):
    """Memory that another library holds, here on the CPU; a view."""
    return ndarray(np.from_dlpack(value))


def asnumpy(value):
    return value.get()


def empty(shape, dtype=float):
    """Poisoned: what nobody writes shows."""
    return ndarray(np.full(shape, True if dtype is bool else np.nan, dtype))


def zeros(shape, dtype=float):
    return ndarray(np.zeros(shape, dtype))


def full(shape, value, dtype=None):
    return ndarray(np.full(shape, value, dtype))


def ones(shape, dtype=float):
    return ndarray(np.ones(shape, dtype))


class _Add:
    """The ufunc `cupy.add`, for its method `reduceat`."""

    reduceat = staticmethod(_on_device("add.reduceat", np.add.reduceat))


add = _Add()


def eye(size, dtype=float):
    return ndarray(np.eye(size, dtype=dtype))


def arange(*args, dtype=None):
    return ndarray(np.arange(*args, dtype=dtype))


def broadcast(*arrays):
    return types.SimpleNamespace(shape=np.broadcast(*host(arrays)).shape)


def broadcast_arrays(*arrays):
    return [ndarray(a) for a in np.broadcast_arrays(*host(arrays))]


def _lapack(name):
    function = getattr(np.linalg, name)

    def call(*args):
        if any(a.dtype not in (np.float32, np.float64) for a in device_operands(args)):
            raise TypeError(f"cupy.linalg.{name} works in float32 and float64")
        result = _on_device(name, function)(*args)
        return result

    return call


linalg = types.SimpleNamespace(
    **{name: _lapack(name) for name in ("solve", "det", "slogdet", "cholesky", "matrix_power", "svd", "eigh")}
)

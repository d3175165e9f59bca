"""The stand-in's main namespace: the functions of CuPy that generated code uses, and no others."""

from __future__ import annotations

import types

import numpy as np

from tests.gpu.cupy_standin import cuda
from tests.gpu.cupy_standin.array import copied, device_operands, host, ndarray, refuse_capture, wrapped
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
        cuda.launched(LAUNCHES.get(name, lambda *args: 1)(*args))
        if name in ("tensordot", "einsum", "vdot"):
            refuse_capture()
        with np.errstate(all="ignore"):
            return wrapped(function(*host(args), **host_options(options)), args)

    return call


def _pieces(arrays, *rest):
    """The number of launches: a copy of each array; one kernel for more than eight arrays.

    cupy/_core/_routines_manipulation.pyx, line 745 [679].
    """
    return len(arrays) if len(arrays) <= 8 else 1


def _none(*args):
    return 0


def _copied(array, *rest):
    return not array.flags.c_contiguous


LAUNCHES = {
    "concatenate": _pieces, "stack": _pieces, "broadcast_to": _none, "swapaxes": _none, "moveaxis": _none,
    "atleast_1d": _none, "ascontiguousarray": _copied, "ravel": _copied, "reshape": _copied,
}  # fmt: skip
"""The number of kernels of each function that launches more or fewer than one."""


def host_options(options):
    return {key: host(value) for key, value in options.items()}


FUNCTIONS = [
    "abs", "exp", "log", "sqrt", "floor", "isfinite", "where", "maximum", "minimum", "stack", "concatenate",
    "tensordot", "einsum", "vdot", "trace", "tril", "triu", "reshape", "ravel", "broadcast_to",
    "zeros_like", "square", "power", "true_divide", "logical_and", "logical_or", "logical_not",
    "ones_like", "cumprod", "multiply", "swapaxes", "round",
    "ascontiguousarray", "flatnonzero", "clip", "moveaxis", "repeat", "atleast_1d",
]  # fmt: skip
globals().update(
    {name: cuda.recorded(_on_device(name, getattr(np, name)), copied) for name in FUNCTIONS}
)


def asarray(value, dtype=None):
    """The explicit transfer of NumPy arrays and numbers to the device.

    Memory by ``__cuda_array_interface__`` has the type of its typestr, which has none for bfloat16:
    it becomes V2, two bytes without a meaning (cupy/_core/core.pyx, lines 3267-3309 [2966]).
    """
    if hasattr(value, "__cuda_array_interface__"):
        return ndarray(value.seen(value.__cuda_array_interface__["typestr"]))
    if isinstance(value, ndarray):
        cuda.launched(dtype is not None and value.dtype != np.dtype(dtype))
        return ndarray(np.asarray(host(value), dtype))
    cuda.counts["copies"] += 1
    return ndarray(np.asarray(value if isinstance(value, np.ndarray) else host(value), dtype))


def array(value, dtype=None):
    cuda.counts["copies"] += 1
    return ndarray(np.array(host(value) if not isinstance(value, np.ndarray) else value, dtype))


def from_dlpack(value):
    """A view of another library's memory; that library's stream is asked to wait for the current stream.

    cupy/_core/dlpack.pyx: lines 555-575 [536-556] hand the current stream to the producer, the default one as
    its own pointer; lines 597-600 [578-581] refuse memory of the CPU; line 479 makes bfloat16 of ml_dtypes,
    which 13.6.0 refuses in line 466; so the extras require 14.
    """
    kind, _ = value.__dlpack_device__()
    if kind == 1:
        raise TypeError("CPU arrays cannot be directly imported to CuPy.")
    return ndarray(value.__dlpack__(stream=cuda.get_current_stream().ptr or 1))


def argsort(array, axis=-1, kind=None):
    """Stable (cupy/_sorting/sort.py, line 94), without bfloat16 (cupy/cuda/thrust.pyx, 141 [125])."""
    if array.dtype.name == "bfloat16":
        raise NotImplementedError("Sorting arrays with dtype 'bfloat16' is not supported")
    if cuda.get_current_stream().capturing:  # 13.6 waits (cupy/cuda/cupy_thrust.cu, line 341); 14.2 does not
        raise cuda.CUDARuntimeError("cudaErrorStreamCaptureUnsupported: a sort waits for the stream")
    cuda.launched(2)
    return ndarray(np.argsort(host(array), axis=axis, kind="stable"))


def asnumpy(value):
    return value.get()


def empty(shape, dtype=float):
    """An array filled with NaN, so that elements that are never written are noticed."""
    kind = np.dtype(dtype).kind
    poison = True if kind == "b" else np.iinfo(dtype).max if kind in "iu" else np.nan
    return ndarray(np.full(shape, poison, dtype))


def empty_like(array):
    return empty(array.shape, array.dtype)


def zeros(shape, dtype=float):
    cuda.launched()
    return ndarray(np.zeros(shape, dtype))


def full(shape, value, dtype=None):
    cuda.launched()
    return ndarray(np.full(shape, value, dtype))


def ones(shape, dtype=float):
    cuda.launched()
    return ndarray(np.ones(shape, dtype))


class _Add:
    """The ufunc `cupy.add`, for its method `reduceat`."""

    @staticmethod
    def reduceat(array, indices):
        """Differences of cumulative sums (cupy/_core/_routines_indexing.pyx of 14.2.0, line 1255; 13.6.0:
        1147).

        The cumulative sums are in the type of the array: digits are lost where the sum of a segment is small
        compared with the sum of all before it.
        """
        values, starts = host(array), host(indices)
        cuda.launched(8)
        sums = np.append(np.zeros(1, values.dtype), np.cumsum(values, dtype=values.dtype))
        ends = np.append(starts, len(values))
        found = np.where(ends[:-1] >= ends[1:], values[starts], sums[ends[1:]] - sums[ends[:-1]])
        return ndarray(found.astype(values.dtype))


add = _Add()


def eye(size, dtype=float):
    cuda.launched()
    return ndarray(np.eye(size, dtype=dtype))


def arange(*args, dtype=None):
    cuda.launched()
    return ndarray(np.arange(*args, dtype=dtype))


def broadcast(*arrays):
    made = np.broadcast(*host(arrays))
    return types.SimpleNamespace(shape=made.shape, size=made.size)


def broadcast_arrays(*arrays):
    return [ndarray(a) for a in np.broadcast_arrays(*host(arrays))]


def _lapack(name):
    function = getattr(np.linalg, name)

    def call(*args):
        if any(a.dtype not in (np.float32, np.float64) for a in device_operands(args)):
            raise TypeError(f"cupy.linalg.{name} works in float32 and float64")
        refuse_capture()
        return _on_device(name, function)(*args)

    return call


linalg = types.SimpleNamespace(
    **{name: _lapack(name) for name in ("solve", "det", "slogdet", "cholesky", "matrix_power", "svd", "eigh")}
)

for _name in ("asarray", "zeros", "full", "ones", "eye", "arange"):
    globals()[_name] = cuda.recorded(globals()[_name], copied)

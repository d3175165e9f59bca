"""Arrays of a device that have addresses and no elements: what they compute, a trace of launches writes down.

They are NumPy arrays of which only the place counts, so that NumPy makes the views.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

from symad.errors import LoweringError
from symad.gpu.printers.kernels import ElementwiseKernel, KernelParameter, SumKernel
from symad.gpu.standalone_kernels import Value

ARITHMETIC = {
    "add": "x0 + x1", "subtract": "x0 - x1", "multiply": "x0 * x1", "true_divide": "x0 / x1",
    "negative": "-x0",
}  # fmt: skip


class Memory(np.ndarray[Value, Value]):
    """An array of the device: views have its address, nothing reads or writes it."""

    owner: Value
    """What writes down the launches (`symad.gpu.traced_launches.Trace`)."""

    def __new__(cls, shape: Value, dtype: Value, memory: Memory) -> Memory:
        """CuPy's constructor, which generated code calls for the flag of wrong row numbers alone."""
        return memory

    def __array_finalize__(self, made_of: Value) -> None:
        """A view belongs to the same trace."""
        if isinstance(made_of, Memory):
            self.owner = made_of.owner

    @property
    def data(self) -> Value:
        """CuPy's name of an address."""
        return SimpleNamespace(ptr=self.ctypes.data)

    @property
    def device(self) -> Value:
        """The only device."""
        return SimpleNamespace(id=0)

    def __getitem__(self, place: Value) -> Memory:
        """A part, also of one element; or rows along one axis by their numbers, by a kernel."""
        places = place if isinstance(place, tuple) else (place,)
        axes = [k for k, p in enumerate(places) if isinstance(p, np.ndarray)]
        if axes:
            others = [p for p in places if not isinstance(p, np.ndarray)]
            if len(axes) > 1 or any(p != slice(None) for p in others) or places[axes[0]].dtype.kind != "i":
                raise refused("arrays indexed by several arrays")
            return _rows(self, axes[0], places[axes[0]])
        part = super().__getitem__(places if ... in places else (*places, ...))
        assert isinstance(part, Memory)
        return part

    def __setitem__(self, place: Value, value: Value) -> None:
        """Copies an array or a number to a part of this one."""
        self.owner.elementwise("out0 = x0;", value, dtype=self.dtype, out=self[place])

    __repr__ = object.__repr__


def _rows(source: Memory, axis: int, numbers: Value) -> Memory:
    """The rows of an axis with some numbers."""
    rows, inner = source.owner.known(numbers, np.int64), math.prod(source.shape[axis + 1 :])
    made = source.owner.empty((*source.shape[:axis], *rows.shape, *source.shape[axis + 1 :]), source.dtype)
    kind, length = source.dtype.name, source.shape[axis]
    body = f"out0 = x1[(i / {inner * rows.size} * {length} + x0) * {inner} + i % {inner}];"
    along = reshaped(rows, (*rows.shape, *(1,) * (source.ndim - axis - 1)))
    read = KernelParameter("int64", "x0"), KernelParameter(kind, "x1", raw=True)
    kernel = ElementwiseKernel(read, (KernelParameter(kind, "out0"),), (body,))
    source.owner.run(kernel, along, source, made)
    return made


def cast(self: Memory, dtype: Value, copy: bool = True, **options: Value) -> Memory:
    """A copy in another type."""
    if np.dtype(dtype) == self.dtype and not copy:
        return self
    return self.owner.elementwise("out0 = x0;", self, dtype=np.dtype(dtype))


def copied(self: Memory, *order: Value) -> Memory:
    """A contiguous copy."""
    return cast(self, self.dtype)


def reshaped(self: Memory, *shape: Value, **options: Value) -> Memory:
    """The array in another shape, copied first if strides cannot express that."""
    made = np.ndarray.reshape(self, *shape)
    if not np.shares_memory(made, self) and self.size:
        made = np.ndarray.reshape(copied(self), *shape)
    assert isinstance(made, Memory)
    return made


def summed(self: Memory, axis: Value = None, keepdims: bool = False, **options: Value) -> Memory:
    """The sum over axes, one block of threads for each result."""
    axes = axes_of(axis, self.ndim)
    kind = self.dtype.name
    one, real = KernelParameter(kind, "x0"), "double" if kind == "float64" else "float"
    total = SumKernel((one,), KernelParameter(kind, "out0"), "x0", "a", real, ())
    made = self.owner.sum(total, self, axis=axes)
    return reshaped(made, [1 if k in axes else n for k, n in enumerate(self.shape)]) if keepdims else made


def axes_of(axis: Value, rank: int) -> tuple[int, ...]:
    """Axes as positive numbers; all of them for None."""
    return tuple(range(rank)) if axis is None else tuple(int(k) % rank for k in np.atleast_1d(axis))


def as_read(value: Value, shape: tuple[int, ...] | None) -> Value:
    """A value as a kernel reads it: at all points of a shape, or contiguous, where bodies number elements."""
    if not isinstance(value, Memory):
        return value
    if shape is not None:
        return np.broadcast_to(value, shape, subok=True)
    return value if value.flags.c_contiguous else copied(value)


def _filled(self: Memory, value: Value) -> None:
    self[...] = value


def _computed(self: Memory, function: Value, method: str, *given: Value, **options: Value) -> Memory:
    """Arithmetic of two arrays, or of an array and a number, as a kernel."""
    text = ARITHMETIC.get(function.__name__)
    if text is None or method != "__call__" or options:
        raise refused(f"cupy.{function.__name__}")
    return self.owner.elementwise(f"out0 = {text};", *given, dtype=self.dtype)


def _read(self: Memory, *given: Value, **options: Value) -> Value:
    raise refused("a result in Python, which waits for the device")


def _without_kernel(name: str) -> Callable[..., Value]:
    def method(self: Memory, *given: Value, **options: Value) -> Value:
        raise refused(f"cupy.ndarray.{name}")

    return method


METHODS: dict[str, Callable[..., Value]] = {
    "astype": cast, "copy": copied, "reshape": reshaped, "sum": summed, "fill": _filled,
    "ravel": lambda self, *order: reshaped(self, -1), "__array_ufunc__": _computed,
    **dict.fromkeys(("get", "__bool__", "__float__", "__int__", "__index__", "__iter__"), _read),
}  # fmt: skip
"""What arrays of the device do otherwise than NumPy's."""
for _name in {name for name in dir(np.ndarray) if name[0] != "_"} | set(METHODS):
    _is_view = _name in ("transpose", "swapaxes", "squeeze", "view")
    if _name in METHODS or (callable(getattr(np.ndarray, _name)) and not _is_view):
        setattr(Memory, _name, METHODS.get(_name) or _without_kernel(_name))


def refused(what: str) -> LoweringError:
    """The error for code that is not a launch of symad's kernels."""
    more = ", print it inside symad.gpu.options(capture=True)" if "cuBLAS" in what else ""
    return LoweringError(
        f"a .cu file holds kernels of symad and a function that launches them, but this code needs {what}: "
        f"save it as .py{more}"
    )

"""The launches of a generated module for given shapes, without CuPy: it runs on memory that nobody reads.

    trace, results = traced(kernel, arguments)

The module gets a library with CuPy's interface, whose arrays are NumPy arrays of which only the place
counts: NumPy makes the views. What it launches is written down in order; what has no kernel of symad's is
refused by name.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import numpy as np

from symad.errors import LoweringError
from symad.gpu.printers.kernels import ElementwiseKernel, KernelParameter, SumKernel
from symad.gpu.standalone_kernels import Value, elementwise_text, sum_text
from symad.numeric.kernel import Kernel

# ---- arrays of a device that have addresses and no elements --------------------------------------


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


CAPABILITY, ROOM, PROCESSORS = 80, 99 << 10, 108
"""The device that tiles are chosen for: compute capability, bytes of shared memory for a block, processors.

Origin: the least of the devices from compute capability 8.0 on (table of compute capabilities, CUDA
programming guide), and the processors of the first of them, the A100, which only divide work.
"""


@dataclass(frozen=True, eq=False)
class Launch:
    """One launch: a kernel of a text, or none, which sets the bytes of its only argument to 0."""

    text: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    arguments: tuple[Value, ...]


class Trace:
    """The library that a module gets, and what it launched.

    Attributes:
        kernels: the kernels that CuPy completes, by their names in the module.
        launches: the launches, in order.
        constants: the arrays whose elements are known, by address.
        flags: the number in which kernels record a wrong row number, if any is looked at.
    """

    def __init__(self, kernels: Mapping[str, Value]) -> None:
        self.kernels = kernels
        self.launches: list[Launch] = []
        self.memory: list[Memory] = []
        self.constants: dict[int, np.ndarray[Value, Value]] = {}
        self.flags: list[Memory] = []

    def empty(self, shape: Value, dtype: Value = float) -> Memory:
        """New memory, at multiples of 256 bytes."""
        raw = np.empty(math.prod(np.atleast_1d(shape).tolist()) * np.dtype(dtype).itemsize + 512, np.uint8)
        start = -raw.ctypes.data % 256
        made = raw[start : len(raw) - 512 + start].view(dtype).reshape(shape).view(Memory)
        made.owner = self
        self.memory.append(made)
        return made

    def known(self, values: Value, dtype: Value = None) -> Memory:
        """An array whose elements are known now."""
        if isinstance(values, Memory):
            return values if dtype is None else cast(values, dtype, copy=False)
        host = np.ascontiguousarray(values, dtype=dtype)
        if host.dtype == np.uint64:
            raise refused("arrays of addresses")
        made = self.empty(np.shape(values), host.dtype)
        self.constants[made.ctypes.data] = host
        return made

    def zeros(self, shape: Value, dtype: Value = float) -> Memory:
        """New memory of zeros."""
        made = self.empty(shape, dtype)
        if made.size:
            self.launches.append(Launch("", "", (), (), 0, (made,)))
        return made

    def launch(
        self, text: str, kernel: str, grid: Value, block: Value, given: Sequence[Value], shared_mem: int = 0
    ) -> None:
        """Writes a launch down; for a text and a kernel, it is called like a kernel of CuPy's."""
        sizes = [(*map(int, axes), 1, 1)[:3] for axes in (grid, block)]
        self.launches.append(Launch(text, kernel, sizes[0], sizes[1], int(shared_mem), tuple(given)))

    def elementwise(self, body: str, *given: Value, dtype: Value, out: Memory | None = None) -> Memory:
        """A small kernel that the code has no text of."""
        arrays = [self.known(value, None if isinstance(value, Memory) else dtype) for value in given]
        inputs = tuple(KernelParameter(a.dtype.name, f"x{k}") for k, a in enumerate(arrays))
        kernel = ElementwiseKernel(inputs, (KernelParameter(np.dtype(dtype).name, "out0"),), (body,))
        return self.run(kernel, *arrays, *([] if out is None else [out]))

    def run(self, kernel: ElementwiseKernel, *given: Value, size: int | None = None) -> Value:
        """Launches CuPy's ElementwiseKernel; results that are not given are made."""
        parameters = (*kernel.inputs, *kernel.outputs)
        values = [
            v if isinstance(v, Memory) or not p.raw else self.known(v, p.dtype)
            for p, v in zip(parameters, given, strict=False)
        ]
        sized = [np.shape(v) for p, v in zip(parameters, values, strict=False) if not p.raw]
        shape = np.broadcast_shapes(*sized) if size is None else (size,)
        values += [self.empty(shape, p.dtype) for p in parameters[len(values) :]]
        values = [as_read(v, None if p.raw else shape) for p, v in zip(parameters, values, strict=True)]
        count = math.prod(shape)
        if count:
            text = elementwise_text(kernel, values, shape)
            blocks = min(-(-count // 256), 1 << 20)
            arrays = [v for v in values if isinstance(v, Memory)]
            self.launch(text, "elements", (blocks,), (256,), arrays)
        made = tuple(values[len(kernel.inputs) :])
        return made[0] if len(made) == 1 else made

    def sum(self, kernel: SumKernel, *given: Value, axis: Value) -> Memory:
        """Launches CuPy's ReductionKernel, which sums over axes."""
        known = [self.known(v, p.dtype) for p, v in zip(kernel.inputs, given, strict=True)]
        arrays: Sequence[Value] = np.broadcast_arrays(*known, subok=True)
        axes = axes_of(axis, arrays[0].ndim)
        kept = tuple(k for k in range(arrays[0].ndim) if k not in axes)
        moved = [a.transpose(*kept, *axes) for a in arrays]
        made = self.empty(moved[0].shape[: len(kept)], kernel.output.dtype)
        if made.size:
            text = sum_text(kernel, moved, len(kept))
            self.launch(text, "sums", (made.size,), (256,), (*moved, made))
        return made

    def joined(self, arrays: Sequence[Value], axis: int = 0, out: Value = None, **options: Value) -> Memory:
        """Arrays one after another."""
        first = arrays[0]
        length = sum(a.shape[axis] for a in arrays)
        shape = [length if k == axis % first.ndim else n for k, n in enumerate(first.shape)]
        made, start = self.empty(shape, first.dtype) if out is None else out, 0
        turned = made.swapaxes(0, axis)
        for a in arrays:
            turned[start : start + a.shape[axis]] = a.swapaxes(0, axis)
            start += a.shape[axis]
        return made

    def __getattr__(self, name: str) -> Value:
        """CuPy's names: types and numbers are NumPy's, all others are refused."""
        found = _LIBRARY.get(name)
        if found is not None:
            return found(self)
        value = getattr(np, name, None)
        if isinstance(value, float) or (isinstance(value, type) and issubclass(value, np.generic)):
            return value
        raise refused(f"cupy.{name}")


def _cuda(trace: Trace) -> Value:
    known = {"MaxSharedMemoryPerBlockOptin": ROOM, "MultiProcessorCount": PROCESSORS}
    device = SimpleNamespace(id=0, attributes=known, compute_capability=str(CAPABILITY))
    stream = SimpleNamespace(ptr=0, is_capturing=lambda: True, synchronize=lambda: None)  # no trial runs

    class Cuda(SimpleNamespace):
        def __getattr__(self, name: str) -> Value:
            raise refused(f"cupy.cuda.{name}")

    class Pinned(bytearray):
        """Memory of the host that the device has, too: here an array that the caller gives."""

        def __init__(self, size: int) -> None:
            super().__init__(size)
            self.ptr, self.flag = 0, trace.zeros(1, np.int64)
            trace.flags.append(self.flag)

    return Cuda(
        Device=lambda *_: device,
        get_current_stream=lambda: stream,
        runtime=SimpleNamespace(deviceSynchronize=lambda: None),
        alloc_pinned_memory=Pinned,
        UnownedMemory=lambda ptr, size, owner, device: owner,
        MemoryPointer=lambda memory, offset: memory.flag,
    )


def _module(trace: Trace, code: str, options: Value = ()) -> Value:
    return SimpleNamespace(get_function=partial(partial, trace.launch, code))


_LIBRARY: dict[str, Callable[[Trace], Value]] = {
    "ndarray": lambda trace: Memory,
    "cuda": _cuda,
    "asarray": lambda trace: trace.known,
    "array": lambda trace: trace.known,
    "arange": lambda trace: lambda *bounds, **options: trace.known(np.arange(*bounds, **options)),
    "full": lambda trace: lambda *given, **options: trace.known(np.full(*given, **options)),
    "ones": lambda trace: lambda *given, **options: trace.known(np.ones(*given, **options)),
    "empty_like": lambda trace: lambda a: trace.empty(a.shape, a.dtype),
    "zeros_like": lambda trace: lambda a: trace.zeros(a.shape, a.dtype),
    "ascontiguousarray": lambda trace: lambda a, dtype=None: (
        a if a.flags.c_contiguous and dtype in (None, a.dtype) else cast(a, dtype or a.dtype)
    ),
    "atleast_1d": lambda trace: lambda a: a if a.ndim else reshaped(a, 1),
    "broadcast": lambda trace: np.broadcast,
    "broadcast_to": lambda trace: lambda a, shape: np.broadcast_to(a, shape, subok=True),
    "concatenate": lambda trace: trace.joined,
    "stack": lambda trace: lambda arrays, axis=0, **options: trace.joined(
        [np.expand_dims(a, axis) for a in arrays], axis, **options
    ),
    "ElementwiseKernel": lambda trace: lambda *a, **options: partial(trace.run, trace.kernels[f"_{a[3]}"]),
    "ReductionKernel": lambda trace: lambda *a, **options: partial(trace.sum, trace.kernels[f"_{a[6]}"]),
    "RawModule": lambda trace: partial(_module, trace),
    "RawKernel": lambda trace: lambda code, name, options=(): partial(trace.launch, code, name),
}


def traced(kernel: Kernel, arguments: Callable[[Trace], Sequence[Value]]) -> tuple[Trace, Value]:
    """What a lowered function launches, and what it returns.

    Its namespace holds the kernels that CuPy completes; ``arguments`` makes the arguments, of memory of the
    trace.

    Raises:
        LoweringError: it needs something that is not a kernel of symad's.
    """
    trace, name = Trace(kernel.namespace), kernel.name

    def imported(
        module: str, outside: Value = None, inside: Value = None, names: Value = (), level: int = 0
    ) -> Value:
        if module == "cupy":
            return trace
        if module == "atexit":  # the caller looks at the flag
            return SimpleNamespace(register=lambda *given: None)
        if module.split(".")[0] in ("cupy_backends", "cupyx"):
            raise refused("cuBLAS" if "cublas" in (names or ()) else module)
        return __import__(module, outside, inside, names, level)

    namespace: dict[str, Value] = {"__builtins__": {**vars(builtins), "__import__": imported}}
    code = compile(kernel.source, f"<{name}: launches>", "exec")
    exec(code, namespace)  # only text that symad's printers made
    return trace, namespace[name](*arguments(trace))

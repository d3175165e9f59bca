"""The launches of a generated module for given shapes, without CuPy: it runs on memory that nobody reads.

    trace, results = traced(kernel, arguments)

The module gets a library with CuPy's interface, whose arrays are those of `symad.gpu.device_memory`. What it
launches is written down in order; what has no kernel of symad's is refused by name.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import numpy as np

from symad.gpu.device_memory import Memory, as_read, axes_of, cast, refused, reshaped
from symad.gpu.printers.kernels import ElementwiseKernel, KernelParameter, SumKernel
from symad.gpu.standalone_kernels import Value, elementwise_text, sum_text
from symad.numeric.kernel import Kernel

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

    def named(self, name: str) -> Value:
        """What the module's kernel of this name computes."""
        return self.kernels[f"_{name}"]

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
        self, text: str, kernel: str, grid: Value, block: Value, given: Sequence[Value], shared: int
    ) -> None:
        """Writes a launch down."""
        sizes = [(*map(int, axes), 1, 1)[:3] for axes in (grid, block)]
        self.launches.append(Launch(text, kernel, sizes[0], sizes[1], int(shared), tuple(given)))

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
            self.launch(text, "elements", (blocks,), (256,), arrays, 0)
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
            self.launch(text, "sums", (made.size,), (256,), (*moved, made), 0)
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


class Module:
    """CuPy's RawModule, and its RawKernel."""

    def __init__(self, trace: Trace, code: str, name: str = "", options: Sequence[str] = ()) -> None:
        self.trace, self.code, self.name = trace, code, name

    def get_function(self, name: str) -> Module:
        """A kernel of the text."""
        return Module(self.trace, self.code, name)

    def __call__(self, grid: Value, block: Value, given: Value, *, shared_mem: int = 0) -> None:
        """Launches it."""
        self.trace.launch(self.code, self.name, grid, block, given, shared_mem)


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
    "ElementwiseKernel": lambda trace: lambda *given, **options: partial(trace.run, trace.named(given[3])),
    "ReductionKernel": lambda trace: lambda *given, **options: partial(trace.sum, trace.named(given[6])),
    "RawModule": lambda trace: lambda code, options=(): Module(trace, code),
    "RawKernel": lambda trace: lambda code, name, options=(): Module(trace, code, name),
}


def traced(kernel: Kernel, arguments: Callable[[Trace], Sequence[Value]]) -> tuple[Trace, Value]:
    """What a lowered function launches, and what it returns.

    Args:
        kernel: the function; its namespace holds the kernels that CuPy completes.
        arguments: makes the arguments, of memory of the trace.

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

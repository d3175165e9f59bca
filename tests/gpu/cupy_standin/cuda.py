"""The stand-in's cupy.cuda: two devices, streams, and counts of launches, copies and waits.

The stand-in follows these facts of CuPy 14.2.0 (13.6.0 in brackets where the line differs):
an array of another device is an error in kernels without peer access, and silently slow with it
(cupy/_core/_kernel.pyx, lines 128-148 [108-128]); a call of cuBLAS on a capturing stream raises
(cupy_backends/cuda/libs/cublas.pyx, lines 648-651 [491-494]).
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import types
import weakref
from collections import Counter

import numpy as np

counts = Counter()
"""The numbers of kernel launches, copies to and from the host, waits of the host, and calls of cuBLAS."""


def launched(number=1):
    """Counts launches of kernels, or of operations that set device memory."""
    counts["launches"] += number
    for memory in _pinned:
        memory.to_device()


def synchronized():
    """Counts a wait of the host for the device."""
    counts["synchronizations"] += 1
    for memory in _pinned:
        memory.to_host()
    if _streams and _streams[-1].capturing:
        raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported: not permitted while a stream is capturing")


class CUDARuntimeError(RuntimeError):
    """Never raised here; tests raise it."""


_pinned = weakref.WeakSet()


class PinnedMemory(bytearray):
    """Host memory that kernels access at the same address.

    cupy/cuda/pinned_memory.pyx, line 30: `alloc_pinned_memory` gives an object with the buffer protocol
    and ``ptr``, from cudaHostAlloc, which maps it into the device ("Unified Virtual Address Space" in the
    CUDA programming guide). Here the host sees values written by kernels only after it has waited; on a real
    device it may see them earlier.
    """

    def __init__(self, size):
        super().__init__(size)
        self.host = np.frombuffer(self, np.uint8)
        self.device, self.known = self.host.copy(), self.host.copy()
        self.ptr = self.host.ctypes.data
        _pinned.add(self)

    __hash__ = object.__hash__

    def to_device(self):
        if (self.host != self.known).any():
            self.device[:] = self.host
            self.known[:] = self.host

    def to_host(self):
        if (self.device != self.known).any():
            self.host[:] = self.device
        self.device[:] = self.host
        self.known[:] = self.host


alloc_pinned_memory = PinnedMemory


class UnownedMemory:
    """Memory that another object owns (cupy/cuda/memory.pyx, line 181 [174])."""

    def __init__(self, ptr, size, owner, device_id=-1):
        if ptr != owner.ptr:
            raise ValueError("only pinned memory is known here")
        self.owner = owner


class MemoryPointer:
    """An address in memory."""

    def __init__(self, mem, offset):
        self.bytes = mem.owner.device[offset:]
        self.mem = mem


class CompileException(Exception):
    """A kernel that NVRTC does not compile; tests raise it."""


compiler = types.SimpleNamespace(CompileException=CompileException)
runtime = types.SimpleNamespace(
    getDeviceCount=lambda: 2, deviceSynchronize=synchronized, CUDARuntimeError=CUDARuntimeError,
    getDeviceProperties=lambda number: {"name": b"stand-in"}, runtimeGetVersion=lambda: 13000,
    CUDA_R_32F=0, CUDA_R_64F=1, CUDA_R_16F=2, CUDA_R_16BF=14,
)  # fmt: skip
_devices = [0]
_streams = []


class Device:
    """A device; the current one inside ``with``."""

    attributes = types.MappingProxyType(
        {"MaxSharedMemoryPerBlockOptin": 227 << 10, "MultiProcessorCount": 4,
         "ComputeCapabilityMajor": 9, "ComputeCapabilityMinor": 0}
    )
    compute_capability = "90"

    def __init__(self, number=None):
        self.id = _devices[-1] if number is None else number

    def __enter__(self):
        _devices.append(self.id)
        return self

    def __exit__(self, *error):
        _devices.pop()


class Stream:
    """A stream; on the stand-in all work finishes at once."""

    def __init__(self, null=False, non_blocking=False, ptr=None):
        self.ptr = ptr if ptr is not None else 0 if null else next(_numbers)
        self.graph = None

    @property
    def capturing(self):
        return self.graph is not None

    def __enter__(self):
        _streams.append(self)
        return self

    def __exit__(self, *error):
        _streams.pop()

    def synchronize(self):
        """Wait for the device."""
        synchronized()

    def record(self, event=None):
        """Records an event in the stream."""
        return event or Event()

    def wait_event(self, event):
        """Makes the stream wait for an event; the host does not wait."""

    def begin_capture(self, mode=None):
        """Record a graph; the default stream cannot (cupy/cuda/stream.pyx, lines 393-394 [378-379]).

        Memory allocated while a graph is recorded stays allocated: CuPy's pool keeps it, here the graph does.
        """
        if not self.ptr:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        self.graph = Graph()

    def end_capture(self):
        """The recorded graph. None of it has run: old arrays keep their values, new arrays are undefined."""
        graph, self.graph = self.graph, None
        graph.undo()
        return graph

    def is_capturing(self):
        """True while a graph is recorded."""
        return self.capturing


class Event:
    """A point in the work of a stream."""

    def record(self, stream=None):
        """Marked."""

    def synchronize(self):
        """Waits until the stream has reached the event."""
        synchronized()


def get_elapsed_time(start, stop):
    """Milliseconds between two events; always 0 here."""
    return 1.0


class Graph:
    """Recorded calls; `launch` repeats them on the same memory (cupy/cuda/graph.pyx, line 44 [45])."""

    def __init__(self):
        self.steps, self.kept, self.counts = [], [], Counter(counts)
        self.before = [(array, array.copy()) for array in list(_live.values())]

    def undo(self):
        """Restores the values that arrays had before the graph was recorded."""
        for array in self.kept:
            if array.base is None and array.flags.writeable:
                array.fill(np.nan if array.dtype.kind not in "iub" else 77)
        for array, values in self.before:
            array[...] = values
        self.before = []
        counts.clear()
        counts.update(self.counts)

    def launch(self, stream=None):
        """Repeats the calls on the arrays' present values; counts as one launch."""
        before = Counter(counts)
        for again in self.steps:
            again()
        counts.clear()
        counts.update(before)
        counts["graphs"] += 1
        for memory in _pinned:
            memory.to_device()


_numbers = itertools.count(1)
_recording = [False]


def recorded(function, copied):
    """The function, with its calls added to the graph being recorded; ``copied`` updates their results."""

    @functools.wraps(function)
    def call(*args, **options):
        stream = get_current_stream()
        if not stream.capturing or _recording[0]:
            return function(*args, **options)
        _recording[0] = True
        try:
            result = function(*args, **options)
        finally:
            _recording[0] = False

        def again():
            copied(result, function(*args, **options))

        stream.graph.steps.append(again)
        return result

    return call


class MemoryPool:
    """A pool of memory for arrays, which counts the bytes in use and their maximum; see `using_allocator`."""

    def __init__(self):
        self.used, self.most = 0, 0

    def malloc(self, size):
        raise NotImplementedError("only by using_allocator")

    def used_bytes(self):
        return self.used

    def total_bytes(self):
        return self.most

    def taken(self, array):
        """Counts the bytes of an array until it is deleted."""
        self.used += array.nbytes
        self.most = max(self.most, self.used)
        weakref.finalize(array, self.given_back, array.nbytes)

    def given_back(self, size):
        self.used -= size


@contextlib.contextmanager
def using_allocator(allocator):
    """Arrays made inside take memory from a pool."""
    _pools.append(allocator.__self__)
    try:
        yield
    finally:
        _pools.pop()


_pools = []


_live = weakref.WeakValueDictionary()
"""Arrays with memory of their own."""


def made(inside):
    """Registers a new array with the pool in use, and with the graph that is recorded."""
    if inside.base is None and inside.flags.writeable:
        _live[id(inside)] = inside
    if _pools and inside.base is None:
        _pools[-1].taken(inside)
    if _streams and _streams[-1].capturing:
        _streams[-1].graph.kept.append(inside)


def get_current_stream():
    """The stream on which kernels run."""
    return _streams[-1] if _streams else Stream(null=True)


def get_cublas_handle():
    """The handle of cuBLAS: here the number of the device."""
    return Device().id


device = types.SimpleNamespace(get_cublas_handle=get_cublas_handle, get_device_id=lambda: Device().id)

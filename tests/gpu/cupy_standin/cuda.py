"""The stand-in's cupy.cuda: two devices, streams, and a count of what reaches the device.

Facts of CuPy 14.2.0 (13.6.0 in brackets where the line differs), which the stand-in keeps to:
an array of another device is an error in kernels without peer access, and silently slow with it
(cupy/_core/_kernel.pyx, lines 128-148 [108-128]); a call of cuBLAS on a capturing stream raises
(cupy_backends/cuda/libs/cublas.pyx, lines 648-651 [491-494]).
"""

from __future__ import annotations

import types
import weakref
from collections import Counter

import numpy as np

counts = Counter()
"""Launches of kernels, copies to and from the host, synchronisations with it, and calls of cuBLAS."""


def launched(number=1):
    """Note kernels, or memory set on the device."""
    counts["launches"] += number
    for memory in _pinned:
        memory.to_device()


def synchronised():
    """Note that the host waits for the device."""
    counts["synchronisations"] += 1
    for memory in _pinned:
        memory.to_host()
    if _streams and _streams[-1].capturing:
        raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported: not permitted while a stream is capturing")


class CUDARuntimeError(RuntimeError):
    """Never raised here; tests raise it."""


_pinned = weakref.WeakSet()


class PinnedMemory(bytearray):
    """Memory of the host that kernels reach under the same address.

    cupy/cuda/pinned_memory.pyx of 14.2.0: `alloc_pinned_memory` gives an object with the buffer protocol
    and ``ptr``, from cudaHostAlloc, which maps it into the device ("Unified Virtual Address Space" in the
    CUDA programming guide). What kernels write is seen here only after the host has waited: the worst that a
    device does, which may be seen earlier.
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
    """Memory that something else keeps (cupy/cuda/memory.pyx)."""

    def __init__(self, ptr, size, owner, device_id=-1):
        if ptr != owner.ptr:
            raise ValueError("only pinned memory is known here")
        self.owner = owner


class MemoryPointer:
    """A place in memory."""

    def __init__(self, mem, offset):
        self.bytes = mem.owner.device[offset:]
        self.mem = mem


runtime = types.SimpleNamespace(
    getDeviceCount=lambda: 2, deviceSynchronize=synchronised, CUDARuntimeError=CUDARuntimeError,
    CUDA_R_32F=0, CUDA_R_64F=1, CUDA_R_16F=2, CUDA_R_16BF=14,
)  # fmt: skip
_devices = [0]
_streams = []


class Device:
    """A device; inside of ``with`` the current one."""

    attributes = types.MappingProxyType(
        {"MaxSharedMemoryPerBlockOptin": 227 << 10, "MultiProcessorCount": 4}
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
    """A stream; work here is finished at once."""

    def __init__(self, null=False, non_blocking=False, ptr=0):
        self.ptr, self.capturing = ptr, False

    def __enter__(self):
        _streams.append(self)
        return self

    def __exit__(self, *error):
        _streams.pop()

    def synchronize(self):
        """Wait for the device."""
        synchronised()

    def begin_capture(self):
        """Record a graph; the default stream cannot (cupy/cuda/stream.pyx, line 394)."""
        if not self.ptr:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        self.capturing = True

    def end_capture(self):
        """The end of the recording."""
        self.capturing = False


def get_current_stream():
    """The stream on which kernels run."""
    return _streams[-1] if _streams else Stream()


def get_cublas_handle():
    """A handle of cuBLAS; every call of it looks at the stream first."""
    return Device().id


device = types.SimpleNamespace(get_cublas_handle=get_cublas_handle, get_device_id=lambda: Device().id)

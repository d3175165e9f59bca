"""The stand-in's cupy.cuda: two devices, streams, and a count of what reaches the device.

Facts of CuPy 14.2.0 (13.6.0 in brackets where the line differs), which the stand-in keeps to:
an array of another device is an error in kernels without peer access, and silently slow with it
(cupy/_core/_kernel.pyx, lines 128-148 [108-128]); a call of cuBLAS on a capturing stream raises
(cupy_backends/cuda/libs/cublas.pyx, lines 648-651 [491-494]).
"""

from __future__ import annotations

import types
from collections import Counter

counts = Counter()
"""Launches of kernels, copies to and from the host, synchronisations with it, and calls of cuBLAS."""


def launched(number=1):
    """Note kernels, or memory set on the device."""
    counts["launches"] += number


def synchronised():
    """Note that the host waits for the device."""
    counts["synchronisations"] += 1
    if _streams and _streams[-1].capturing:
        raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported: not permitted while a stream is capturing")


class CUDARuntimeError(RuntimeError):
    """Never raised here; tests raise it."""


runtime = types.SimpleNamespace(
    getDeviceCount=lambda: 2, CUDARuntimeError=CUDARuntimeError,
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

"""The stand-in's cupy.cuda: one device."""

from __future__ import annotations

import types


class CUDARuntimeError(RuntimeError):
    """Never raised here; tests raise it."""


runtime = types.SimpleNamespace(getDeviceCount=lambda: 1, CUDARuntimeError=CUDARuntimeError)


class Device:
    """The current device."""

    attributes = types.MappingProxyType(
        {"MaxSharedMemoryPerBlockOptin": 227 << 10, "MultiProcessorCount": 4}
    )
    compute_capability = "90"

    def __init__(self, number=0):
        self.id = number

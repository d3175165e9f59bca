"""A machine whose kernels run on the CPU: what `symad.gpu.compile.machine()` is on a GPU."""

from __future__ import annotations

from functools import cache

import numpy as np

from symad.gpu.compile import Machine
from tests.gpu.shim.driver import CpuModule


class PoisonedNumPy:
    """NumPy, but `empty` gives NaN (all bits set): what a kernel forgets to write shows."""

    def __getattr__(self, name):
        return getattr(np, name)

    @staticmethod
    def empty(shape, dtype=np.float64):
        return np.full(np.prod(shape, dtype=int) * np.dtype(dtype).itemsize, 0xFF, np.uint8).view(
            dtype
        ).reshape(shape)  # fmt: skip

    @classmethod
    def empty_like(cls, array):
        return cls.empty(array.shape, array.dtype)


@cache
def load(source):
    return CpuModule(source)


def cpu_machine(shared_memory=227 * 1024, capability=(9, 0)):
    """A machine with the shared memory of a data-centre GPU (227 KB) or less."""
    return Machine(PoisonedNumPy(), load, 4, capability, shared_memory)

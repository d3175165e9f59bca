"""The CUDA device, found on first use; if there is none, one clear error says so.

CuPy is imported here and in no module that is loaded earlier, so that `import symad.gpu` works everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from symad.core.arrays import Array
from symad.errors import SymadError

KERNELS = Path(__file__).parent / "kernels"


class GpuError(SymadError, RuntimeError):
    """There is no CuPy, no driver or no device, or a kernel does not compile."""


@dataclass(frozen=True)
class Machine:
    """The device that kernels run on. Tests replace it by the CPU.

    Attributes:
        xp: the array library.
        load: a function from source text to a module with ``get_function(name)``.
        processors: the number of multiprocessors.
        capability: the compute capability, such as (9, 0).
        shared_memory: the bytes of shared memory that one block may use.
    """

    xp: ModuleType
    load: Callable[[str], Any]
    processors: int
    capability: tuple[int, int]
    shared_memory: int


def cupy() -> ModuleType:
    """The CuPy module, on a machine with a usable device.

    Raises:
        GpuError: CuPy cannot be imported, or finds no driver or no device.
    """
    try:
        import cupy as cp
    except Exception as error:  # broken installs raise more than ImportError
        raise GpuError(
            f"CuPy cannot be imported ({type(error).__name__}: {error}); install symad with the "
            'extra "gpu-cuda12" or "gpu-cuda13", or use NumPy arrays and backend="numpy", which '
            "need no GPU"
        ) from error
    try:
        count = cp.cuda.runtime.getDeviceCount()
    except cp.cuda.runtime.CUDARuntimeError as error:
        raise GpuError(
            f"CuPy {cp.__version__} is installed, but CUDA says: {error}. Check the driver with "
            'nvidia-smi, or use NumPy arrays and backend="numpy", which need no GPU'
        ) from error
    if count == 0:
        raise GpuError('there is no CUDA device; NumPy arrays and backend="numpy" need none')
    return cp


def machine() -> Machine:
    """The current CUDA device.

    Raises:
        GpuError: there is no CUDA device.
    """
    cp = cupy()
    return _machine(cp, cp.cuda.Device().id)


@lru_cache(maxsize=16)
def _machine(cp: ModuleType, identity: int) -> Machine:
    device = cp.cuda.Device(identity)
    properties = device.attributes
    capability = (properties["ComputeCapabilityMajor"], properties["ComputeCapabilityMinor"])
    return Machine(
        cp,
        _Loader(cp, identity),
        properties["MultiProcessorCount"],
        capability,
        properties["MaxSharedMemoryPerBlockOptin"],
    )


@dataclass(frozen=True)
class _Loader:
    """Compiles source text for one device; compiled texts are kept."""

    xp: ModuleType
    device: int

    def __call__(self, source: str) -> Any:
        return _module(self.xp, source, self.device)


@lru_cache(maxsize=512)
def _module(cp: ModuleType, source: str, device: int) -> Any:
    # CuPy adds -arch for the device. The architecture-specific targets (sm_90a) are only needed for kernels
    # with wgmma, and there are none here.
    module = cp.RawModule(code=source, options=("-std=c++17",))
    try:
        module.compile()
    except Exception as error:
        raise_if_not_compiled(error)
        raise
    return module


def raise_if_not_compiled(error: Exception) -> None:
    """Explain an error of CuPy that comes from compiling a kernel, or from a library that this needs.

    Raises:
        GpuError: the error is of this kind.
    """
    name = type(error).__name__  # errors of CuPy's compiler, and of its search for libraries
    if name == "CompileException":
        raise GpuError(f"NVRTC does not compile a kernel of symad:\n{error}") from error
    if name == "DynamicLibNotFoundError" or isinstance(error, OSError):
        raise GpuError(
            f"CuPy cannot compile kernels ({name}: {error}); the extras "
            '"gpu-cuda12" and "gpu-cuda13" install the libraries it needs, NVRTC among them. NumPy '
            'arrays and backend="numpy" need none'
        ) from error


def check_device(xp: ModuleType, **arrays: Array | None) -> None:
    """Check that arrays are on the current device, where kernels run.

    Raises:
        GpuError: an array is elsewhere.
    """
    cuda = getattr(xp, "cuda", None)
    if cuda is None:  # NumPy, in tests of the kernels
        return
    current = cuda.Device().id
    for name, array in arrays.items():
        where = getattr(array, "device", None)
        if where is not None and where.id != current:
            raise GpuError(
                f"{name} is on device {where.id}, but device {current} is current: copy it there, or call "
                f"within cupy.cuda.Device({where.id})"
            )


@lru_cache(maxsize=64)
def kernel_text(*names: str) -> str:
    """The files of gpu/kernels with these names, concatenated; each keeps its own line numbers."""
    return "".join(f'#line 1 "{name}"\n{(KERNELS / name).read_text("utf-8")}' for name in names)

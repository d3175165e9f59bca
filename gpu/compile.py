"""The CUDA device, found on first use; if there is none, one clear error says so.

CuPy is imported here and in no module that is loaded earlier, so that `import symad.gpu` works everywhere.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
    with explained(f"CuPy {cp.__version__}"):
        count = cp.cuda.runtime.getDeviceCount()
    if count == 0:
        raise GpuError('there is no CUDA device; NumPy arrays and backend="numpy" need none')
    return cp


def machine() -> Machine:
    """The current CUDA device.

    Raises:
        GpuError: there is no CUDA device.
    """
    cp = cupy()
    with explained("looking for the device"):
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
    with explained("compiling a kernel"):
        module.compile()
    return module


KINDS = {
    "CUDARuntimeError", "CUDADriverError", "CUBLASError", "CUSOLVERError", "CuSparseError", "CURANDError",
    "NVRTCError", "CompileException", "DynamicLibNotFoundError", "OutOfMemoryError",
}  # fmt: skip
"""The classes of CuPy's errors that are not mistakes of a call, by name: importing them needs CuPy."""

CACHE = (
    "CuPy keeps compiled kernels in a folder: set CUPY_CACHE_DIR to one that can be written, or "
    "CUPY_CACHE_IN_MEMORY=1"
)
EXTRAS = 'the extras "gpu-cuda12" and "gpu-cuda13" install the libraries that CuPy needs, NVRTC among them'
MEMORY = "free memory on the device, or compute less at once: a shorter dtype, a smaller batch"
ADVICE = (
    (("dynamiclib",), EXTRAS),
    (("outofmemory", "out of memory", "out_of_memory", "memoryallocation", "alloc_failed"), MEMORY),
    (("not_initialized",), f"libraries need memory of their own when they start: {MEMORY}"),
    (
        ("insufficientdriver", "unsupportedptx", "nokernelimage", "no_binary", "invalid_ptx", "mismatch",
         "callrequiresnewerdriver", "stubs"),
        "the driver is older than the CUDA of this CuPy: nvidia-smi shows its version; update it, or install "
        'symad with the extra "gpu-cuda12" in place of "gpu-cuda13"',
    ),
    (
        ("illegal", "launchfailure", "launch_failed", "misaligned", "stackerror", "invalidpc", "assert",
         "ecc", "launchtimeout", "execution_failed", "mapping_error", "internal_error"),
        "the device can no longer be used by this process: start a new one. If the call fails again, run it "
        "under compute-sanitizer and report it",
    ),
    (
        ("outofresources",),
        "the kernel needs more registers or shared memory than this device has: use a shorter dtype or "
        "narrower heads",
    ),
    (
        ("capture",),
        "this cannot be recorded as a CUDA graph: print it with options(capture=True), or give capture=False",
    ),
    (
        ("compileexception", "nvrtc"),
        "NVRTC does not compile a kernel of symad: report it, with the version of CuPy",
    ),
)  # fmt: skip
"""Words of errors, in small letters, and what to do; the first row with such a word holds."""


def advice(error: Exception) -> str:
    """What to do about an error of CuPy or of the system; empty if it is an error of the call itself."""
    if isinstance(error, OSError):
        cannot_write = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)
        return CACHE if cannot_write else EXTRAS
    kinds = {cls.__name__ for cls in type(error).__mro__}
    if not kinds & KINDS:
        return ""
    text = f"{type(error).__name__} {error}".lower()
    found = (told for words, told in ADVICE if any(word in text for word in words))
    return next(found, "check the device with nvidia-smi")


def raise_explained(error: Exception, what: str) -> None:
    """Raise an error of CuPy or of the system again, with what to do; do nothing for other errors.

    Raises:
        GpuError: the error is of CUDA, of its libraries or compiler, or of the folder of compiled kernels.
    """
    told = advice(error)
    if told:
        raise GpuError(
            f"{what} fails on the GPU ({type(error).__name__}: {error}). To do: {told}. NumPy arrays and "
            'backend="numpy" need no GPU'
        ) from error


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Errors inside that are not mistakes of a call say what to do.

    Raises:
        GpuError: as `raise_explained`.
    """
    try:
        yield
    except Exception as error:
        raise_explained(error, what)
        raise


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


class KernelFile(str):
    """The text of a file of gpu/kernels, as a piece of the sources that share it."""

    name: str


def kernel_files(*names: str) -> list[str]:
    """The files of gpu/kernels with these names, as pieces of a source."""
    made = [KernelFile(kernel_text(name)) for name in names]
    for piece, name in zip(made, names, strict=True):
        piece.name = name
    return [*made]

"""Detection of the GPU, and the error on machines without one."""

import builtins
import sys
import types

import numpy as np
import pytest

import symad
from symad import functions
from symad.gpu import compile as gpu_compile
from symad.gpu.compile import GpuError, check_device, cupy, kernel_text
from symad.gpu.eager import attention
from symad.numeric import lower
from tests.gpu.cupy_agreement import library
from tests.gpu.cupy_standin import kernels


class CUDARuntimeError(RuntimeError):
    """What CuPy raises without a driver."""


def fake_cupy(count):
    def get_device_count():
        if count is None:
            raise CUDARuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")
        return count

    runtime = types.SimpleNamespace(getDeviceCount=get_device_count, CUDARuntimeError=CUDARuntimeError)
    made = types.ModuleType("cupy")
    made.__version__ = "14.0"
    made.cuda = types.SimpleNamespace(runtime=runtime)
    return made


@pytest.mark.parametrize("error", [ImportError("No module named cupy"), OSError("libcuda broken")])
def test_cupy_missing_or_broken(monkeypatch, error):
    genuine = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == "cupy":
            raise error
        return genuine(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(GpuError, match=r'extra "gpu-cuda12" or "gpu-cuda13".*backend="numpy"'):
        cupy()


def test_no_driver_and_no_device(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(None))
    with pytest.raises(GpuError, match=r"cudaErrorInsufficientDriver.*nvidia-smi"):
        cupy()
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(0))
    with pytest.raises(GpuError, match="there is no CUDA device"):
        cupy()


def test_numpy_arrays_need_no_gpu(monkeypatch):
    monkeypatch.setattr(gpu_compile, "cupy", lambda: pytest.fail("looked for a GPU"))
    q = np.random.default_rng(0).normal(size=(1, 1, 5, 4))
    out, lse = attention(q, q, q, causal=True, return_lse=True)
    np.testing.assert_allclose(out[0, 0, 0], q[0, 0, 0])
    assert lse.shape == (1, 1, 5)


def test_arrays_on_another_device():
    cuda = types.SimpleNamespace(Device=lambda: types.SimpleNamespace(id=0))
    here, there = (types.SimpleNamespace(device=types.SimpleNamespace(id=k)) for k in (0, 1))
    xp = types.SimpleNamespace(cuda=cuda)
    check_device(xp, q=here, k=here, b=None)
    with pytest.raises(GpuError, match=r"k is on device 1, but device 0 is current: copy it there"):
        check_device(xp, q=here, k=there)


class DynamicLibNotFoundError(RuntimeError):
    """What the path finder of CuPy's libraries raises."""


@pytest.mark.parametrize("error", [DynamicLibNotFoundError("libnvrtc.so.13"), OSError("libnvrtc.so.13")])
def test_an_install_without_nvrtc(monkeypatch, error):
    class Missing:
        def __init__(self, code, options):
            pass

        def compile(self):
            raise error

    made = fake_cupy(1)
    made.RawModule = Missing
    with pytest.raises(GpuError, match=r'compiling a kernel fails.*libnvrtc.*"gpu-cuda12" and "gpu-cuda13"'):
        gpu_compile._module(made, f"no text that is cached: {error!r}", 0)


def test_printed_code_explains_it_too(monkeypatch):
    graph = symad.trace(lambda q, k, v: functions.attention(q, k, v), [(1, 1, 5, 4)] * 3)

    def refuse(self, name):
        raise DynamicLibNotFoundError("libnvrtc.so.13")

    with library() as cp:
        monkeypatch.setattr(kernels.RawModule, "get_function", refuse)
        arrays = [cp.ones((1, 1, 5, 4))] * 3
        with pytest.raises(GpuError, match=r"f fails on the GPU.*libnvrtc.*gpu-cuda13"):
            lower(graph, backend="cupy")(*arrays)


def test_kernel_files_keep_their_line_numbers():
    text = kernel_text("prims.h", "tile.h")
    assert text.startswith('#line 1 "prims.h"\n')
    assert '\n#line 1 "tile.h"\n' in text


def test_kernel_files_include_nothing_and_keep_ptx_in_one_place():
    for path in sorted(gpu_compile.KERNELS.glob("*")):
        text = path.read_text("utf-8") if path.suffix in (".h", ".cu") else ""
        assert "#include" not in text
        assert path.name == "prims.h" or "asm" not in text.replace("_asm", "")

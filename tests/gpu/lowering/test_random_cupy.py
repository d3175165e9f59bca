"""Random numbers in CuPy code: the very bits of the NumPy code, on the stand-in and on a device."""

import numpy as np
import pytest

import symad
from symad.errors import LoweringError
from symad.functions import fold_in, key, rand, randn, split
from symad.numeric import lower
from tests.gpu import nvrtc
from tests.gpu.cupy_agreement import WHERE, agree, library
from tests.gpu.kernels.kernel_texts import cuda_text, kernels_of

KEYS = [key(0), key(2**64 - 1), key(0x0123456789ABCDEF)]
UNIFORM = symad.trace(lambda k: rand(k, (3, 5)), [(4,)])


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_uniform_numbers_are_equal_bit_by_bit(dtype, where):
    plain = lower(UNIFORM, dtype=dtype)
    with library(where) as cp:
        kernel = lower(UNIFORM, backend="cupy", dtype=dtype)
        for k in KEYS:
            found = kernel(cp.asarray(k.astype(dtype))).get()
            assert found.dtype == dtype
            assert found.tobytes() == plain(k).tobytes()


@pytest.mark.parametrize("where", WHERE)
def test_streams_and_stacks_of_keys(where):
    graph = symad.trace(lambda k: rand(fold_in(split(k, 3), np.array([5, 0, 2])), 7), [(4,)])
    plain = lower(graph)
    with library(where) as cp:
        kernel = lower(graph, backend="cupy")
        for k in KEYS:
            assert kernel(cp.asarray(k)).get().tobytes() == plain(k).tobytes()
        with pytest.raises(ValueError, match="four integers"):
            kernel(cp.asarray(KEYS[2] + 0.5))
            symad.gpu.check_indices()


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-12), ("float32", 1e-4)])
def test_gradients_through_noise(dtype, rtol, where):
    graph = symad.trace(lambda w, k: (np.exp(w * randn(k, w.shape[0])) ** 2).sum(), [(6,), (4,)])
    agree(symad.value_and_gradient(graph), [np.linspace(-1, 1, 6), KEYS[2]], dtype, rtol, where)


def test_half_precisions_are_refused():
    for dtype in ("float16", "bfloat16"):
        with pytest.raises(LoweringError, match="need float32 or float64"):
            lower(UNIFORM, backend="cupy", dtype=dtype)


@pytest.mark.thorough
@pytest.mark.skipif(nvrtc.library() is None, reason="needs the wheel nvidia-cuda-nvrtc")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kernels_compile_for_a_device(dtype):
    graph = symad.trace(lambda k: rand(split(k, 3), 7), [(4,)])
    kernels = kernels_of(graph, dtype)
    assert len(kernels) == 4  # two check and convert keys
    for kernel in kernels:
        cubin, report = nvrtc.compile_text(cuda_text(kernel), "sm_90")
        assert cubin
        assert all(k.spilled == 0 for k in report.values())

"""Arrays of other libraries as arguments and results, streams, devices, and constants on several devices."""

from __future__ import annotations

import numpy as np
import pytest

import symad
from symad.numeric import lower
from tests.gpu.cupy_agreement import library, on_device
from tests.gpu.foreign import Foreign

RNG = np.random.default_rng(3)


def affine(a, b):
    return a * np.array([1.0, 2.0, 3.0]) + b


GRAPH = symad.trace(affine, [(2, 3), (2, 3)])
A, B = RNG.normal(size=(2, 2, 3))
WANTED = A * [1, 2, 3] + B


def test_dlpack_comes_first_and_orders_the_streams():
    with library() as cp:
        kernel = lower(GRAPH, backend="cupy")
        a, b = Foreign(A), Foreign(B, requires_grad=True)
        np.testing.assert_allclose(kernel(a, b).get(), WANTED)
        assert a.streams == b.streams == [1]  # the default stream by its own pointer
        with cp.cuda.Stream(ptr=77):
            kernel(a, b)
        assert a.streams == b.streams == [1, 77]


def test_bfloat16_of_other_libraries():
    """By DLPack it is bfloat16; over the CUDA array interface two bytes without meaning, refused by name."""
    pytest.importorskip("ml_dtypes")
    a, b = (v.astype("bfloat16") for v in (A, B))
    with library():
        kernel = lower(GRAPH, backend="cupy", dtype="bfloat16")
        got = kernel(Foreign(a), Foreign(b)).get().astype(float)
        np.testing.assert_allclose(got, a.astype(float) * [1, 2, 3] + b.astype(float), rtol=0.02, atol=0.02)
        with pytest.raises(TypeError, match=r"b must hold real numbers, not \|V2"):
            kernel(Foreign(a), Foreign(b, offers=("cuda",)))
        np.testing.assert_allclose(
            lower(GRAPH, backend="cupy")(Foreign(A, offers=("cuda",)), Foreign(B)).get(), WANTED
        )


def test_tensors_on_the_cpu_are_refused_by_name():
    torch = pytest.importorskip("torch")
    with library() as cp:
        kernel = lower(GRAPH, backend="cupy")
        a = cp.asarray(A)
        with pytest.raises(TypeError, match=r"b is a torch\.Tensor outside of the GPU.*cupy\.asarray\(b\)"):
            kernel(a, torch.tensor(B))
        with pytest.raises(TypeError, match=r"b is a numpy\.ndarray outside"):
            kernel(a, B)


def test_inputs_on_several_devices_are_named():
    with library() as cp:
        kernel = lower(GRAPH, backend="cupy")
        a = cp.asarray(A)
        with cp.cuda.Device(1):
            b = cp.asarray(B)
        with pytest.raises(ValueError, match=r"current device, 0, but b is on device 1.*Device\(1\)"):
            kernel(a, b)
        with pytest.raises(ValueError, match=r"current device, 0, but a is on device 1"):
            kernel(b, b)


def test_constants_are_made_once_for_each_device_and_finished():
    with library() as cp:
        kernel = lower(GRAPH, backend="cupy")
        for number, made in ((0, 1), (1, 1), (0, 0), (1, 0)):
            with cp.cuda.Device(number):
                values = on_device(cp, (A, B))
                before = cp.cuda.counts["copies"], cp.cuda.counts["synchronizations"]
                result = kernel(*values)
                after = cp.cuda.counts["copies"], cp.cuda.counts["synchronizations"]
                assert after == (before[0] + made, before[1] + made)
                assert result.device.id == number
                np.testing.assert_allclose(result.get(), WANTED)

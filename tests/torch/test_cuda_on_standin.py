"""The bridge over CuPy without a device: the stand-in for CuPy, and tensors that only claim to be on one.

Everything except PyTorch's own memory is tested here: which kernel runs, on which stream and device, and its
values. `test_as_function.test_on_a_cuda_device` tests the whole bridge on a GPU.
"""

from types import SimpleNamespace

import numpy as np
import pytest

import symad
from symad.errors import EvaluationError
from tests.gpu.cupy_agreement import library
from tests.gpu.foreign import Foreign

torch = pytest.importorskip("torch")
from symad.torch.bridge import Bridge  # noqa: E402

STREAM = 77
RNG = np.random.default_rng(2)
VALUES = [RNG.normal(size=shape) for shape in ((3, 2), (2,), (4, 3))]


class OnDevice(Foreign):
    """A tensor of a CUDA device, as far as the bridge looks."""

    def __init__(self, array, device=1):
        super().__init__(array)
        self.device = torch.device("cuda", device)
        self.dtype = torch.from_numpy(self.array).dtype

    def is_floating_point(self):
        return self.dtype.is_floating_point


def network(W, b, X):
    return np.tanh(X @ W + b)


@pytest.fixture
def cuda(monkeypatch):
    """PyTorch's stream, and its door for memory of CuPy."""
    asked = []
    monkeypatch.setattr(
        torch.cuda,
        "current_stream",
        lambda device: asked.append(device) or SimpleNamespace(cuda_stream=STREAM),
    )
    with library() as cp:
        monkeypatch.setattr(torch, "from_dlpack", lambda array: torch.from_numpy(array.get()))
        monkeypatch.setattr(cp.cuda, "ExternalStream", lambda ptr: cp.cuda.Stream(ptr=ptr), raising=False)
        yield asked


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_values_and_derivatives_on_pytorchs_stream(cuda, dtype):
    values = [v.astype(dtype) for v in VALUES]
    bridge = Bridge(symad.trace(network, [v.shape for v in values]), "numpy")
    tensors = [OnDevice(v) for v in values]
    (found,) = bridge.run(tensors)
    leaves = [torch.from_numpy(v).requires_grad_() for v in values]
    wanted = torch.tanh(leaves[2] @ leaves[0] + leaves[1])
    assert found.dtype == wanted.dtype and torch.allclose(
        found, wanted, rtol=1e-5 if dtype == "float32" else 1e-12
    )
    assert [t.streams for t in tensors] == [[STREAM]] * 3 and cuda == [torch.device("cuda", 1)]

    y_bar = torch.from_numpy(RNG.normal(size=wanted.shape).astype(dtype))
    slopes = bridge.pullback((0, 1)).run([*tensors, OnDevice(y_bar.numpy())])
    expected = torch.autograd.grad(wanted, leaves[:2], y_bar)
    for slope, own in zip(slopes, expected, strict=True):
        assert torch.allclose(slope, own, rtol=1e-4 if dtype == "float32" else 1e-12)


def test_tensors_of_two_devices_are_named():
    bridge = Bridge(symad.trace(network, [v.shape for v in VALUES]), "numpy")
    tensors = [OnDevice(v, device) for v, device in zip(VALUES, (0, 0, 1), strict=True)]
    with pytest.raises(EvaluationError, match=r"W on cuda:0, b on cuda:0, X on cuda:1"):
        bridge.run(tensors)

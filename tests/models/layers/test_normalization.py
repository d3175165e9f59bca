"""Normalization and the feed-forward blocks, against torch and by their invariances."""

import numpy as np
import pytest

from symad.errors import SymadError
from symad.models.layers import normalization as norm
from symad.models.layers.gated import FeedForwardBlock
from tests.models.reference import agrees_with_torch

rng = np.random.default_rng(0)
Y = rng.normal(size=(2, 5, 4))
SHAPES = {"x": (2, 5, 4), "gamma": (4,), "beta": (4,)}


def test_layer_norm():
    def reference(torch, p, Y):
        return (torch.nn.functional.layer_norm(p["x"], (4,), p["gamma"], p["beta"]) * Y).sum()

    agrees_with_torch(
        lambda p, Y: np.sum(norm.layer_norm(p["x"], p["gamma"], p["beta"]) * Y), SHAPES, reference, Y
    )


def test_rms_norm():
    def reference(torch, p, Y):
        return (torch.nn.functional.rms_norm(p["x"], (4,), p["gamma"], 1e-5) * Y).sum()

    agrees_with_torch(
        lambda p, Y: np.sum(norm.rms_norm(p["x"], p["gamma"]) * Y),
        {"x": (2, 5, 4), "gamma": (4,)}, reference, Y,
    )  # fmt: skip


def test_batch_norm_and_its_running_statistics():
    torch = pytest.importorskip("torch")

    def reference(torch, p, Y):
        run = torch.nn.functional.batch_norm
        return (run(p["x"], None, None, p["gamma"], p["beta"], training=True) * Y).sum()

    agrees_with_torch(
        lambda p, Y: np.sum(norm.batch_norm(p["x"], p["gamma"], p["beta"]) * Y),
        SHAPES | {"x": (5, 4)}, reference, Y[0],
    )  # fmt: skip
    x, mean, variance = rng.normal(size=(5, 4)), rng.normal(size=4), rng.uniform(size=4)
    tracked = torch.tensor(mean), torch.tensor(variance)
    torch.nn.functional.batch_norm(torch.tensor(x), *tracked, training=True)
    for found, wanted in zip(norm.running(mean, variance, x), tracked, strict=True):
        np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-13)
    ours = norm.batch_norm_predict(x, 1.0, 0.0, mean, variance)
    theirs = torch.nn.functional.batch_norm(*map(torch.tensor, (x, mean, variance)))
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-13)


def test_orders_of_residual_and_norm():
    def double(x):
        return 2 * x

    x = np.array([1.0])
    assert norm.residual("pre", x, lambda v: v + 1, double)[0] == 1 + (2 + 1)
    assert norm.residual("post", x, lambda v: v + 1, double)[0] == 2 * (1 + 2)
    assert norm.residual("deep", x, lambda v: v + 1, double, alpha=3.0)[0] == 2 * (3 + 2)
    assert norm.deep_scale(8) == 2.0


@pytest.mark.parametrize("kind", ["relu", "gelu", "geglu", "swiglu"])
@pytest.mark.parametrize("bias", [False, True])
def test_blocks(kind, bias):
    model = FeedForwardBlock(4, 7, kind, bias)

    def reference(torch, p, x, Y):
        F = torch.nn.functional
        sigma = {"relu": F.relu, "gelu": F.gelu, "geglu": F.gelu, "swiglu": F.silu}[kind]
        b = {k: p.get(f"b_{k}", 0) for k in (1, 2, 3)}
        h = sigma(x @ p["W_1"] + b[1])
        h = h * (x @ p["W_3"] + b[3]) if kind.endswith("glu") else h
        return ((h @ p["W_2"] + b[2]) * Y).sum()

    x = rng.normal(size=(2, 5, 4))
    agrees_with_torch(lambda p, x, Y: np.sum(model.apply(p, x) * Y), model.shapes, reference, x, Y)


def test_unknown_blocks_are_refused():
    with pytest.raises(SymadError, match="'reglu' is not one of relu, gelu, gelu_tanh, geglu, swiglu"):
        FeedForwardBlock(4, 7, "reglu")

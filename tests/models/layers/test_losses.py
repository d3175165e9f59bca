"""Losses and activations against torch, by the graph and lowered; worked numbers; certificates."""

import numpy as np
import pytest
import sympy

import symad
from symad.errors import ShapeError
from symad.models.generative.divergences import gaussian_kl_full
from symad.models.layers import activations, losses
from symad.numeric import lower

torch = pytest.importorskip("torch")
from torch.nn import functional as F  # noqa: E402

rng = np.random.default_rng(0)
SCORES, OTHERS = rng.normal(size=(6, 4)), rng.normal(size=(6, 4))
SCORES[0, 0] = 1000.0
CLASSES = np.array([2, 0, 3, 1, 1, 0])
GAPS = np.array([2, -100, 3, -100, 1, 0])
SOFT = rng.dirichlet(np.ones(4), size=6)
BITS = (rng.uniform(size=(6, 4)) < 0.5).astype(float)
W = np.array([0.5, 2.0, 1.0, 0.0])


def focal(z, y, gamma=2.0, alpha=None):
    """As torchvision.ops.sigmoid_focal_loss computes it."""
    p = torch.sigmoid(z)
    ce = F.binary_cross_entropy_with_logits(z, y, reduction="none")
    loss = ce * (1 - (p * y + (1 - p) * (1 - y))) ** gamma
    return (loss if alpha is None else (alpha * y + (1 - alpha) * (1 - y)) * loss).mean()


def info_nce(a, b):
    return F.cross_entropy(F.normalize(a) @ F.normalize(b).T / 0.1, torch.arange(6))


def pinball(p, y):
    return torch.maximum(0.9 * (y - p), -0.1 * (y - p)).mean()


Wt = torch.tensor(W)
CASES = {
    "classes": (
        lambda z: losses.cross_entropy(z, CLASSES),
        lambda z: F.cross_entropy(z, torch.tensor(CLASSES)),
    ),
    "weights": (
        lambda z: losses.cross_entropy(z, CLASSES, W),
        lambda z: F.cross_entropy(z, torch.tensor(CLASSES), Wt),
    ),
    "all options": (
        lambda z: losses.cross_entropy(z, GAPS, W, 0.1, -100),
        lambda z: F.cross_entropy(z, torch.tensor(GAPS), Wt, label_smoothing=0.1),
    ),
    "smoothed": (
        lambda z: losses.cross_entropy(z, CLASSES, smoothing=0.2),
        lambda z: F.cross_entropy(z, torch.tensor(CLASSES), label_smoothing=0.2),
    ),
    "ignored": (
        lambda z: losses.cross_entropy(z, GAPS, ignore=-100),
        lambda z: F.cross_entropy(z, torch.tensor(GAPS)),
    ),
    "soft": (
        lambda z: losses.cross_entropy(z, SOFT, W, 0.1),
        lambda z: F.cross_entropy(z, torch.tensor(SOFT), Wt, label_smoothing=0.1),
    ),
    "huber": (
        lambda z: losses.huber(z, OTHERS, 0.7),
        lambda z: F.huber_loss(z, torch.tensor(OTHERS), delta=0.7),
    ),
    "quantile": (lambda z: losses.quantile(z, OTHERS, 0.9), lambda z: pinball(z, torch.tensor(OTHERS))),
    "focal": (lambda z: losses.focal(z, BITS), lambda z: focal(z, torch.tensor(BITS))),
    "focal 3": (
        lambda z: losses.focal(z, BITS, 3.0, 0.25),
        lambda z: focal(z, torch.tensor(BITS), 3.0, 0.25),
    ),
    "InfoNCE": (lambda z: losses.info_nce(z, OTHERS), lambda z: info_nce(z, torch.tensor(OTHERS))),
}
ACTIVATIONS = {
    "leaky_relu": F.leaky_relu, "elu": F.elu, "mish": F.mish,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu": F.gelu, "silu": F.silu, "softplus": F.softplus, "relu": F.relu, "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
}  # fmt: skip


def agrees(ours, theirs, *points, backends=("numpy", "c")):
    tensors = [torch.tensor(p, requires_grad=True) for p in points]
    expected = theirs(*tensors)
    expected.backward()
    graph = symad.value_and_gradient(symad.trace(ours, [p.shape for p in points]))
    for found in (graph(*points), *(lower(graph, backend=b)(*points) for b in backends)):
        np.testing.assert_allclose(found[0], expected.item(), rtol=1e-12)
        for slope, tensor in zip(found[1:], tensors, strict=True):
            np.testing.assert_allclose(slope, tensor.grad.numpy(), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(ours(*points), expected.item(), rtol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_losses_are_those_of_torch(name):
    agrees(*CASES[name], SCORES)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_those_of_torch(name):
    x = np.concatenate([rng.normal(size=20), [-800.0, -30.0, -1e-9, 1e-9, 30.0, 800.0]])
    agrees(lambda z: activations.activation(name)(z).sum(), lambda z: ACTIVATIONS[name](z).sum(), x)


@pytest.mark.thorough
def test_targets_may_be_inputs():
    y = sympy.IndexedBase(sympy.Symbol("y", integer=True), shape=(6,))
    graph = symad.trace(lambda z, y: losses.cross_entropy(z, y, W, 0.1, -100), [(6, 4), y])
    expected = F.cross_entropy(torch.tensor(SCORES), torch.tensor(GAPS), Wt, label_smoothing=0.1).item()
    for f in (graph, lower(graph), lower(graph, backend="c")):
        assert abs(f(SCORES, GAPS) - expected) < 1e-12 * abs(expected)
    with pytest.raises((ShapeError, IndexError)):
        lower(graph)(SCORES, CLASSES + 3)


def test_worked_numbers():
    """Two equal scores: log 2 for each class, whatever the weights."""
    z = np.zeros((2, 2))
    assert abs(losses.cross_entropy(z, np.array([0, 1]), np.array([3.0, 1.0])) - np.log(2)) < 1e-15
    assert losses.huber(np.array([0.5, 3.0]), np.zeros(2)) == (0.125 + 2.5) / 2
    assert losses.quantile(np.array([0.0, 0.0]), np.array([1.0, -1.0]), 0.75) == 0.5
    assert abs(losses.focal(np.zeros(1), np.ones(1)) - np.log(2) / 4) < 1e-15


def test_the_kl_of_gaussians_with_full_covariances():
    A, B = rng.normal(size=(2, 3, 3))
    S, R = A @ A.T + np.eye(3), B @ B.T + np.eye(3)
    m, n = rng.normal(size=(2, 3))

    def reference(m, S, n, R):
        normal = torch.distributions.MultivariateNormal
        return torch.distributions.kl_divergence(normal(m, S), normal(n, R))

    assert gaussian_kl_full(m, S, m, S) == pytest.approx(0, abs=1e-14)

    def from_factors(m, A, n, B):
        return gaussian_kl_full(m, A @ A.T + np.eye(3), n, B @ B.T + np.eye(3))

    def reference_of_factors(m, A, n, B):
        one = torch.eye(3, dtype=torch.float64)
        return reference(m, A @ A.T + one, n, B @ B.T + one)

    agrees(from_factors, reference_of_factors, m, A, n, B, backends=("numpy",))
    with pytest.raises(ShapeError, match="covariances"):
        gaussian_kl_full(m, S[:2], n, R)


@pytest.mark.thorough
def test_certificates():
    for name in ("leaky_relu", "elu", "mish", "gelu_tanh"):
        graph = symad.trace(activations.activation(name), [()])
        assert symad.check(graph).status in ("proved", "tested"), name
    for f in (
        lambda x: losses.huber(x, np.array([0.1, 2.0])),
        lambda x: losses.cross_entropy(x[None, :], np.array([1]), np.array([1.0, 2.0]), 0.1),
    ):
        assert symad.check(symad.trace(f, [(2,)])).status in ("proved", "tested")


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match="smoothing=2"):
        losses.cross_entropy(SCORES, CLASSES, smoothing=2)
    with pytest.raises(ShapeError, match="weights"):
        losses.cross_entropy(SCORES, CLASSES, W[:2])
    with pytest.raises(ShapeError, match="ignore=3"):
        losses.cross_entropy(SCORES, SOFT, ignore=3)
    with pytest.raises(ShapeError, match="level"):
        losses.quantile(SCORES, OTHERS, 1.5)

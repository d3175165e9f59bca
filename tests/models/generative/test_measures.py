"""Distances between samples: against loops, torch, SciPy, closed forms; missing modes lower the coverage."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import sympy as sp

import symad
from symad.models.generative import kernels, measures

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 3)), RNG.normal(size=(5, 3)) + 0.4
VALUES = {kernels.length: 0.9}


def by_loops(x: np.ndarray, y: np.ndarray, biased: bool) -> float:
    """The definition, one pair at a time."""

    def k(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.exp(-((a - b) ** 2).sum() / (2 * 0.9**2)))

    def mean(points: np.ndarray) -> float:
        count = len(points)
        pairs = [k(points[i], points[j]) for i in range(count) for j in range(count) if biased or i != j]
        return sum(pairs) / len(pairs)

    return mean(x) + mean(y) - 2 * sum(k(a, b) for a in x for b in y) / (len(x) * len(y))


@pytest.mark.parametrize("biased", [True, False])
def test_mmd_is_its_definition(biased: bool) -> None:
    found = measures.mmd2(X, Y, kernels.rbf(), VALUES, biased)
    assert found == pytest.approx(by_loops(X, Y, biased), rel=1e-12)


def test_mmd_of_a_linear_kernel_is_the_distance_of_the_means() -> None:
    found = measures.mmd2(X, Y, kernels.inner, biased=True)
    assert found == pytest.approx(((X.mean(axis=0) - Y.mean(axis=0)) ** 2).sum(), rel=1e-12)


@pytest.mark.thorough
def test_the_unbiased_mmd_is_zero_on_average() -> None:
    """For equal laws; the biased one is above 0 by about 2 (1 − E k)/N."""
    rng = np.random.default_rng(1)
    draws = rng.normal(size=(400, 2, 10, 1))
    both = np.array(
        [[measures.mmd2(a, b, kernels.rbf(), VALUES, biased) for biased in (False, True)] for a, b in draws]
    )
    error = both[:, 0].std() / np.sqrt(len(both))
    assert abs(both[:, 0].mean()) < 4 * error
    assert both[:, 1].min() >= 0
    mean_k = 0.9 / np.sqrt(0.9**2 + 2)  # E exp(−d²/(2ℓ²)) for d ~ N(0, 2)
    assert both[:, 1].mean() == pytest.approx(2 * (1 - mean_k) / 10, abs=4 * both[:, 1].std() / 20)


@pytest.mark.parametrize("biased", [True, False])
def test_mmd_as_a_loss_has_torchs_gradients(biased: bool) -> None:
    torch = pytest.importorskip("torch")
    length = sp.Symbol("l", positive=True)
    n, m = sp.symbols("n m", integer=True, positive=True)
    graph = symad.trace(
        lambda x, y, ell: measures.mmd2(x, y, kernels.rbf(), {kernels.length: ell}, biased),
        [(n, 3), (m, 3), length],
    )
    value, *slopes = symad.value_and_gradient(graph)(X, Y, 0.9)
    x, y, ell = (torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (X, Y, 0.9))

    def gram(a: object, b: object) -> object:
        return torch.exp(-((a[:, None] - b[None]) ** 2).sum(-1) / (2 * ell**2))

    def mean(a: object) -> object:
        matrix = gram(a, a)
        count = len(a)
        return matrix.mean() if biased else (matrix.sum() - matrix.trace()) / (count * (count - 1))

    expected = mean(x) + mean(y) - 2 * gram(x, y).mean()
    expected.backward()
    assert value == pytest.approx(expected.item(), rel=1e-12)
    for ours, theirs in zip(slopes, (x, y, ell), strict=True):
        assert np.allclose(ours, theirs.grad.numpy(), rtol=1e-10, atol=1e-14)


def test_energy_distance_on_a_line_is_scipys() -> None:
    """SciPy's is the square root."""
    found = measures.energy_distance(X[:, :1], Y[:, :1])
    assert found == pytest.approx(scipy.stats.energy_distance(X[:, 0], Y[:, 0]) ** 2, rel=1e-10)


def test_wasserstein_of_numbers_is_scipys() -> None:
    expected = scipy.stats.wasserstein_distance(X[:, 0], Y[:, 0])
    assert measures.wasserstein(X[:, 0], Y[:, 0]) == pytest.approx(expected, rel=1e-12)


def test_sliced_wasserstein_of_a_shift() -> None:
    """A shift by s moves every projection by ⟨θ, s⟩; in the plane E|⟨θ, s⟩| = 2|s|/π."""
    points = np.random.default_rng(2).normal(size=(40, 2))
    found = measures.sliced_wasserstein(points, points + np.array([3.0, 4.0]), directions=4000)
    assert found == pytest.approx(5 * 2 / np.pi, rel=0.03)
    assert measures.sliced_wasserstein(points, points) == 0.0


def test_mode_coverage_counts() -> None:
    centers = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    samples = np.repeat(centers[:2], [60, 40], axis=0) + 0.1
    assert measures.mode_coverage(samples, centers, 1.0) == (2, 1.0)
    samples[:50] += 3.0  # ten are left at the first mode: enough; half of all lie nowhere
    assert measures.mode_coverage(samples, centers, 1.0) == (2, 0.5)
    samples[50:56] += 3.0  # four of a fair 33 are too few
    assert measures.mode_coverage(samples, centers, 1.0)[0] == 1


def test_coverage_sees_missing_modes() -> None:
    rng = np.random.default_rng(4)
    data = np.concatenate([rng.normal(size=(100, 2)), rng.normal(size=(100, 2)) + 20])
    assert measures.coverage(data, data) == 1.0
    assert 0.4 < measures.coverage(data[:100], data) <= 0.5
    assert measures.coverage(data + 1000, data) == 0.0


def test_wrong_shapes() -> None:
    with pytest.raises(symad.errors.ShapeError, match="sliced_wasserstein"):
        measures.sliced_wasserstein(X, Y[:, :2])
    with pytest.raises(symad.errors.SymadError, match="two points of each kind"):
        measures.mmd2(X[:1], Y, kernels.rbf(), VALUES)
    with pytest.raises(symad.errors.ShapeError, match="gram needs points"):
        measures.mmd2(X, Y[:, :2], kernels.rbf(), VALUES)

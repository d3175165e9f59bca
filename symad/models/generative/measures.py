"""Distances between samples and data: MMD, energy and Wasserstein distances, coverage.

For samples x (N, D) and y (M, D), rows of arrays:

    MMD²(x, y) = E k(x, x') + E k(y, y') − 2 E k(x, y),
    energy distance = 2 E|x − y| − E|x − x'| − E|y − y'|, the MMD² of the kernel −|x − y|,
    sliced Wasserstein = mean over directions θ, |θ| = 1, of W₁(⟨θ, x⟩, ⟨θ, y⟩).

The biased estimates use all pairs and are never negative; the unbiased one omits the pairs of a point
with itself and is 0 on average for equal distributions. `mmd2` also runs in traced functions, as a loss. A
number alone says little: compare it with that of real data and of a simple model.

Sources: Gretton et al., "A kernel two-sample test" (2012), equations 3 and 5; Székely and Rizzo (2013),
equation 1.1; Bonneel et al. (2015), section 3; Naeem et al., "Reliable fidelity and diversity metrics for
generative models" (2020), section 3.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import sympy

from symad.core.arrays import ArrayLike
from symad.core.given import renamed
from symad.errors import ShapeError, SymadError
from symad.models.generative import kernels
from symad.models.generative.divergences import wasserstein_quantiles

Array = np.ndarray


def mmd2(
    xs: Array,
    ys: Array,
    kernel: sympy.Expr,
    parameters: Mapping[sympy.Symbol, Array | float] | None = None,
    biased: bool = False,
) -> Array:
    """The squared maximum mean discrepancy under a kernel of `symad.models.kernels`.

    Raises:
        SymadError: fewer than two points, for the unbiased estimate.
        ShapeError: points of different dimensions.
    """
    n, m = xs.shape[0], ys.shape[0]
    if not biased and (n == 1 or m == 1):
        raise SymadError(f"the unbiased MMD needs two points of each kind at least, not {n} and {m}")
    within_x, within_y = (kernels.gram(kernel, z, None, parameters) for z in (xs, ys))
    between = kernels.gram(kernel, xs, ys, parameters).mean()
    if biased:
        return within_x.mean() + within_y.mean() - 2 * between
    pairs_x = (within_x.sum() - np.diagonal(within_x).sum()) / (n * (n - 1))
    pairs_y = (within_y.sum() - np.diagonal(within_y).sum()) / (m * (m - 1))
    return pairs_x + pairs_y - 2 * between


def median_length(xs: Array, ys: Array) -> float:
    """The median distance between different points of both sets: a common length for an RBF kernel."""
    from scipy.spatial.distance import pdist

    return float(np.median(pdist(np.concatenate([xs, ys]))))


def energy_distance(xs: ArrayLike, ys: ArrayLike) -> float:
    """2 E|x − y| − E|x − x'| − E|y − y'| over all pairs: ≥ 0, and 0 in the limit for equal distributions."""
    return float(mmd2(np.asarray(xs), np.asarray(ys), -sympy.sqrt(kernels.r2), biased=True))


def wasserstein(xs: Array, ys: Array) -> float:
    """W₁ of two sets of numbers (N,) and (M,), each number of a set with the same weight."""
    n, m = len(xs), len(ys)
    return wasserstein_quantiles(xs, np.full(n, 1 / n), ys, np.full(m, 1 / m))


def sliced_wasserstein(xs: Array, ys: Array, directions: int = 100, seed: int = 0) -> float:
    """The mean of W₁ over random directions.

    Raises:
        ShapeError: points of different dimensions.
    """
    if xs.ndim != 2 or ys.ndim != 2 or xs.shape[1] != ys.shape[1]:
        raise ShapeError(f"sliced_wasserstein needs points (N, D) and (M, D), not {xs.shape} and {ys.shape}")
    lines = np.random.default_rng(seed).standard_normal((xs.shape[1], directions))
    lines /= np.linalg.norm(lines, axis=0)
    return float(np.mean([wasserstein(a, b) for a, b in zip((xs @ lines).T, (ys @ lines).T, strict=True)]))


@renamed(centres="centers")
def mode_coverage(samples: ArrayLike, centers: Array, radius: float) -> tuple[int, float]:
    """The number of modes with enough samples near them, and the fraction of samples near a mode.

    A sample belongs to a mode within ``radius`` of its center. A mode is covered if it has at least a fifth
    of the uniform share, 1/K of the samples.
    """
    from scipy.spatial.distance import cdist

    distances = cdist(samples, centers)
    near = distances.min(axis=1) <= radius
    counts = np.bincount(distances.argmin(axis=1)[near], minlength=len(centers))
    return int((counts >= len(distances) / (5 * len(centers))).sum()), float(near.mean())


@renamed(neighbours="neighbors")
def coverage(samples: Array, data: Array, neighbors: int = 5) -> float:
    """The fraction of the data with a sample nearer than their ``neighbors``-th neighbor in the data."""
    from scipy.spatial.distance import cdist

    within = np.sort(cdist(data, data), axis=1)[:, neighbors]
    return float((cdist(data, samples).min(axis=1) <= within).mean())

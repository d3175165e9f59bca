"""Functions of arrays with branches that are not taken: a function, a point, gradient and Hessian.

The gradients and Hessians are those of what is used at the point, by hand.
"""

import numpy as np

from symad import functions as F


def cut_off(positions):
    """A pair potential, r⁻² for 0 < r < 2."""
    r = np.linalg.norm(positions[:, None] - positions[None], axis=-1)
    return np.where((r > 0) & (r < 2), r**-2.0, 0.0).sum() / 2


def cross_entropy(p):
    """PyTorch's binary cross-entropy, whose logarithms are at least −100."""
    t = np.array([0.0, 1.0, 1.0])
    return -(t * np.maximum(np.log(p), -100) + (1 - t) * np.maximum(np.log(1 - p), -100)).sum()


def picked(u):
    """Rows by index, some of them masked."""
    return np.where(np.array([True, False, True]), np.log(u)[np.array([2, 0, 1])], 0.0).sum()


def repeated(u):
    """A repeated axis under a condition on all elements."""
    weights = np.array([2.0, 3.0])
    return np.where((u > 0)[None] & (weights > 0)[:, None], np.log(u)[None] * weights[:, None], 0.0).sum()


def roots(x):
    """c ← √c · x where c > 0, else x²: from c = 0, x₁ and then x₁ x₂."""
    return F.fold(lambda c, x: np.where(np.sqrt(c) > 0, np.sqrt(c) * x, x**2), 0.0 * x[0], x)


def from_zero(x):
    """The same, with the first state as an input."""
    return F.fold(lambda c, x: np.where(np.sqrt(c) > 0, np.sqrt(c) * x, x**2), x[0], x[1:])


def clipped(x):
    """c ← max(log c, −2) + x, from c = 0."""
    return F.fold(lambda c, x: np.maximum(np.log(c), -2.0) + x, 0.0 * x[0], x)


def diagonal(*values):
    """A diagonal matrix."""
    return np.diag([float(v) for v in values])


E = float(np.exp(-1.0))

CASES = {
    "distances": (
        lambda u: np.where(np.sqrt(u**2) > 0, np.exp(-np.sqrt(u**2)), 0).sum(),
        [0.0, 1.0], [0, -E], diagonal(0, E),
    ),
    "a lower bound of a logarithm": (
        lambda u: np.maximum(np.log(u), -100).sum(), [0.0, 2.0], [0, 0.5], diagonal(0, -0.25),
    ),
    "a clipped logarithm": (
        lambda u: np.clip(np.log(u), -5, 1).sum(), [0.0, 1.5, 9.0], [0, 2 / 3, 0], diagonal(0, -4 / 9, 0),
    ),
    "a bound by another input": (
        lambda u: np.maximum(np.log(u[:2]), u[2:]).sum(), [0.0, 2.0, -1.0, 0.0], [0, 0.5, 1, 0],
        diagonal(0, -0.25, 0, 0),
    ),
    "a slice": (
        lambda u: np.where(u[1:] > 0, np.log(u)[1:], 0.0).sum() + u[0], [0.0, 0.0, 3.0], [1, 0, 1 / 3],
        diagonal(0, 0, -1 / 9),
    ),
    "rows": (picked, [0.0, 2.0, 4.0], [0, 0.5, 0.25], diagonal(0, -0.25, -1 / 16)),
    "a repeated axis": (repeated, [0.0, 2.0], [0, 2.5], diagonal(0, -1.25)),
    "the largest element": (
        lambda u: np.max(np.log(u)), [0.0, 2.0, 1.0], [0, 0.5, 0], diagonal(0, -0.25, 0),
    ),
    "the largest of each row": (
        lambda u: np.max(np.log(np.stack([u, u[::-1]])), axis=1).sum(), [0.0, 2.0], [0, 1], diagonal(0, -0.5),
    ),
    "a root of a maximum": (
        lambda u: np.sqrt(np.maximum(u, 0)).sum(), [-1.0, 4.0], [0, 0.25], diagonal(0, -1 / 32),
    ),
    "a root of the larger": (
        lambda u: np.sqrt(np.maximum(u[:1], u[1:])).sum(), [-1.0, 4.0], [0, 0.25], diagonal(0, -1 / 32),
    ),
    "a root of a sum of maxima": (
        lambda u: np.sqrt(np.sum(np.maximum(u, 0))) + u[0], [-1.0, -2.0], [1, 0], diagonal(0, 0),
    ),
    "a root of relu": (
        lambda u: np.log(1 + np.sqrt(F.relu(u))).sum(), [-1.0, 1.0], [0, 0.25], diagonal(0, -0.1875),
    ),
    "arcsin of a clip": (
        lambda u: np.arcsin(np.clip(u, -1, 1)).sum(), [2.0, 0.0, -3.0], [0, 1, 0], diagonal(0, 0, 0),
    ),
    "arccos of a clip": (
        lambda u: np.arccos(np.clip(u, -1, 1)).sum(), [2.0, 0.0, -3.0], [0, -1, 0], diagonal(0, 0, 0),
    ),
    "a root of |u| - u": (
        lambda u: np.sqrt(np.abs(u) - u).sum(), [1.0, -2.0], [0, -0.5], diagonal(0, -0.125),
    ),
    "binary cross-entropy": (cross_entropy, [0.0, 1.0, 0.5], [1, -1, -2], diagonal(1, 1, 4)),
    "not a number": (
        lambda u: np.where(np.isnan(u), 0.0, u**2).sum(), [np.nan, 3.0], [0, 6], diagonal(0, 2),
    ),
    "a loop": (roots, [2.0, 3.0], [3, 2], np.array([[0, 1], [1, 0]])),
    "a loop from an input": (
        from_zero, [0.0, 2.0, 3.0], [0, 3, 2], np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0]]),
    ),
    "a loop with a bound": (clipped, [4.0, 5.0], [0.5, 1], diagonal(-0.25, 0)),
}  # fmt: skip

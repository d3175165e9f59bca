"""Helper functions of code for JAX, instead of those of symad.numeric.targets.helpers with the same names.

Their text is copied into the code, as for those; ``np`` is jax.numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as np
from jax import lax


def _real(name: str, value: jax.Array) -> jax.Array:
    """The value as an array of real numbers; for JAX bfloat16 is one of their types."""
    array = np.asarray(value)
    if not np.issubdtype(array.dtype, np.floating) and array.dtype.kind not in "iub":
        raise TypeError(f"{name} must hold real numbers, not {array.dtype}")
    return array


def _points(values: dict[str, jax.Array], dtype: Any) -> jax.Array | list[jax.Array]:
    """Numbers, or arrays of points that broadcast together."""
    arrays = [_real(name, value) for name, value in values.items()]
    points = [array.astype(dtype) for array in np.broadcast_arrays(*arrays)]
    return points if len(points) > 1 else points[0]


def _array(
    name: str, value: jax.Array, dtype: Any, shape: tuple[Any, ...], declared: Any = None
) -> jax.Array:
    """The value as an array; None in the shape stands for any length."""
    array = _real(name, value)
    fits = array.ndim == len(shape) and all(want in (None, n) for want, n in zip(shape, array.shape))  # noqa: B905
    if not fits:
        raise ValueError(f"{name} must have shape {declared or shape}, not {array.shape}")
    return array.astype(dtype)


def _pad(values: jax.Array, shape: tuple[int, ...], index: tuple[slice, ...]) -> jax.Array:
    return np.zeros(shape, values.dtype).at[index].set(values)


def _softmax(x: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    highest = x.max(axis=axes, keepdims=True) if x.size else x.sum(axis=axes, keepdims=True)
    made = np.exp(x - np.where(np.isfinite(highest), highest, 0))
    return made / made.sum(axis=axes, keepdims=True)


def _log_softmax_tangent(p: jax.Array, t: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    t = t - np.where(p > 0.9, t, 0).sum(axis=axes, keepdims=True)
    return t - (p * t).sum(axis=axes, keepdims=True)


def _softmax_tangent(p: jax.Array, t: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    return p * _log_softmax_tangent(p, t, axes)


def _log_softmax_cotangent(p: jax.Array, t: jax.Array, axes: tuple[int, ...]) -> jax.Array:
    bar = np.where(p > 0.9, 0, t - p * t.sum(axis=axes, keepdims=True))
    return np.where(p > 0.9, -bar.sum(axis=axes, keepdims=True), bar)


def _indices(values: jax.Array, length: int) -> jax.Array:
    """Integral numbers in 0 … length − 1 as integers; ``length`` for all other values."""
    values = np.asarray(values)
    right = (values == np.floor(values)) & (values >= 0) & (values < length)
    return np.where(right, values, length).astype(int)


def _positions(values: jax.Array, low: int, length: int, axis: int, what: str) -> jax.Array:
    """Integral numbers in low … length − 1, negative ones counted from the end; NaN for all other values."""
    values = np.asarray(values)
    right = (values == np.floor(values)) & (values >= low) & (values < length)
    return np.where(right, values % length, np.nan)


def _scatter_add(indices: jax.Array, updates: jax.Array, length: int) -> jax.Array:
    shape = (length, *updates.shape[indices.ndim :])
    return np.zeros(shape, updates.dtype).at[indices].add(updates, mode="drop")


def _solve(matrix: jax.Array, right: jax.Array, axes: int) -> jax.Array:
    if axes == 1 or matrix.ndim == axes:
        return np.linalg.solve(matrix, right)
    return np.linalg.solve(matrix, right[..., None])[..., 0]


def _solve_triangular(matrix: jax.Array, right: jax.Array, lower: bool) -> jax.Array:
    if right.ndim == matrix.ndim - 1:
        solved = jax.scipy.linalg.solve_triangular(matrix, right[..., None], lower=lower)
        return solved[..., 0]
    return jax.scipy.linalg.solve_triangular(matrix, right, lower=lower)


def _lower_triangle(matrix: jax.Array, diagonal: float) -> jax.Array:
    n = matrix.shape[-1]
    return np.tril(matrix) * (1 + (diagonal - 1) * np.eye(n, dtype=matrix.dtype))


def _matrix_power_derivative(matrix: jax.Array, direction: jax.Array, exponent: int) -> jax.Array:
    n = matrix.shape[-1]
    top = np.concatenate([matrix, direction], axis=-1)
    bottom = np.concatenate([np.zeros_like(matrix), matrix], axis=-1)
    power = np.linalg.matrix_power(np.concatenate([top, bottom], axis=-2), int(exponent))
    return power[..., :n, n:]


def _newton(equations: Callable[[jax.Array], tuple[jax.Array, jax.Array]], x: jax.Array) -> jax.Array:
    """The root of a residual, from the residual and its derivative; NaN if Newton does not converge."""
    x = np.asarray(x)
    tolerance = 450 * np.finfo(x.dtype).eps

    def step(state: Any) -> Any:
        k, x, _, _ = state
        residual, slope = equations(x)
        move = np.linalg.solve(slope, residual)
        small = abs(move).max() <= tolerance * (1 + abs(x).max())

        def halved(inner: Any) -> Any:
            return inner[0] + 1, inner[1] / 2

        def worse(inner: Any) -> Any:
            grown = abs(equations(x - inner[1] * move)[0]).max() >= abs(residual).max()
            return (inner[0] < 30) & ~small & grown & (abs(residual).max() > 0)

        _, scale = lax.while_loop(worse, halved, (0, np.ones((), x.dtype)))
        done = small | (abs(residual).max() == 0)
        return k + 1, np.where(abs(residual).max() == 0, x, x - scale * move), done, done

    start = 0, x, False, False
    _, root, converged, _ = lax.while_loop(lambda s: (s[0] < 100) & ~s[2], step, start)
    return np.where(converged, root, np.nan)


def _eigen_system(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Eigenvalues as the first row, eigenvectors as columns below; from the lower triangle."""
    values, vectors = np.linalg.eigh(matrix, symmetrize_input=False)
    return np.concatenate([values[..., None, :], vectors], axis=-2)


def _cholesky(matrix: jax.Array) -> jax.Array:
    """The factor from the lower triangle, which is the one that NumPy reads."""
    return np.tril(lax.linalg.cholesky(matrix, symmetrize_input=False))


Pair = tuple["jax.Array", "jax.Array"]


def join_pairs(a: jax.Array, b: jax.Array, matrices: bool, backward: bool) -> jax.Array:
    """h_t = a_t h_{t−1} + b_t for all t, by combining pairs of steps."""

    def joined(first: Pair, second: Pair) -> Pair:
        (a1, b1), (a2, b2) = first, second
        return (a2 @ a1, a2 @ b1 + b2) if matrices else (a2 * a1, a2 * b1 + b2)

    return lax.associative_scan(joined, (a, b), reverse=backward)[1]

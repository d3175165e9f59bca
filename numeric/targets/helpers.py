"""The helper functions that printed NumPy modules may contain; see `symad.numeric.targets.pasting`.

SciPy is imported inside the functions that need it, so that importing symad stays quick.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from symad.core.dims import Shape


Array: TypeAlias = "np.ndarray"


def _array(name: str, value: Array, dtype: DTypeLike, shape: Any, declared: Any = None) -> Array:
    """The value as an array; the shape may be a number of axes, and None in it stands for any length."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, not {array.dtype}")
    if array.shape != shape and array.ndim != shape:
        fits = isinstance(shape, tuple) and array.ndim == len(shape)
        for want, n in zip(shape, array.shape) if fits else ():  # noqa: B905
            fits = fits and (want is None or want == n)
        if not fits:
            raise ValueError(f"{name} must have shape {declared or shape}, not {array.shape}")
    array = array.astype(dtype, copy=False)
    return array if shape else array[()]


def _softmax(x: Array, axes: tuple[int, ...], out: np.ndarray | None = None) -> Array:
    """exp(x)/sum(exp(x)); the largest element is subtracted first."""
    highest = x.max(axis=axes, keepdims=True) if x.size else x.sum(axis=axes, keepdims=True)
    result: Array = np.subtract(x, np.where(np.isfinite(highest), highest, 0), out)
    np.exp(result, result)
    result /= result.sum(axis=axes, keepdims=True)
    return result


def _exponentials(x: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """The largest element where it is finite, and the sum of exp(x - largest)."""
    highest = x.max(axis=axes, keepdims=True) if x.size else x.sum(axis=axes, keepdims=True)
    highest = np.where(np.isfinite(highest), highest, 0)
    return highest, np.exp(x - highest).sum(axis=axes, keepdims=True)


def _logsumexp(x: Array, axes: tuple[int, ...]) -> Array:
    highest, total = _exponentials(x, axes)
    return (highest + np.log(total)).squeeze(axes)[()]


def _log_softmax(x: Array, axes: tuple[int, ...]) -> Array:
    highest, total = _exponentials(x, axes)
    return x - highest - np.log(total)


def _log_softmax_tangent(p: Array, t: Array, axes: tuple[int, ...], out: np.ndarray | None = None) -> Array:
    """t - sum(p*t), by differences to the t of a p of almost 1: 1 - p would lose digits."""
    if p.shape != t.shape:
        p, t = np.broadcast_arrays(p, t)
    if p.size and p.max() > 0.9:
        t = out = np.subtract(t, t.sum(axis=axes, keepdims=True, where=p > 0.9), out)
    if axes == (p.ndim - 1,):
        mean = np.einsum("...i,...i->...", p, t)[..., None]
    else:
        mean = (p * t).sum(axis=axes, keepdims=True)
    return np.subtract(t, mean, out)


def _softmax_tangent(p: Array, t: Array, axes: tuple[int, ...], out: np.ndarray | None = None) -> Array:
    """p*(t - sum(p*t))."""
    out = _log_softmax_tangent(p, t, axes, out)
    out *= p
    return out


def _log_softmax_cotangent(p: Array, t: Array, axes: tuple[int, ...], out: np.ndarray | None = None) -> Array:
    """t - p*sum(t), whose sum is 0; that gives the element of a p of almost 1: 1 - p would lose digits."""
    if p.shape != t.shape:
        p, t = np.broadcast_arrays(p, t)
    out = np.subtract(t, p * _sums(t, axes), out)
    if p.size and p.max() > 0.9:
        likely = p > 0.9
        out[likely] = 0
        np.copyto(out, -_sums(out, axes), where=likely)
    return out


def _sums(t: Array, axes: tuple[int, ...]) -> Array:
    if axes == (t.ndim - 1,):
        return (t @ np.ones(t.shape[-1], t.dtype))[..., None]
    return t.sum(axis=axes, keepdims=True)


def _in_range(q: Array, low: float, high: float) -> bool:
    return not q.size or bool(low <= np.minimum.reduce(q, None) and np.maximum.reduce(q, None) <= high)


def _pad(values: Array, shape: Shape, index: NDArray[np.int64]) -> Array:
    result = np.zeros(shape, values.dtype)
    result[index] = values
    return result


def _indices(values: Array, length: int) -> Array:
    """Whole numbers in 0 … length − 1 as integers."""
    values = np.asarray(values)
    wrong = (values != np.floor(values)) | (values < 0) | (values >= length)
    if wrong.any():
        raise IndexError(f"index {values[wrong].item(0):g} is not an integer in 0..{length - 1}")
    return values.astype(np.int64)


def _positions(values: Array, low: int, length: int, axis: int, what: str) -> Array:
    """Whole numbers in low … length − 1 as integers, negative ones counted from the end."""
    values = np.asarray(values)
    right = (values == np.floor(values)) & (values >= low) & (values < length)
    if not right.all():
        raise IndexError(
            f"index {values[~right].item(0):g} is not an integer in {low}..{length - 1}: "
            f"axis {axis} of {what} has length {length}"
        )
    return values.astype(np.int64) % length


def _scatter_add(indices: Array, updates: Array, length: int) -> Array:
    updates = np.asarray(updates)
    dtype = updates.dtype if updates.dtype.kind == "f" else np.float64  # a number that is written as 1
    result = np.zeros((length, *updates.shape[indices.ndim :]), dtype)
    np.add.at(result, indices, updates)
    return result


def _solve_triangular(matrix: Array, right: Array, lower: bool) -> Array:
    if matrix.ndim == 2:
        import scipy.linalg

        solved: Array = scipy.linalg.solve_triangular(matrix, right, lower=lower)
        return solved
    return np.linalg.solve(np.tril(matrix) if lower else np.triu(matrix), right)


def _log_determinant(matrix: Array) -> Array:
    sign, logarithm = np.linalg.slogdet(matrix)
    return np.where(sign < 0, np.nan, logarithm)[()]


def _lower_triangle(matrix: Array, diagonal: float) -> Array:
    n = matrix.shape[-1]
    result = np.tril(matrix)
    result[..., range(n), range(n)] *= diagonal
    return result


def _matrix_power_derivative(matrix: Array, direction: Array, exponent: float) -> Array:
    n = matrix.shape[-1]
    top = np.concatenate([matrix, direction], axis=-1)
    bottom = np.concatenate([np.zeros_like(matrix), matrix], axis=-1)
    power = np.linalg.matrix_power(np.concatenate([top, bottom], axis=-2), int(exponent))
    return power[..., :n, n:]


def _eigen_system(matrix: Array) -> Array:
    """Eigenvalues as the first row, eigenvectors as columns below."""
    values, vectors = np.linalg.eigh(matrix)
    return np.concatenate([values[..., None, :], vectors], axis=-2)


def _newton(
    equations: Callable[[Array], tuple[Array, Array]],
    x: Array,
    solve: Callable[[Array, Array], Array] = np.linalg.solve,
) -> Array:
    """The root of a residual, from the residual and its derivative; steps are halved where it grows."""
    residual, slope = equations(x)
    tolerance = 450 * np.finfo(residual.dtype).eps
    for _ in range(100):
        move = solve(slope, residual)
        small = abs(move).max() <= tolerance * (1 + abs(x).max())
        scale = 1.0
        for _ in range(30):
            new = x - scale * move
            new_residual, new_slope = equations(new)
            if small or abs(new_residual).max() < abs(residual).max():
                break
            scale /= 2
        x, residual, slope = new, new_residual, new_slope
        if small or not residual.any():
            return x
    raise ArithmeticError(f"Newton did not converge; it stopped at x = {x}, F = {residual}")


def _stacked(point: Array, entries: list[Array], shape: tuple[int, ...]) -> Array:
    """Entries at one point as an array; at many points the axes of the points lead."""
    parts = np.broadcast_arrays(point, *entries)[1:]
    stacked = np.stack(parts, axis=-1) if parts else np.zeros((*point.shape, 0))
    return stacked.astype(point.dtype).reshape(point.shape + shape)


def _sparse(
    entries: list[tuple[Array, Array]], starts: Array, columns: Array, shape: Shape, dtype: DTypeLike
) -> Any:
    """A matrix in compressed rows; entries are (values, their places), and add up where they meet."""
    from scipy.sparse import csr_array

    data = np.zeros(len(columns), dtype)
    for values, places in entries:
        data[places] += np.ravel(values)
    return csr_array((data, columns, starts), shape=shape)


def _points(values: dict[str, Any], dtype: DTypeLike) -> Any:
    """Numbers, or arrays of points that broadcast together."""
    arrays = {name: np.asarray(value) for name, value in values.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub":
            raise TypeError(f"{name} must hold real numbers, not {array.dtype}")
    points = [array.astype(dtype)[()] for array in np.broadcast_arrays(*arrays.values())]
    return points if len(points) > 1 else points[0]


# ---- how the outermost function takes its arguments apart ----------------------------------------


Given: TypeAlias = Any
"""What a caller gives: these functions find out whether it is an array."""


def _shaped(name: str, value: Given, shape: tuple[int, ...]) -> Given:
    """The value as an array of a shape, after the axes of a batch."""
    array = np.asarray(value)
    lead = array.ndim - len(shape)
    if lead < 0 or array.shape[lead:] != shape:
        if [d for d in array.shape if d != 1] != [d for d in shape if d != 1]:
            raise TypeError(f"{name} is an array of shape {shape}, but was given one of shape {array.shape}")
        return array.reshape(shape)
    return array


def _of_points(array: Given, axes: int) -> list[Given]:
    """Arrays of points, from one where the axes of a batch lead."""
    lead = array.shape[: array.ndim - axes]
    return list(np.moveaxis(array.reshape((*lead, -1)), -1, 0))


def _entries(name: str, value: Given, shape: tuple[int, ...]) -> list[Given]:
    """Numbers, or arrays of points."""
    array = _shaped(name, value, shape)
    return _of_points(array, len(shape)) if array.ndim > len(shape) else array.ravel().tolist()


def _entries_on_device(name: str, value: Given, shape: tuple[int, ...]) -> list[Given]:
    """The same without a copy to the host."""
    array = _shaped(name, value, shape)
    each = map(array.ravel().__getitem__, range(array.size))
    return _of_points(array, len(shape)) if array.ndim > len(shape) else [*each]


def _keys(name: str, value: Given, keys: Sequence[Given]) -> None:
    given = list(value) if hasattr(value, "keys") else None
    if given is None or set(given) != set(keys):
        found = type(value).__name__ if given is None else f"one with {', '.join(map(str, given))}"
        raise TypeError(f"{name} is a dict with the keys {', '.join(map(str, keys))}, but was given {found}")


def _fields(name: str, value: Given, fields: Sequence[str]) -> None:
    given = list(value) if isinstance(value, dict) else [f for f in fields if hasattr(value, f)]
    if set(given) != set(fields):
        told = f"{type(value).__name__} with {', '.join(map(str, given)) or 'none of them'}"
        raise TypeError(f"{name} has the fields {', '.join(fields)}, but was given a {told}")


def _field(value: Given, field: str) -> Given:
    return value[field] if isinstance(value, dict) else getattr(value, field)


def _length(name: str, value: Given, count: int) -> None:
    if not isinstance(value, (list, tuple)) or len(value) != count:
        found = f"one of {len(value)}" if isinstance(value, (list, tuple)) else type(value).__name__
        raise TypeError(f"{name} is a list or tuple of {count} entries, but was given {found}")


def _axis(name: str, value: Given, axis: int) -> int:
    shape = np.shape(value)
    if len(shape) <= axis:
        raise ValueError(f"{name} has shape {shape}, without an axis {axis}")
    return shape[axis]


def _vector(name: str, value: Given, size: int) -> np.ndarray:
    array = np.asarray(value)
    if array.shape != (size,):
        told = f"{array.shape}" if array.shape else f"a {type(value).__name__}: it is one flat vector"
        raise ValueError(f"{name} must have shape ({size},), not {told}")
    return array

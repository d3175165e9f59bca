"""Helper functions of printed scalar code: of one point by `math`, of arrays of points by NumPy.

`math` raises where IEEE arithmetic gives inf or nan; such points are passed to the functions of arrays.
`symad.numeric.targets.pasting` copies the helpers into a module.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike
    from scipy.sparse import csr_array

Array: TypeAlias = "np.ndarray"

# ---- functions of numbers -----------------------------------------------------------------------


def _sign(x: float) -> float:
    return x if x != x or x == 0.0 else math.copysign(1.0, x)


def _floor(x: float) -> float:
    return float(math.floor(x))


def _ceil(x: float) -> float:
    return float(math.ceil(x))


def _where(condition: bool, a: float, b: float) -> float:
    return a if condition else b


def _logaddexp(a: float, b: float) -> float:
    if a == b:
        return a + 0.6931471805599453
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


def _sigmoid(x: float) -> float:
    if x < 0.0:
        e = math.exp(x)
        return e / (1.0 + e)
    return 1.0 / (1.0 + math.exp(-x))


def _relu(x: float) -> float:
    return 0.0 if x <= 0.0 else x


def _silu(x: float) -> float:
    return x / (1.0 + math.exp(-x))


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _gelu(x: float) -> float:
    return 0.5 * x * math.erfc(x * -0.7071067811865476)


def _logcosh(x: float) -> float:
    small = min(abs(x), 20.0)
    return math.log1p(2.0 * math.sinh(0.5 * small) ** 2) + (abs(x) - small)


def _sinc(x: float) -> float:
    return math.sin(x) / x if x else 1.0


OF_SPECIAL = ("_relu", "_silu", "_softplus", "_gelu", "_logcosh", "_sinc")
"""The functions of numbers that `symad.special` has for arrays."""


def _maximum(*values: float) -> float:
    best = values[0]
    for value in values:
        if value > best or value != value:
            best = value
    return best


def _minimum(*values: float) -> float:
    best = values[0]
    for value in values:
        if value < best or value != value:
            best = value
    return best


def _all_of(*conditions: bool) -> bool:
    return all(conditions)


def _any_of(*conditions: bool) -> bool:
    return any(conditions)


def _not(condition: bool) -> bool:
    return not condition


def _xor(*conditions: bool) -> bool:
    return sum(map(bool, conditions)) % 2 == 1


def _pack(entries: Sequence[float], shape: tuple[int, ...]) -> Array:
    return np.array(entries, dtype=np.float64).reshape(shape)


def _pack_at(entries: Sequence[float], positions: Array, shape: tuple[int, ...]) -> Array:
    packed = np.zeros(math.prod(shape))
    packed[positions] = entries
    return packed.reshape(shape)


def _sparse(entries: Sequence[float], structure: csr_array) -> csr_array:
    matrix = copy.copy(structure)
    matrix.data = np.array(entries, dtype=np.float64)
    return matrix


# ---- the same of arrays of points ---------------------------------------------------------------


def _sigmoid_of_arrays(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


def _folded(function: Callable[[Array, Array], Array], values: Sequence[Array]) -> Array:
    result = values[0]
    for value in values[1:]:
        result = function(result, value)
    return result


def _hypot_of_arrays(x: Array, y: Array) -> Array:
    """√(x² + y²); np.hypot takes twice as long for many points, and is needed where squares are no floats."""
    q = x * x + y * y
    return np.sqrt(q) if q.size > 200 and q.min() > 1e-30 and q.max() < 1e30 else np.hypot(x, y)


def _maximum_of_arrays(*values: Array) -> Array:
    return _folded(np.maximum, values)


def _minimum_of_arrays(*values: Array) -> Array:
    return _folded(np.minimum, values)


def _all_of_arrays(*conditions: Array) -> Array:
    return _folded(np.logical_and, conditions)


def _any_of_arrays(*conditions: Array) -> Array:
    return _folded(np.logical_or, conditions)


def _xor_of_arrays(*conditions: Array) -> Array:
    return _folded(np.logical_xor, conditions)


def _pack_arrays(entries: Sequence[Array], shape: tuple[int, ...]) -> Array:
    parts = np.broadcast_arrays(*entries)
    return np.stack(parts, axis=-1).reshape(parts[0].shape + shape)


def _pack_arrays_at(entries: Sequence[Array], positions: Array, shape: tuple[int, ...]) -> Array:
    if not entries:
        return np.zeros(shape)
    parts = np.stack(np.broadcast_arrays(*entries), axis=-1)
    packed = np.zeros((*parts.shape[:-1], math.prod(shape)), dtype=parts.dtype)
    packed[..., positions] = parts
    return packed.reshape(parts.shape[:-1] + shape)


def _sparse_or_dense(entries: Sequence[Array], structure: csr_array) -> csr_array | np.ndarray:
    """One point: a sparse matrix; many points: an array of dense ones."""
    values = np.stack(np.broadcast_arrays(*entries), axis=-1) if entries else np.zeros(0)
    if values.ndim == 1:
        matrix = copy.copy(structure)
        matrix.data = values
        return matrix
    places = structure.tocoo()
    dense = np.zeros((*values.shape[:-1], *structure.shape), dtype=values.dtype)
    dense[..., places.row, places.col] = values
    return dense


# ---- calls --------------------------------------------------------------------------------------


def _evaluated(
    values: Sequence[Array],
    names: Sequence[str],
    ranks: Sequence[int],
    at_point: Callable[..., Any] | None,
    at_batch: Callable[..., Any],
    dtype: DTypeLike,
) -> Any:
    """The results at any arguments: numbers, or arrays of points that broadcast together."""
    arrays = [np.asarray(v) for v in values]
    for name, array in zip(names, arrays):  # noqa: B905
        if array.dtype.kind not in "fiub":
            raise TypeError(f"{name} must hold real numbers, not {array.dtype}")
    if at_point is not None and all(v.ndim == 0 for v in arrays):
        try:
            return at_point(*[float(v) for v in arrays])
        except (ArithmeticError, ValueError):
            pass
    batch = np.broadcast_shapes(*[array.shape for array in arrays])
    with np.errstate(all="ignore"):
        result = at_batch(*[array.astype(dtype)[()] for array in arrays])
    return _batched(result, batch, iter(ranks), {}, dtype) if batch else _point(result, dtype)


def _as_float(array: Array, dtype: DTypeLike) -> Array:
    """Floats in one precision: numbers alone are doubles or integers; truth values stay."""
    return array if array.dtype.kind == "b" else array.astype(dtype, copy=False)


def _point(result: Any, dtype: DTypeLike) -> Any:
    """The results at a point: numbers, where NumPy's functions leave arrays without axes."""
    if isinstance(result, dict):
        return {key: _point(part, dtype) for key, part in result.items()}
    if isinstance(result, tuple):
        return tuple(_point(part, dtype) for part in result)
    if hasattr(result, "toarray"):
        result.data = _as_float(result.data, dtype)
        return result
    return _as_float(np.asarray(result), dtype)[()]


def _batched(
    result: Any, batch: tuple[int, ...], ranks: Iterator[int], made: dict[int, Array], dtype: DTypeLike
) -> Any:
    """The results with the axes of the batch, no two of which share memory."""
    if isinstance(result, dict):
        return {key: _batched(part, batch, ranks, made, dtype) for key, part in result.items()}
    if isinstance(result, tuple):
        return tuple(_batched(part, batch, ranks, made, dtype) for part in result)
    array = _as_float(np.asarray(result.toarray() if hasattr(result, "toarray") else result), dtype)
    shape = batch + array.shape[array.ndim - next(ranks) :]
    if array.shape != shape or id(array) in made:
        array = np.broadcast_to(array, shape).copy()
    return made.setdefault(id(array), array)


def _structure(matrix: csr_array) -> csr_array:
    """A sparse matrix whose copies share its index arrays: nobody may change them."""
    matrix.has_canonical_format = True
    matrix.indices.flags.writeable = matrix.indptr.flags.writeable = False
    return matrix

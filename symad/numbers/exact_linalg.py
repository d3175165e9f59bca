"""Linear algebra on exact, high-precision or symbolic numbers in object arrays.

Plain Gaussian elimination and Cholesky, literal and slow: the reference beside LAPACK.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import sympy

from symad.core.arrays import Number
from symad.errors import EvaluationError
from symad.numbers.dual import Dual
from symad.numbers.number_domains import divide, raise_to

Array = np.ndarray


def _over_stack(function: Callable[..., Number], *stacks: Array) -> Any:
    """Apply a function of matrices along leading axes."""
    arrays = [np.asarray(s, dtype=object) for s in stacks]
    lead = arrays[0].shape[:-2]
    if not lead:
        return function(*arrays)
    results = [function(*(a[index] for a in arrays)) for index in np.ndindex(lead)]
    first = np.asarray(results[0], dtype=object)
    out = np.empty((*lead, *first.shape), dtype=object)
    for index, result in zip(np.ndindex(lead), results, strict=True):
        out[index] = result
    return out


def _pivot(column: list[Number]) -> int | None:
    """The position of a pivot: the largest of rounded numbers, the first non-zero of exact ones."""
    values = [_value(entry) for entry in column]
    if all(isinstance(v, (float, mpmath.mpf)) for v in values):
        best = max(range(len(values)), key=lambda i: abs(values[i]))
        return best if values[best] != 0 else None
    return next((i for i, v in enumerate(values) if not _is_zero(v)), None)


def _value(entry: Number) -> Number:
    while isinstance(entry, Dual):
        entry = entry.value
    return entry


def _is_zero(value: Number) -> bool:
    value = _value(value)
    if isinstance(value, sympy.Basic):
        return bool(value.is_zero or sympy.cancel(value) == 0)
    return bool(value == 0)


def _eliminate(a: Array, b: Array) -> tuple[Array, Array, Number]:
    """Row-reduce [A | B] to upper triangular form; returns also the determinant."""
    a, b = a.copy(), b.copy()
    n = len(a)
    determinant_: int = 1
    for k in range(n):
        found = _pivot(list(a[k:, k]))
        if found is None:
            return a, b, 0 * a[0, 0]
        pivot = k + found
        if pivot != k:
            a[[k, pivot]], b[[k, pivot]] = a[[pivot, k]], b[[pivot, k]]
            determinant_ = -determinant_
        determinant_ = determinant_ * a[k, k]
        for i in range(k + 1, n):
            factor = divide(a[i, k], a[k, k])
            a[i, k:] = a[i, k:] - factor * a[k, k:]
            b[i] = b[i] - factor * b[k]
    return a, b, determinant_


def _solve(a: Array, b: Array) -> Array:
    upper, right, determinant_ = _eliminate(a, b)
    if _is_zero(determinant_):
        raise EvaluationError(f"solve: the {a.shape[0]}×{a.shape[0]} matrix is singular")
    x = np.empty_like(right)
    for i in reversed(range(len(a))):
        rest = right[i] - (upper[i, i + 1 :] @ x[i + 1 :] if i + 1 < len(a) else 0)
        x[i] = divide(rest, upper[i, i])
    return x


def solve(a: Array, b: Array) -> Array:
    """The solution X of A X = B."""
    return _over_stack(_solve, a, b)


def determinant(a: Array) -> Array:
    """The determinant by elimination; a singular matrix of Dual numbers needs no division."""
    return _over_stack(_determinant, a)


def _determinant(a: Array) -> Number:
    result = _eliminate(a, np.zeros((len(a), 0), dtype=object))[2]
    singular = any(isinstance(entry, Dual) for entry in a.flat) and _is_zero(result)
    return _berkowitz(a) if singular else result


def _berkowitz(a: Array) -> Number:
    """The determinant without division, which is right in every ring (Berkowitz 1984).

    The characteristic polynomial of each leading block, from that of the block before, by a
    Toeplitz matrix of the moments r Mᵏ s: about n⁴/4 products.
    """
    polynomial: list[int] = [1]
    for k in range(len(a)):
        moments = [1, -a[k, k]]
        vector = a[:k, k]
        for _ in range(k):
            moments.append(-(a[k, :k] @ vector))
            vector = a[:k, :k] @ vector
        polynomial = [
            sum(moments[i - j] * polynomial[j] for j in range(max(0, i - k - 1), min(i, k) + 1))
            for i in range(k + 2)
        ]
    return polynomial[-1] if len(a) % 2 == 0 else -polynomial[-1]


def _cholesky(a: Array) -> Array:
    n = len(a)
    lower = np.zeros((n, n), dtype=object)
    half = sympy.Rational(1, 2) if isinstance(a[0, 0], sympy.Basic) else 0.5
    for j in range(n):
        square = a[j, j] - sum(lower[j, k] * lower[j, k] for k in range(j))
        lower[j, j] = raise_to(square, half)
        for i in range(j + 1, n):
            rest = a[i, j] - sum(lower[i, k] * lower[j, k] for k in range(j))
            lower[i, j] = divide(rest, lower[j, j])
    return lower


def cholesky(a: Array) -> Array:
    """The lower Cholesky factor."""
    return _over_stack(_cholesky, a)


def power(a: Array, k: int) -> Any:
    """A^k by repeated squaring."""

    def one(matrix: Array) -> Array:
        base = matrix if k >= 0 else _solve(matrix, np.eye(len(matrix), dtype=int).astype(object))
        return np.linalg.matrix_power(base, abs(k))

    return _over_stack(one, a)

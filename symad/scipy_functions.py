"""Functions of SciPy and SymPy on traced values, which replace those that a traced function names.

For arrays of numbers the libraries' own functions are called.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from symad import functions
from symad.core.arrays import Array, ArrayLike, Axis
from symad.tracing.names import in_place_of
from symad.tracing.sympy_heads import stand_in


@in_place_of("scipy.special", "logsumexp")
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Array | tuple[Array, Array]:
    """log Σ b exp(a) over ``axis``, or the logarithm of its size and its sign."""
    a, weights = _array(a), 1 if b is None else _array(b)
    if b is None and not return_sign:
        return functions.logsumexp(a, axis, keepdims)
    used = a if b is None else np.where(weights == 0, -1e38, a)
    largest = functions.stop_gradient(np.max(used, axis=axis, keepdims=True))
    total = np.sum(weights * np.exp(a - largest), axis=axis, keepdims=keepdims)
    shift = largest if keepdims else np.sum(largest, axis=axis)
    if return_sign:
        return np.log(np.abs(total)) + shift, np.sign(total)
    return np.log(total) + shift


def _array(values: ArrayLike) -> Any:
    """A list of traced values as one array."""
    return functions.stack(values) if isinstance(values, (list, tuple)) else values


@in_place_of("scipy.special", "softmax")
def softmax(x: Array, axis: Axis = None) -> Array:
    """exp(x) / Σ exp(x), the sum over all elements by default, as in SciPy."""
    return functions.softmax(x, axis)


@in_place_of("scipy.special", "log_softmax")
def log_softmax(x: Array, axis: int | None = None) -> Array:
    """x − log Σ exp(x), the sum over all elements by default, as in SciPy."""
    return functions.log_softmax(x, axis)


@in_place_of("scipy.linalg", "solve_triangular")
def solve_triangular(
    a: Array, b: Array, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False, **options: Any
) -> Array:
    """The solution X of T X = B; ``overwrite_b`` and ``check_finite`` are ignored."""
    return functions.solve_triangular(a, b, trans, lower, unit_diagonal)


@in_place_of("scipy.linalg", "cho_solve")
def cho_solve(c_and_lower: tuple[Array, bool], b: Array, **options: Any) -> Array:
    """The solution X of A X = B from a Cholesky factor of A."""
    return functions.cho_solve(c_and_lower, b)


@in_place_of("scipy.linalg", "expm")
def expm(A: Array) -> Array:
    """Σ_k Aᵏ/k!."""
    return functions.expm(A)


@in_place_of("sympy.functions", "E1")
def E1(z: Array) -> Array:
    """E_1(z) = ∫_1^∞ e^(−z t)/t dt, which SymPy writes as a Python function."""
    return stand_in(sympy.expint)(1, z)

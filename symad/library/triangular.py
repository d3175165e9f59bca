"""Triangular systems and systems with a Cholesky factor, with SciPy's names and arguments."""

from __future__ import annotations

from functools import partial

from symad.core.arrays import Array
from symad.core.dims import broadcast_shapes, format_shape
from symad.core.given import numbers_only
from symad.core.graph import Node
from symad.errors import ShapeError, TraceError
from symad.ops.basic.contraction import matrix_transpose
from symad.ops.basic.shaping import broadcast_to, reshape
from symad.ops.basic.sources import constant, eye
from symad.ops.elementwise.selection import select
from symad.ops.linalg.cholesky import triangular_solve
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import condition, number

TRANSPOSED = {0: False, "N": False, 1: True, "T": True, 2: True, "C": True}


def solve_triangular(
    a: Array, b: Array, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False
) -> Array:
    """The solution X of T X = B (``trans`` 1 or "T": Tᵀ X = B), T the upper or lower triangle of A.

    Args:
        a: (..., n, n), of which one triangle is read.
        b: (n,) or (..., n, k).
        trans: 0 or "N", 1 or "T", 2 or "C".
        lower: true to read the lower triangle.
        unit_diagonal: the diagonal is taken as 1 and not read.

    Raises:
        TraceError: no such ``trans``.
        ShapeError: the shapes do not fit.

    Example:
        >>> import numpy as np
        >>> from symad import functions
        >>> T = np.array([[2.0, 0.0], [1.0, 4.0]])
        >>> functions.solve_triangular(T, np.array([2.0, 5.0]), lower=True)
        array([1., 1.])
    """
    if trans not in TRANSPOSED:
        raise TraceError(f"solve_triangular(trans={trans!r}) is not defined; use 0, 1, 'N' or 'T'")
    if not any(isinstance(v, Proxy) for v in (a, b)):
        from scipy.linalg import solve_triangular as numeric

        solve = partial(numeric, trans=trans, lower=lower, unit_diagonal=unit_diagonal)
        return numbers_only("solve_triangular", solve, a=a, b=b)
    matrix, right = number(a), number(b)
    if len(matrix.shape) < 2 or not right.shape:
        raise ShapeError(
            "solve_triangular takes a matrix and a vector or matrix, not shapes "
            f"{format_shape(matrix.shape)} and {format_shape(right.shape)}"
        )
    if unit_diagonal:
        diagonal = condition(Proxy(broadcast_to(eye(matrix.shape[-1]), matrix.shape)))
        matrix = select(diagonal, constant(1), matrix)
    if TRANSPOSED[trans]:
        matrix, lower = matrix_transpose(matrix), not lower
    return Proxy(_solved(matrix, right, lower))


def _solved(matrix: Node, right: Node, lower: bool) -> Node:
    vector = len(right.shape) == 1
    if vector:
        right = reshape(right, (right.shape[0], 1))
    lead = broadcast_shapes(matrix.shape[:-2], right.shape[:-2])
    matrix = broadcast_to(matrix, (*lead, *matrix.shape[-2:]))
    found = triangular_solve(matrix, broadcast_to(right, (*lead, *right.shape[-2:])), lower)
    return reshape(found, found.shape[:-1]) if vector else found


def cho_solve(c_and_lower: tuple[Array, bool], b: Array) -> Array:
    """The solution X of A X = B from (c, lower): a Cholesky factor c with c cᵀ = A (lower) or cᵀ c = A.

    Raises:
        TraceError: the argument is not a pair.
        ShapeError: the shapes do not fit.

    Example:
        >>> import numpy as np
        >>> from symad import functions
        >>> A = np.array([[4.0, 2.0], [2.0, 3.0]])
        >>> functions.cho_solve((np.linalg.cholesky(A), True), np.array([2.0, 1.0]))
        array([0.5, 0. ])
    """
    if not isinstance(c_and_lower, (tuple, list)) or len(c_and_lower) != 2:
        raise TraceError("cho_solve takes the pair (c, lower) and b, as scipy.linalg.cho_solve does")
    c, lower = c_and_lower
    if not any(isinstance(v, Proxy) for v in (c, b)):
        from scipy.linalg import cho_solve as numeric

        return numbers_only("cho_solve", lambda c, b: numeric((c, lower), b), c=c, b=b)
    first = solve_triangular(c, b, trans=0 if lower else 1, lower=lower)
    return solve_triangular(c, first, trans=1 if lower else 0, lower=lower)

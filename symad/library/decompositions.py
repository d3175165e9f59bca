"""QR, SVD and LU factors, pseudo-inverses, least squares and the exponential of matrices.

Each is written in terms of Cholesky factors, triangular systems, symmetric eigenvectors and products. Their
values are LAPACK's and their derivatives are known to every order; leading axes are stacks unless stated
otherwise. Signs are fixed by a convention: R has a positive diagonal, which makes QR unique and smooth.

    qr     R₁ᵀR₁ = AᵀA, Q₁ = A R₁⁻¹, and both once more with Q₁ (CholeskyQR2): to rounding for κ(A) < 10⁷;
    svd    of a square A from the eigenvectors (u, ±v)/√2 of [[0, A], [Aᵀ, 0]], eigenvalues ±σ; others by QR;
    lu     elimination with the largest pivot of each column;
    pinv   R⁻¹Qᵀ of independent columns, (pinv Aᵀ)ᵀ of independent rows;
    expm   Padé's r₁₃ of A/2ˢ with |A/2ˢ|₁ ≤ 1/4, then s squarings; its error is below 10⁻⁵⁰.

For dependent columns there is no Cholesky factor, which is an error; if singular values are equal
or 0, singular vectors have no derivative. Sources: Yamamoto et al. (2015) for CholeskyQR2; Golub & Van Loan
(2013), sections 3.4 and 8.6; Higham, "The scaling and squaring method for the matrix exponential revisited"
(2005).
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from math import factorial
from typing import Any

import numpy as np
import sympy

from symad.core.arrays import Array
from symad.core.dims import broadcast_shapes, format_shape
from symad.core.given import numbers_only, real_array
from symad.core.graph import Node
from symad.errors import ShapeError, TraceError
from symad.ops.basic.contraction import matrix_transpose
from symad.ops.basic.shaping import broadcast_to, reshape
from symad.ops.basic.sources import constant, eye
from symad.ops.elementwise.selection import select
from symad.ops.linalg.cholesky import triangular_solve
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import condition, number

# ---- triangular systems and systems with a Cholesky factor, with SciPy's names and arguments -----


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

    Returns:
        X in the shape of B.

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

    Returns:
        X in the shape of B.

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


SQUARINGS = 24
"""The exponential is computed up to |A|₁ = 2²²; beyond it is NaN."""


def _matrix(name: str, a: Array, square: bool = False) -> Array:
    a = real_array(name, "a", a)
    shape = tuple(a.shape)
    if len(shape) < 2 or (square and shape[-1] != shape[-2]):
        kind = "a square matrix" if square else "a matrix"
        raise ShapeError(f"{name} needs {kind} (..., m, n), not {format_shape(shape)}")
    return a


def _turned(a: Array) -> Array:
    return np.swapaxes(a, -1, -2)


def qr(a: Array) -> tuple[Array, Any]:
    """Q (..., m, n) with QᵀQ = I and upper triangular R (..., n, n) with a positive diagonal: A = Q R, m ≥ n.

    Returns:
        Q (..., m, n) and R (..., n, n).

    Raises:
        ShapeError: A has more columns than rows, or is not a matrix.
        LinAlgError: dependent columns.

    Example:
        >>> import numpy as np
        >>> from symad import functions
        >>> Q, R = functions.qr(np.array([[3.0, 1.0], [4.0, 2.0]]))
        >>> R.round(9)
        array([[5. , 2.2],
               [0. , 0.4]])
    """
    a = _matrix("qr", a)
    if isinstance(a.shape[-1], int) and isinstance(a.shape[-2], int) and a.shape[-1] > a.shape[-2]:
        raise ShapeError(f"qr needs as many rows as columns or more, not {format_shape(tuple(a.shape))}")
    Q, R = a, None
    for _ in range(2):
        lower = np.linalg.cholesky(_turned(Q) @ Q)
        Q = _turned(solve_triangular(lower, _turned(Q), lower=True))
        R = _turned(lower) if R is None else _turned(lower) @ R
    return Q, R


def svd(a: Array) -> tuple[Array, Array, Array]:
    """U (..., m, k), σ (..., k) descending, and V (..., n, k), k = min(m, n): A = U diag(σ) Vᵀ.

    Each pair (u, v) has the sign of LAPACK's eigenvectors. If singular values are equal, or 0, their
    vectors have no derivative, like eigenvectors.

    Returns:
        U (..., m, k), σ (..., k) and V (..., n, k); NumPy returns Vᵀ.

    Raises:
        ShapeError: A is not a matrix of known sizes.
        LinAlgError: A is not square, and its columns or rows are dependent.

    Example:
        >>> import numpy as np
        >>> from symad import functions
        >>> U, s, V = functions.svd(np.array([[0.0, 2.0], [3.0, 0.0]]))
        >>> s
        array([3., 2.])
    """
    a = _matrix("svd", a)
    m, n = a.shape[-2:]
    if not isinstance(m, int) or not isinstance(n, int):
        raise ShapeError(f"svd needs sizes that are numbers, not {format_shape(tuple(a.shape))}")
    if m < n:
        V, values, U = svd(_turned(a))
        return U, values, V
    if m > n:
        Q, R = qr(a)
        U, values, V = svd(R)
        return Q @ U, values, V
    zero = np.zeros_like(a)
    whole = np.concatenate(
        [np.concatenate([zero, a], axis=-1), np.concatenate([_turned(a), zero], axis=-1)], axis=-2
    )
    values, vectors = np.linalg.eigh(whole)
    # the vectors of the n largest eigenvalues, from the largest on
    # times √2, exactly if the values are exact
    chosen = vectors[..., :, : n - 1 : -1] * (np.sqrt(2.0) if isinstance(a, np.ndarray) else sympy.sqrt(2))
    return chosen[..., :n, :], values[..., : n - 1 : -1], chosen[..., n:, :]


def lu(a: Array) -> tuple[Array, Array, Array]:
    """The permutation p (n,) and the factors L, U with A[p] = L U; pivots are the largest of their columns.

    L has ones on its diagonal. If two candidates for a pivot are equally large, the first one is used;
    factors jump where another candidate becomes larger, and have the derivatives of their branch. A column
    without a pivot makes them NaN.

    Returns:
        p (n,), L (n, n) and U (n, n).

    Raises:
        ShapeError: A is not a single square matrix of known size.

    Example:
        >>> import numpy as np
        >>> from symad import functions
        >>> p, L, U = functions.lu(np.array([[1.0, 2.0], [4.0, 2.0]]))
        >>> U.round(9)
        array([[4. , 2. ],
               [0. , 1.5]])
    """
    a = _matrix("lu", a, square=True)
    n = a.shape[-1]
    if len(a.shape) != 2 or not isinstance(n, int):
        raise ShapeError(f"lu needs one matrix of known size, not {format_shape(tuple(a.shape))}")
    rows, U, L, order = np.arange(n), a, np.zeros_like(a), np.arange(n)
    for k in range(n):
        pivot = k + np.argmax(np.abs(U[k:, k]))
        swapped = np.where(rows == k, pivot, np.where(rows == pivot, k, rows))
        U, L = U[swapped], L[swapped]
        there = np.sum(np.where(rows == pivot, order, 0))
        order = np.where(rows == k, there, np.where(rows == pivot, order[k], order))
        factors = np.where(rows > k, U[:, k] / U[k, k], 0.0)
        U = U - factors[:, None] * U[k][None, :]
        L = L + np.where(rows == k, 1.0, factors)[:, None] * (rows == k)[None, :]
    return order, L, np.triu(U)


def pinv(a: Array) -> Array:
    """The pseudo-inverse (..., n, m) of a matrix with independent columns, or independent rows.

    Returns:
        A⁺, (..., n, m).

    Raises:
        LinAlgError: neither columns nor rows are independent.

    Example:
        >>> import numpy as np
        >>> from symad import functions
        >>> functions.pinv(np.array([[3.0], [4.0]])).round(9)
        array([[0.12, 0.16]])
    """
    a = _matrix("pinv", a)
    m, n = a.shape[-2:]
    if isinstance(m, int) and isinstance(n, int) and m < n:
        return _turned(pinv(_turned(a)))
    Q, R = qr(a)
    return solve_triangular(R, _turned(Q))


def lstsq(a: Array, b: Array) -> Array:
    """The x (n,) or (n, k) with minimum |A x − b|, and with minimum norm if A has more columns than rows.

    Returns:
        x, (n,) or (n, k).

    Raises:
        LinAlgError: neither columns nor rows of A are independent.

    Example:
        >>> import numpy as np
        >>> from symad import functions
        >>> A = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
        >>> functions.lstsq(A, np.array([1.0, 3.0, 5.0])).round(9)  # the line 1 + 2 t
        array([1., 2.])
    """
    a = _matrix("lstsq", a)
    if len(a.shape) != 2:
        raise ShapeError(f"lstsq takes one matrix, not {format_shape(tuple(a.shape))}")
    b = real_array("lstsq", "b", b)
    if not b.shape or b.shape[0] != a.shape[-2]:
        raise ShapeError(
            f"lstsq: A {format_shape(tuple(a.shape))} and b {format_shape(tuple(b.shape))} differ in "
            "their rows"
        )
    m, n = a.shape
    if isinstance(m, int) and isinstance(n, int) and m < n:
        Q, R = qr(a.T)
        return Q @ solve_triangular(R, b, trans=1)
    Q, R = qr(a)
    return solve_triangular(R, Q.T @ b)


def expm(a: Array, squarings: int | None = None) -> Array:
    """Σ_k Aᵏ/k! of a square matrix (..., n, n); NaN if |A|₁ > 2²².

    ``squarings`` is s, by default the smallest with |A/2ˢ|₁ ≤ 1/4, chosen for each matrix. A given s makes a
    graph without branches, with this error if |A|₁ ≤ 2ˢ⁻²; exp(A) exp(−A) = I is exact for each s.

    Returns:
        exp(A), (..., n, n).

    Raises:
        ShapeError: A is not square, or the number of squarings negative.

    Example:
        >>> import numpy as np
        >>> from symad import functions
        >>> functions.expm(np.array([[0.0, 1.0], [0.0, 0.0]]))  # 1 + A, as A² = 0
        array([[1., 1.],
               [0., 1.]])
    """
    a = _matrix("expm", a, square=True)
    if squarings is not None:
        if not isinstance(squarings, int) or squarings < 0:
            raise ShapeError(f"expm: squarings={squarings!r} is not an integer of at least 0")
        made = pade(a / 2**squarings)
        for _ in range(squarings):
            made = made @ made
        return made
    size = np.max(np.sum(np.abs(a), axis=-2, keepdims=True), axis=-1, keepdims=True)
    large = [size > 2.0 ** (k - 2) for k in range(SQUARINGS + 1)]
    scaled = a
    for is_large in large[:-1]:
        scaled = np.where(is_large, scaled / 2, scaled)
    made = pade(scaled)
    with np.errstate(over="ignore", invalid="ignore"):
        for is_large in large[:-1]:
            made = np.where(is_large, made @ made, made)
    return np.where(large[-1], np.nan, made)


def pade(a: Array) -> Array:
    """Padé's r₁₃(A) = p(A)/p(−A), for which r₁₃(−A) = r₁₃(A)⁻¹ and r₁₃(x) = eˣ + O(x²⁷)."""
    # Fractions are exact if the values are: with many digits the error of the series dominates.
    plain = isinstance(a, np.ndarray) and a.dtype != object
    unit: Any = float if plain else Fraction
    coefficients = [unit(Fraction(_coefficient(j), _coefficient(0))) for j in range(14)]
    square = a @ a
    identity = np.eye(a.shape[-1]) if plain else np.eye(a.shape[-1]) + 0 * a
    even, odd = (_polynomial(coefficients[k::2], square, identity) for k in (0, 1))
    odd = a @ odd
    return np.linalg.solve(even - odd, even + odd)


def _coefficient(j: int) -> int:
    """The coefficient of xʲ in the numerator of Padé's r₁₃, times 26!/13!."""
    return factorial(26 - j) // (factorial(j) * factorial(13 - j))


def _polynomial(coefficients: list[Fraction], x: Array, identity: Array) -> Array:
    """Σ_k c_k xᵏ, by Horner's rule."""
    made = coefficients[-1] * identity
    for c in reversed(coefficients[:-1]):
        made = x @ made + c * identity
    return made

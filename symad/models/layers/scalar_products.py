"""Scalar products: of vectors by a matrix, of functions by an integral, of functions by a kernel.

    ⟨x, y⟩_M = xᵀMy,   M = LᵀL with L upper triangular:   ⟨x, y⟩_M = (Lx)ᵀ(Ly),
    ⟨f, g⟩ = ∫_a^b f(t) g(t) dt,
    ⟨Σ_i α_i k(x_i, ·), Σ_j β_j k(y_j, ·)⟩_k = αᵀKβ,   K_ij = k(x_i, y_j).

The last one is the product of sentences if x_i are words: a word is k(x_i, ·), a sentence a weighted sum of
words. Its reproducing property is ⟨f, k(x, ·)⟩_k = f(x). Source: Schölkopf and Smola, "Learning with Kernels"
(2002), section 2.2.
"""

from __future__ import annotations

import numpy as np
import sympy

from symad.core.arrays import Array
from symad.errors import ShapeError, SymadError


def product(x: Array, matrix: Array, y: Array) -> Array:
    """⟨x, y⟩_M of vectors x, y (n,) and M (n, n): arrays or traced values."""
    return x @ (matrix @ y)


def coordinates(matrix: Array) -> Array:
    """L (n, n), upper triangular with M = LᵀL: in the coordinates Lx the product of M is the plain one.

    It is the transpose of the factor that LAPACK and `numpy.linalg.cholesky` return.

    Raises:
        ShapeError: a matrix that is not square.
        SymadError: a matrix that is not symmetric, or not positive definite; the message gives its smallest
            eigenvalue.
    """
    m = np.asarray(matrix, dtype=np.float64)
    if m.ndim != 2 or m.shape[0] != m.shape[1]:
        raise ShapeError(f"a scalar product needs a square matrix, not one of shape {m.shape}")
    if not np.allclose(m, m.T, rtol=1e-12, atol=0):
        apart = float(np.abs(m - m.T).max())
        raise SymadError(f"a scalar product needs a symmetric matrix; M and Mᵀ differ by {apart:.3e}")
    try:
        factor: Array = np.linalg.cholesky(m).T
    except np.linalg.LinAlgError:
        low = float(np.linalg.eigvalsh(m)[0])
        raise SymadError(
            f"the matrix gives no scalar product: its smallest eigenvalue is {low:.3e}; add more than "
            f"{abs(low):.1e} to its diagonal (jitter)"
        ) from None
    return factor


def of_functions(f: sympy.Expr, g: sympy.Expr, t: sympy.Symbol, a: Array, b: Array) -> sympy.Expr:
    """∫_a^b f g dt, by SymPy."""
    return sympy.integrate(f * g, (t, a, b))


def of_sentences(weights: Array, gram: Array, others: Array) -> Array:
    """αᵀKβ for sentences α (N,) and β (M,) and the kernel matrix K (N, M) of their words."""
    return weights @ (gram @ others)


def spectrum(word: str, length: int) -> dict[str, int]:
    """How often each string of a length occurs in a word: its nonzero features in alphabet^length.

    Source: Leslie, Eskin, Noble, "The spectrum kernel" (2002), section 2.
    """
    found: dict[str, int] = {}
    for k in range(len(word) - length + 1):
        part = word[k : k + length]
        found[part] = found.get(part, 0) + 1
    return found


def spectrum_gram(words: list[str], length: int) -> Array:
    """The kernel matrix Σ_s (count of s in x)(count of s in y), from the nonzero features alone."""
    features = [spectrum(word, length) for word in words]
    return np.array([[sum(n * b.get(s, 0) for s, n in a.items()) for b in features] for a in features], float)

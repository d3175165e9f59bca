"""Newton's direction for Hessians that need not be positive definite: dense, banded or sparse.

The direction minimizes ⟨g, p⟩ + ½⟨p, (H + E) p⟩ with E = shift S⁻² and S = |diag H|^(−1/2). The shift is 0
for a positive definite H, else a value for which S H S + shift I has a Cholesky factor. Because of the scale
S the choice does not depend on the units of the unknowns. Source: Nocedal and Wright, "Numerical
Optimization" (2006), algorithm 3.3, applied to the scaled matrix.

A sparse matrix is factored as a band if the band is narrow, with its rows in Cuthill and McKee's order, and
by SuperLU otherwise: with pivots from the diagonal SuperLU computes L D Lᵀ, and the signs of D are those of
the eigenvalues (Sylvester).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cho_solve_banded, cholesky_banded

from symad.core.arrays import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Vector = np.ndarray
Solve = Callable[[Vector], Vector]

NARROW = 64
"""Matrices with at most this many diagonals below the main one are factored as a band."""


class Directions:
    """Newton's directions for Hessians of one sparsity structure, which is analyzed once."""

    def __init__(self) -> None:
        """The structure is analyzed with the first Hessian."""
        self._sparse: SparseFactors | None = None

    def __call__(self, hessian: Array, gradient: Vector) -> tuple[Vector, bool]:
        """The minimum of the modified model, and whether the Hessian needed no modification."""
        if isinstance(hessian, np.ndarray):
            factor, scale, shift = modified_cholesky(hessian)
            return -cho_solve(factor, gradient / scale, check_finite=False) / scale, shift == 0
        if self._sparse is None:
            self._sparse = SparseFactors(hessian)
        solve, scale, shift = self._sparse.modified(hessian)
        return -solve(gradient / scale) / scale, shift == 0


def modified_cholesky(hessian: Vector) -> tuple[Any, Vector, float]:
    """The factor of S (H + E) S, its scale S⁻¹, and the shift of a dense H."""
    diagonal = np.diag(hessian)
    scale = _scale(diagonal, hessian)
    scaled = hessian / np.outer(scale, scale)

    def factor(shift: float) -> Any:
        try:
            moved = scaled + shift * np.eye(len(scale)) if shift else scaled
            return cho_factor(moved, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return None

    made, shift = _first_definite(factor, diagonal / scale**2)
    return made, scale, shift


def _scale(diagonal: Vector, entries: Vector) -> Vector:
    """S⁻¹ = |diag H|^½, with entries bounded away from zero."""
    size = np.abs(entries).max(initial=0.0) or 1.0
    found: Vector = np.sqrt(np.maximum(np.abs(diagonal), 1e-14 * size))
    return found


def _first_definite(factor: Callable[[float], Any], diagonal: Vector) -> tuple[Any, float]:
    """The factor and the shift of the first shifted matrix that has a factor."""
    lowest = float(diagonal.min(initial=1.0))
    shift = 0.0 if lowest > 0 else 1e-3 - lowest
    while (made := factor(shift)) is None:
        shift = max(2 * shift, 1e-3)
    return made, shift


class SparseFactors:
    """Factors of symmetric matrices of one sparsity pattern, with all entries stored."""

    def __init__(self, matrix: csr_array) -> None:
        """Find an order of the rows, and the places of the entries in it."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        self.n = matrix.shape[0]
        columns = np.asarray(matrix.indices, dtype=np.int64)
        rows = np.repeat(np.arange(self.n), np.diff(matrix.indptr))
        self.rows, self.columns, self.indptr = rows, columns, matrix.indptr
        self.on_diagonal = np.flatnonzero(rows == columns)
        ones = csr_array((np.ones(len(columns)), matrix.indices, matrix.indptr), shape=matrix.shape)
        natural = int(np.abs(rows - columns).max(initial=0))
        order = np.arange(self.n)
        if natural > 1:
            order = np.asarray(reverse_cuthill_mckee(ones, symmetric_mode=True), dtype=np.int64)
        place = np.empty(self.n, np.int64)
        place[order] = np.arange(self.n)
        self.order, i, j = order, place[rows], place[columns]
        self.width = int((i - j).max(initial=0))
        self.below = np.flatnonzero(i >= j)
        self.in_band = ((i - j) * self.n + j)[self.below]

    def modified(self, matrix: csr_array) -> tuple[Solve, Vector, float]:
        """A solver of the scaled and shifted system, the scale S⁻¹, and the shift."""
        entries = matrix.data
        diagonal = np.zeros(self.n)
        diagonal[self.rows[self.on_diagonal]] = entries[self.on_diagonal]
        scale = _scale(diagonal, entries)
        scaled = entries / scale[self.rows] / scale[self.columns]
        factor = self._banded if self.width <= NARROW else self._general
        solve, shift = _first_definite(lambda shift: factor(scaled, shift), diagonal / scale**2)
        return solve, scale, shift

    def _banded(self, entries: Vector, shift: float) -> Solve | None:
        band = np.zeros((self.width + 1, self.n))
        band.reshape(-1)[self.in_band] = entries[self.below]
        band[0] += shift
        try:
            lower = cholesky_banded(band, overwrite_ab=True, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return None

        def solve(b: Vector) -> Vector:
            x = np.empty_like(b)
            x[self.order] = cho_solve_banded((lower, True), b[self.order], check_finite=False)
            return x

        return solve

    def _general(self, entries: Vector, shift: float) -> Solve | None:
        from scipy.sparse import csc_array, diags_array
        from scipy.sparse.linalg import splu

        matrix = csc_array((entries, self.columns, self.indptr), shape=(self.n, self.n))
        if shift:
            matrix = (matrix + shift * diags_array(np.ones(self.n))).tocsc()
        try:
            lu = splu(matrix, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        except RuntimeError:  # exactly singular
            return None
        symmetric = np.array_equal(lu.perm_r, lu.perm_c)
        definite = symmetric and bool((lu.U.diagonal() > 0).all())
        return lu.solve if definite else None

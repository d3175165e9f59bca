"""Sums over components σ = Σ_k g(x_k, y_k, θ_k) on blocks of point pairs, and their cotangents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy as sp
from scipy.spatial.distance import cdist

from symad.numeric.pairs.pair_functions import PairFunction, X, Y
from symad.numeric.pairs.stable_sympy import program

Array = Any


class Term:
    """Sum number r of a pair function, with the values of the parameter entries."""

    def __init__(self, function: PairFunction, r: int, entries: Sequence[float]) -> None:
        self.dimension = function.dimension
        self.term = function.sums[r].term
        self.values = dict(zip(function.entries, entries, strict=True))
        self.vectors = [p for p in function.parameters if self.term.has(p.component)]
        self.entries = [s for s in function.entries if self.term.has(s)]
        components = [p.component for p in self.vectors]
        self.symbols = (X, Y, *components, *self.entries)
        slopes = [function.term_partial(r, s) for s in (X, Y)]
        partials = [function.term_partial(r, s) for s in (*components, *self.entries)]
        self.value = program([self.term], self.symbols)
        self.slope = program(slopes, self.symbols)
        self.theta = program(partials, self.symbols)
        self.affine = [_affine(s) for s in slopes]

    def inputs(self, x: Array, y: Array, k: int) -> list[Array]:
        """The arguments of the programs for component k."""
        local = [self.values[p.symbols[k]] for p in self.vectors]
        return [x[:, k, None], y[None, :, k], *local, *(self.values[s] for s in self.entries)]

    def total(self, x: Array, y: Array) -> Array:
        """σ for every pair of a block, (rows, columns)."""
        if self.term == X * Y:
            return x @ y.T
        if sp.expand(self.term - (X - Y) ** 2) == 0:
            return cdist(x, y, "sqeuclidean").astype(x.dtype, copy=False)
        total = np.zeros((len(x), len(y)), x.dtype)
        for k in range(self.dimension):
            total += self.value(*self.inputs(x, y, k))[0]
        return total

    def cotangents(
        self, c: Array, x: Array, y: Array
    ) -> tuple[Array, Array, dict[sp.Symbol, float]]:
        """Σ_j c_ij ∂g/∂x_k, Σ_i c_ij ∂g/∂y_k, and Σ_ij c_ij ∂g/∂θ by entry, for one block."""
        if all(self.affine):
            x_bar = self._affine_sum(0, c, x, y)
            y_bar = self._affine_sum(1, c.T, y, x)
        else:
            x_bar, y_bar = np.zeros_like(x), np.zeros_like(y)
            for k in range(self.dimension):
                dx, dy = self.slope(*self.inputs(x, y, k))
                x_bar[:, k], y_bar[:, k] = (c * dx).sum(axis=1), (c * dy).sum(axis=0)
        entries: dict[sp.Symbol, float] = {}
        for k in range(self.dimension) if self.vectors or self.entries else ():
            names = [*(p.symbols[k] for p in self.vectors), *self.entries]
            for name, value in zip(names, self.theta(*self.inputs(x, y, k)), strict=True):
                entries[name] = entries.get(name, 0.0) + float(np.sum(c * value, dtype=np.float64))
        return x_bar, y_bar, entries

    def _affine_sum(self, which: int, c: Array, own: Array, other: Array) -> Array:
        """Σ_j c_ij (α own_k + β other_k + γ) by one matrix product.

        Where α = −β the points are first moved near the origin, so that close points lose nothing.
        """
        form = self.affine[which]
        assert form is not None
        coefficients = program(form, self.symbols)
        zero = np.zeros((1, self.dimension))
        rows = [coefficients(*self.inputs(zero, zero, k)) for k in range(self.dimension)]
        of_x, of_y, gamma = np.array([[np.ravel(v)[0] for v in r] for r in rows], own.dtype).T
        alpha, beta = (of_x, of_y) if which == 0 else (of_y, of_x)
        if (alpha == -beta).all():
            center = own.mean(axis=0)
            own, other = own - center, other - center
        return c.sum(axis=1)[:, None] * (alpha * own + gamma) + beta * (c @ other)


def _affine(slope: sp.Expr) -> tuple[sp.Expr, sp.Expr, sp.Expr] | None:
    """(α, β, γ) with slope = α X + β Y + γ, or None if it is not affine in X and Y."""
    if not slope.is_polynomial(X, Y):
        return None
    polynomial = sp.Poly(slope, X, Y)
    if polynomial.total_degree() > 1:
        return None
    return tuple(polynomial.coeff_monomial(m) for m in (X, Y, 1))

"""Sampling from distributions: location and scale, inversion, and the leapfrog map of Hamiltonian sampling.

    X = μ + σ Z;      X = F⁻¹(U), U uniform in (0, 1);
    H(q, p) = −log π(q) + |p|²/2,   leapfrog: p ← p + (h/2) ∇log π(q), q ← q + h p, p ← p + (h/2) ∇log π(q).

A leapfrog step preserves volume (as each of its three shears does), is its own inverse after p ← −p, and
changes H by O(h³); accepting its result with probability min(1, exp(−ΔH)) preserves π exactly. One step of it
is Langevin's proposal q + (h²/2) ∇log π(q) + h p, and exp(−ΔH) its Metropolis–Hastings ratio.

The functions act on SymPy matrices, on arrays and in traced functions alike: a proof about the formula
holds for the code that runs. Sources: Devroye, "Non-Uniform Random Variate Generation" (1986), section II.2;
Neal, "MCMC using Hamiltonian dynamics" (2011), equations 2.6, 2.13, 2.28-2.30 and section 5.2; Roberts and
Tweedie, "Exponential convergence of Langevin distributions" (1996).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy

from symad.core.arrays import Array
from symad.derivatives.jacobian import gradient
from symad.errors import SymadError
from symad.tracing import to_sympy, trace

Force = Callable[[Any], Array]
"""A function that maps a position to ∇ log π there."""


def location_scale(location: sympy.Expr, scale: sympy.Expr, noise: sympy.Expr) -> sympy.Expr:
    """μ + σ Z: for standard noise a sample of location μ and scale σ, with derivatives 1 and Z by them."""
    return location + scale * noise


def quantile(cdf: sympy.Expr, x: sympy.Symbol, u: sympy.Symbol) -> sympy.Expr:
    """F⁻¹(u) as an expression, for a distribution function F(x) that SymPy can invert.

    Raises:
        SymadError: no closed inverse was found; `symad.numeric.solvers.inversion.invert` computes it.
    """
    try:
        found = sympy.solve(sympy.Eq(cdf, u), x)
    except NotImplementedError:
        found = []
    for candidate in found:
        if _inverts(cdf, x, u, candidate):
            return candidate
    raise SymadError(
        f"SymPy finds no inverse of {cdf} in {x}; symad.numeric.solvers.inversion.invert computes its values"
    )


def _inverts(cdf: sympy.Expr, x: sympy.Symbol, u: sympy.Symbol, candidate: sympy.Expr) -> bool:
    """True if F(candidate(u)) = u, real and of x's sign, at some levels, the parameters 3/4, 5/4, ..."""
    others = sorted((cdf.free_symbols | candidate.free_symbols) - {x, u}, key=str)
    point = {s: sympy.Rational(3 + 2 * k, 4) for k, s in enumerate(others)}
    for level in (sympy.Rational(1, 9), sympy.Rational(4, 9), sympy.Rational(8, 9)):
        at = candidate.subs({**point, u: level})
        back = cdf.subs(point).subs(x, at)
        number = at.evalf(30)
        foreign = (x.is_nonnegative and number < 0) or (x.is_nonpositive and number > 0)
        if not number.is_real or foreign or not (abs((back - level).evalf(30)) < sympy.Float(10) ** -25):
            return False
    return True


def force_of(log_density: sympy.Expr, position: Sequence[sympy.Symbol]) -> Force:
    """∇ log π as a function of a SymPy column of positions."""
    slopes = to_sympy(gradient(trace(log_density, list(position)), list(position)))

    def force(q: list[sympy.Symbol] | sympy.MatrixBase) -> sympy.MatrixBase:
        return sympy.Matrix([s.subs(dict(zip(position, q, strict=True)), simultaneous=True) for s in slopes])

    return force


def leapfrog(
    force: Force, q: Array, p: Array, step: float | sympy.Expr, leaps: int = 1
) -> tuple[Array, Array]:
    """(q, p) after a number of leapfrog steps; the half kicks between two steps are combined."""
    p = p + step / 2 * force(q)
    for k in range(leaps):
        q = q + step * p
        p = p + (step if k + 1 < leaps else step / 2) * force(q)
    return q, p


def hamiltonian(log_density: Array | sympy.Expr, p: Array | sympy.MatrixBase) -> Array | sympy.Expr:
    """H = −log π(q) + |p|²/2, from the value of log π(q); the squares are added over the last axis."""
    if isinstance(p, sympy.MatrixBase):
        return -log_density + p.dot(p) / 2
    return -log_density + (p * p).sum(axis=-1) / 2


def langevin_log_ratio(
    log_density: sympy.Expr, position: Sequence[sympy.Symbol], end: sympy.MatrixBase, step: sympy.Expr
) -> sympy.Expr:
    """log [π(y) N(x; y + (h²/2) ∇log π(y), h²) / (π(x) N(y; x + (h²/2) ∇log π(x), h²))], from x to y."""
    force, start, end = force_of(log_density, position), sympy.Matrix(position), sympy.Matrix(end)
    there = log_density.subs(dict(zip(position, end, strict=True)), simultaneous=True)
    forth = end - start - step**2 / 2 * force(start)
    back = start - end - step**2 / 2 * force(end)
    return there - log_density - (back.dot(back) - forth.dot(forth)) / (2 * step**2)

"""The gamma function's family: its logarithm and derivatives, factorials, beta and incomplete functions."""

from __future__ import annotations

import numpy as np

from symad.core.arrays import Array, Number


def loggamma(x: Array | float) -> Array | float:
    """Log Γ(x) for x > 0, NaN elsewhere: SymPy's function is complex there."""
    from scipy.special import gammaln

    return np.where(np.asarray(x) > 0, gammaln(x), np.nan)[()]


def polygamma(order: Array | float, x: Array | float) -> Array | float:
    """The derivative of the digamma function of integer order ≥ 0, on the whole real line.

    Negative x by reflection, ψ_n(x) = (−1)^n ψ_n(1 − x) − π d^n/dx^n cot(πx) (DLMF 5.15.6): SciPy's Hurwitz
    zeta is only defined at x > 0. The derivatives of the cotangent are polynomials in it.
    """
    from math import copysign, floor, isfinite, pi, tan

    from scipy import special

    order_, x_ = np.asarray(order), np.asarray(x, dtype=float)
    if np.all(order_ == 0):
        return special.digamma(x)
    if np.all(x_ > 0):
        return special.polygamma(order_, x_)[()]

    def one(n: float, v: float) -> float:
        if v > 0:
            return float(special.polygamma(n, v))
        if not isfinite(v):
            return float("nan")
        if v == floor(v):  # a pole: odd orders grow to +∞ on both sides
            return float("inf") if n % 2 else float("nan")
        r = v - floor(v + 0.5)
        c = 1 / tan(pi * r) if abs(r) < 0.25 else copysign(tan(pi * (0.5 - abs(r))), r)
        powers = [0, 1]  # of c; d/dx c^k = −π k (c^(k−1) + c^(k+1))
        for _ in range(int(n)):
            slope = [k * a for k, a in enumerate(powers)][1:]
            powers = [-p - q for p, q in zip([*slope, 0, 0], [0, 0, *slope], strict=True)]
        steep = 0.0
        for a in reversed(powers):
            steep = steep * c + a
        return float((-1) ** int(n) * special.polygamma(n, 1 - v) - pi ** (n + 1) * steep)

    return np.vectorize(one, otypes=[float])(order_, x_)[()]


def factorial(x: Array | float) -> Array | float:
    """Γ(x + 1)."""
    from scipy.special import gamma

    return gamma(np.add(x, 1.0))


def beta(x: Array | float, *y: Array | float) -> Array | float:
    """B(x, y), and B(x, x) of one argument."""
    from scipy.special import beta as of_two

    return of_two(x, *(y or (x,)))


def lowergamma(s: Array | float, x: Array | float) -> Array | float:
    """γ(s, x) = ∫_0^x t^(s−1) e^(−t) dt for s > 0, x ≥ 0; NaN elsewhere."""
    from scipy.special import gamma, gammainc

    return np.where(np.greater(s, 0), gammainc(s, x) * gamma(s), np.nan)[()]


def uppergamma(s: Array | float, x: Array | float) -> Array | float:
    """Γ(s, x) = ∫_x^∞ t^(s−1) e^(−t) dt for x ≥ 0; s ≤ 0 by mpmath."""
    from scipy.special import gamma, gammaincc

    if np.all(np.greater(s, 0)):
        return gammaincc(s, x) * gamma(s)
    import mpmath

    def one(a: float, v: float) -> float:
        return float(mpmath.gammainc(a, v)) if v > 0 else float("inf") if v == 0 else float("nan")

    return np.vectorize(one, otypes=[float])(s, x)[()]


def betainc(a: Number, b: Number, low: Number, high: Number) -> Number:
    """∫_low^high t^(a−1) (1 − t)^(b−1) dt within 0 ≤ t ≤ 1, for a, b > 0."""
    from scipy.special import beta, betainc

    return beta(a, b) * (betainc(a, b, high) - betainc(a, b, low))


def betainc_regularized(a: Number, b: Number, low: Number, high: Number) -> Number:
    """The same over B(a, b)."""
    from scipy.special import betainc

    return betainc(a, b, high) - betainc(a, b, low)

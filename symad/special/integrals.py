"""The gamma function's family, integrals without a closed form, Lambert's W, polylogarithms, polynomials.

Logarithms and derivatives of the gamma function, factorials, beta and incomplete functions; orthogonal
polynomials; all on arrays.
"""

from __future__ import annotations

import math

import numpy as np

from symad.core.arrays import Array, Number


def expint(order: Number, x: Number) -> Number:
    """E_ν(x) = ∫_1^∞ e^(−x t) t^(−ν) dt for x > 0; orders other than integers ≥ 0 by mpmath."""
    from scipy.special import expn

    order_, x_ = np.asarray(order, dtype=float), np.asarray(x, dtype=float)
    if np.all((order_ >= 0) & (order_ == np.floor(order_))):
        return expn(order_.astype(np.int64), x_)[()]
    import mpmath

    def one(a: float, v: float) -> float:
        return float(mpmath.expint(a, v)) if v > 0 else float("nan")

    return np.vectorize(one, otypes=[float])(order_, x_)[()]


def sine_integral(x: Array | float) -> Array | float:
    """Si(x) = ∫_0^x sin(t)/t dt."""
    from scipy.special import sici

    return sici(x)[0]


def cosine_integral(x: Array | float) -> Array | float:
    """Ci(x) for x ≥ 0; NaN elsewhere: SymPy's function is complex there."""
    from scipy.special import sici

    return np.where(np.less(x, 0), np.nan, sici(x)[1])[()]


def sinh_integral(x: Number) -> Number:
    """Shi(x)."""
    from scipy.special import shichi

    return shichi(x)[0]


def cosh_integral(x: Array | float) -> Array | float:
    """Chi(x) for x ≥ 0; NaN elsewhere: SymPy's function is complex there."""
    from scipy.special import shichi

    return np.where(np.less(x, 0), np.nan, shichi(x)[1])[()]


def fresnels(x: Number) -> Number:
    """Fresnel integral S."""
    from scipy.special import fresnel

    return fresnel(x)[0]


def fresnelc(x: Number) -> Number:
    """Fresnel integral C."""
    from scipy.special import fresnel

    return fresnel(x)[1]


def lambertw(x: Array | float, branch: int = 0) -> Array | float:
    """Lambert's W on the real line; NaN where it is complex."""
    from scipy.special import lambertw as complex_lambertw

    w = complex_lambertw(x, np.asarray(branch, dtype=int)[()])
    return np.where(np.abs(w.imag) > 0, np.nan, w.real)[()]


def polylog(order: Number, x: Number) -> Number:
    """Li_s(x) = Σ_k x^k / k^s, continued to x ≤ 1; the orders 1, 0 and 2 in closed form, others by mpmath."""
    from scipy.special import spence

    order_, x_ = np.asarray(order, dtype=float), np.asarray(x, dtype=float)
    if np.all(order_ == 2):
        return spence(1 - x_)[()]
    if np.all(order_ == 1):
        return -np.log1p(-x_)
    if np.all(order_ == 0):
        return x_ / (1 - x_)
    import mpmath

    def one(s: float, v: float) -> float:
        inside = -math.inf < v < 1  # mpmath does not end at −∞ or NaN
        value = mpmath.polylog(s, v) if inside else mpmath.zeta(s) if v == 1 and s > 1 else mpmath.nan
        return float(mpmath.re(value))

    return np.vectorize(one, otypes=[float])(order_, x_)[()]


def hermite(n: Array | float, x: Array | float) -> Array | float:
    """The Hermite function H_n: a polynomial for integers n ≥ 0, which may be floats, else by mpmath."""
    from scipy.special import eval_hermite

    degree = np.asarray(n, dtype=float)
    whole = (degree == np.floor(degree)) & (degree >= 0)
    value = eval_hermite(np.where(whole, degree, 0).astype(np.int64), x)
    if np.all(whole):
        return value
    import mpmath

    other = np.vectorize(lambda a, v: float(mpmath.hermite(a, v)), otypes=[float])(n, x)
    return np.where(whole, value, other)[()]


def laguerre(n: Number, x: Number) -> Number:
    """The Laguerre function L_n; degrees n ≥ 0 by the recurrence: SciPy's series loses digits with n x."""
    from scipy.special import eval_laguerre

    degree = np.asarray(n, dtype=float)
    whole = (degree == np.floor(degree)) & (degree >= 0)
    value = eval_laguerre(np.where(whole, degree, 0).astype(np.int64), x)
    return value if np.all(whole) else np.where(whole, value, eval_laguerre(degree, x))[()]


def assoc_legendre(n: Number, m: Number, x: Number) -> Number:
    """Associated Legendre functions of degree n and order m, with the phase (−1)^m."""
    from scipy.special import lpmv

    return lpmv(m, n, x)


# ---- the gamma function's family -----------------------------------------------------------------


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

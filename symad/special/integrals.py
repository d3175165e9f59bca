"""Integrals without a closed form, Lambert's W and polylogarithms, and orthogonal polynomials, on arrays."""

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

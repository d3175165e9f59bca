"""Exponential, trigonometric, hyperbolic and Fresnel integrals."""

from __future__ import annotations

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

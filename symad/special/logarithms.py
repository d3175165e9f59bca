"""Functions related to the logarithm: Lambert's W, and polylogarithms."""

from __future__ import annotations

import math

import numpy as np

from symad.core.arrays import Array, Number


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

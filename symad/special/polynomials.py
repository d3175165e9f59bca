"""Orthogonal polynomials, and the functions that extend them to other degrees."""

from __future__ import annotations

import numpy as np

from symad.core.arrays import Array, Number


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

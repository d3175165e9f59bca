"""Sums, products and integrals whose ranges are known at run time only, on floats and arrays.

``term(i, *parameters)`` is the summand or integrand on arrays of i; bounds and parameters are broadcast.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symad.core.arrays import Array, Number


def summed(term: Callable[..., Array | float], *values: Number) -> Number:
    """Σ_{i=low}^{high} term(i, ...) for values low, high, ...; −Σ_{i=high+1}^{low−1} where high < low."""
    return np.vectorize(lambda *v: _accumulated(term, np.add, *v), otypes=[float])(*values)[()]


def multiplied(term: Callable[..., Array | float], *values: Number) -> Number:
    """Π_{i=low}^{high} term(i, ...) for values low, high, ...; 1/Π_{i=high+1}^{low−1} where high < low."""
    return np.vectorize(lambda *v: _accumulated(term, np.multiply, *v), otypes=[float])(*values)[()]


def _accumulated(
    term: Callable[..., Array | float], ufunc: np.ufunc, low: float, high: float, *parameters: float
) -> float:
    if not (np.isfinite(low) and np.isfinite(high)):
        return float("nan")
    if low != int(low) or high != int(high):
        raise ValueError(f"the bounds {low:g} and {high:g} of a sum or product are not whole numbers")
    backwards = high < low - 1
    first, last = (int(high) + 1, int(low) - 1) if backwards else (int(low), int(high))
    total = float(ufunc.identity)
    for start in range(first, last + 1, 65536):
        i = np.arange(start, min(start + 65536, last + 1), dtype=float)
        with np.errstate(all="ignore"):
            total = float(ufunc(total, ufunc.reduce(np.broadcast_to(term(i, *parameters), i.shape))))
    if not backwards:
        return total
    return -total if ufunc is np.add else float(np.true_divide(1, total))


def integrated(term: Callable[..., Array | float], *values: Number) -> Number:
    """∫_low^high term(x, ...) dx for values low, high, ..., also infinite; NaN where it does not converge.

    By adaptive Gauss–Kronrod rules (QUADPACK, Piessens et al. 1983). A value counts where its estimated error
    is below 1e-8 of it, or below 1e-12 of ∫|term|; a peak between all points that are tried is missed.
    """
    return np.vectorize(lambda *v: _quadrature(term, *v), otypes=[float])(*values)[()]


def _quadrature(term: Callable[..., Array | float], low: float, high: float, *parameters: float) -> float:
    from scipy.integrate import quad

    if np.isnan(low) or np.isnan(high):
        return float("nan")

    def value_at(x: float) -> Array | float:
        return term(np.float64(x), *parameters)

    with np.errstate(all="ignore"):
        value, error, *_ = quad(value_at, low, high, (), 1, 0.0, 1e-13, 200)
        if error <= 1e-8 * abs(value):
            return float(value)
        size, _, *_ = quad(lambda x: abs(value_at(x)), low, high, (), 1, 0.0, 1e-3, 200)
        return float(value) if error <= 1e-12 * abs(size) else float("nan")

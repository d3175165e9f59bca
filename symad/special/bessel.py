"""Modified and spherical Bessel functions, and Airy functions."""

from __future__ import annotations

import numpy as np

from symad.core.arrays import Array, Number


def besseli(order: Number, x: Number) -> Number:
    """Modified Bessel function I_ν; by the leading term (DLMF 10.30.1) at tiny x, where SciPy's is 0."""
    from scipy.special import iv

    tiny = np.abs(x) < 1e-100
    return np.where(tiny, _leading_term(order, x), iv(order, x))[()] if np.any(tiny) else iv(order, x)


def _leading_term(order: Number, x: Number) -> Number:
    """(x/2)^ν/Γ(ν + 1); of integers −n that of n."""
    from scipy.special import gamma

    n = np.where(np.equal(order, np.floor(order)), np.abs(order), order)
    return np.power(np.divide(x, 2.0), n) / gamma(n + 1)


def ive(order: Number, x: Number) -> Number:
    """e^(−|x|) I_ν(x); by three terms of DLMF 10.40.1 at |x| > 10⁹, where SciPy's function has no value."""
    from scipy.special import ive

    tiny, large = np.abs(x) < 1e-100, (np.abs(x) > 1e9) & (np.abs(order) < 1e3)
    if not np.any(tiny | large):
        return ive(order, x)
    whole = np.equal(order, np.floor(order))
    size, square = np.where(large, np.abs(x), 1.0), 4.0 * np.square(order)
    series = 1 - (square - 1) / size / 8 * (1 - (square - 9) / size / 16)
    parity = np.where(np.less(x, 0), np.where(whole, np.where(np.mod(order, 2) == 1, -1.0, 1.0), np.nan), 1.0)
    far = parity * series / np.sqrt(2 * np.pi) / np.sqrt(size)
    return np.where(large, far, np.where(tiny, _leading_term(order, x), ive(order, x)))[()]


def spherical_jn(n: Number, x: Number) -> Number:
    """Spherical Bessel function of the first kind, j_n = sqrt(π/(2x)) J_{n+1/2}; for integer n on all reals.

    Small x use the power series, since SciPy's function loses digits there.
    """
    from scipy.special import jv, spherical_jn

    n, x = np.asarray(n, dtype=float), np.asarray(x, dtype=float)
    if not np.all((n == np.floor(n)) & (n >= 0)):
        return np.sqrt(np.pi / (2 * x)) * jv(n + 0.5, x)
    small, order, term = np.abs(x) < 1.0, n.astype(int), np.ones(np.broadcast(n, x).shape)
    series = np.zeros(term.shape)
    for k in range(1, 13):  # x^n/(2n+1)!! Σ (−x²/2)^k / (k! (2n+3)...(2n+2k+1))
        series, term = series + term, term * -0.5 * np.where(small, x * x, 0.0) / (k * (2 * n + 2 * k + 1))
    first = np.ones(series.shape)
    for k in range(1, int(order.max(initial=0)) + 1):
        first = np.where(k <= n, first * x / (2 * k + 1), first)
    return np.where(small, first * series, spherical_jn(order, np.where(small, 1.0, x)))[()]


def spherical_yn(n: Array | float, x: Array | float) -> Array | float:
    """Spherical Bessel function of the second kind, y_n = sqrt(π/(2x)) Y_{n+1/2}.

    For integers n on all reals, y_n(−x) = (−1)^(n+1) y_n(x) (DLMF 10.47.15); for others NaN at x < 0.
    """
    from scipy.special import yv

    n, x = np.asarray(n, dtype=float), np.asarray(x, dtype=float)
    turned = (x < 0) & (n == np.floor(n))
    size = np.where(turned, -x, x)
    sign = np.where(turned & (n % 2 == 0), -1.0, 1.0)
    return (sign * np.sqrt(np.pi / (2 * size)) * yv(n + 0.5, size))[()]


def spherical_in(n: Number, x: Number) -> Number:
    """Modified spherical Bessel function of the first kind, i_n(−x) = (−1)^n i_n(x)."""
    from scipy.special import spherical_in as of_positive

    order, x_ = np.asarray(n, dtype=float).astype(np.int64), np.asarray(x, dtype=float)
    return (np.where((x_ < 0) & (order % 2 == 1), -1.0, 1.0) * of_positive(order, np.abs(x_)))[()]


def airyai(x: Array | float) -> Array | float:
    """Airy function Ai."""
    from scipy.special import airy

    return airy(x)[0]


def airyaiprime(x: Array | float) -> Array | float:
    """Derivative of the Airy function Ai."""
    from scipy.special import airy

    return airy(x)[1]


def airybi(x: Number) -> Number:
    """Airy function Bi."""
    from scipy.special import airy

    return airy(x)[2]


def airybiprime(x: Number) -> Number:
    """Derivative of the Airy function Bi."""
    from scipy.special import airy

    return airy(x)[3]

"""Modified and spherical Bessel functions, and Airy functions."""

from __future__ import annotations

import numpy as np

from symad.core.arrays import Array, Number


def besseli(order: Number, x: Number) -> Number:
    """Modified Bessel function I_ν; by the leading term (DLMF 10.30.1) at tiny x, where SciPy's is 0."""
    from scipy.special import iv

    v, z = np.asarray(order, dtype=float), np.asarray(x, dtype=float)
    tiny = np.abs(z) < 1e-100
    return np.where(tiny, _leading_term(v, z), iv(order, x))[()] if np.any(tiny) else iv(order, x)


def _leading_term(v: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(x/2)^ν/Γ(ν + 1); of integers −n that of n."""
    from scipy.special import gamma

    n = np.where(v == np.floor(v), np.abs(v), v)
    made: np.ndarray = np.power(x / 2, n) / gamma(n + 1)
    return made


def ive(order: Number, x: Number) -> Number:
    """e^(−|x|) I_ν(x); by three terms of DLMF 10.40.1 at |x| > 10⁹, where SciPy's function has no value."""
    from scipy.special import ive

    v, z = np.asarray(order, dtype=float), np.asarray(x, dtype=float)
    tiny, large = np.abs(z) < 1e-100, (np.abs(z) > 1e9) & (np.abs(v) < 1e3)
    if not np.any(tiny | large):
        return ive(order, x)
    size, square = np.where(large, np.abs(z), 1.0), 4 * v * v
    series = 1 - (square - 1) / size / 8 * (1 - (square - 9) / size / 16)
    parity = np.where(z < 0, np.where(v == np.floor(v), 1.0 - 2 * np.mod(v, 2), np.nan), 1.0)
    far = parity * series / np.sqrt(2 * np.pi) / np.sqrt(size)
    return np.where(large, far, np.where(tiny, _leading_term(v, z), ive(order, x)))[()]


def spherical_jn(n: Number, x: Number) -> Number:
    """Spherical Bessel function of the first kind, j_n = sqrt(π/(2x)) J_{n+1/2}; for integer n on all reals.

    j_n(−x) = (−1)^n j_n(x) (DLMF 10.47.14). Small x use the power series, since SciPy's function loses digits
    there.
    """
    from scipy.special import jv, spherical_jn

    n, x = np.asarray(n, dtype=float), np.asarray(x, dtype=float)
    if not np.all((n == np.floor(n)) & (n >= 0)):
        return np.sqrt(np.pi / (2 * x)) * jv(n + 0.5, x)
    small, parity = np.abs(x) < 1.0, np.where((x < 0) & (n % 2 == 1), -1.0, 1.0)
    far = parity * spherical_jn(n.astype(int), np.where(small, 1.0, np.abs(x)))
    return np.where(small, _spherical_series(n, x, -0.5), far)[()]


def _spherical_series(n: np.ndarray, x: np.ndarray, half: float) -> np.ndarray:
    """x^n/(2n+1)!! Σ (half x²)^k / (k! (2n+3)...(2n+2k+1)) for |x| < 1: j_n with −1/2, i_n with 1/2."""
    term = np.ones(np.broadcast(n, x).shape)
    small, series, first = np.where(np.abs(x) < 1.0, x, 0.0), np.zeros(term.shape), term
    for k in range(1, 13):
        series, term = series + term, term * half * small * small / (k * (2 * n + 2 * k + 1))
    for k in range(1, int(n.max(initial=0)) + 1):
        first = np.where(k <= n, first * small / (2 * k + 1), first)
    return first * series


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
    """Modified spherical Bessel function of the first kind, i_n(−x) = (−1)^n i_n(x), for integer n."""
    from scipy.special import spherical_in as of_positive

    n, x = np.asarray(n, dtype=float), np.asarray(x, dtype=float)
    small, parity = np.abs(x) < 1.0, np.where((x < 0) & (n % 2 == 1), -1.0, 1.0)
    far = parity * of_positive(n.astype(np.int64), np.where(small, 1.0, np.abs(x)))
    return np.where(small, _spherical_series(n, x, 0.5), far)[()]


def _airy(x: Number, k: int) -> Number:
    """Ai, Ai', Bi or Bi'; by the leading terms of DLMF 9.7 where SciPy's functions have no value.

    The phase (2/3) |x|^(3/2) is rounded: of a negative x of 10¹⁰ no digit is left.
    """
    from scipy.special import airy

    value, z = airy(x)[k], np.asarray(x, dtype=float)
    missing = np.isnan(value) & ~np.isnan(z)
    if not np.any(missing):
        return value
    size = np.where(missing, np.abs(z), 1.0)
    phase = size * np.sqrt(size) / 1.5 - np.pi / 4
    phase, root = np.where(np.isfinite(phase), phase, 0.0), size**0.25
    wave = (np.cos(phase) / root, np.sin(phase) * root, -np.sin(phase) / root, np.cos(phase) * root)[k]
    far = np.where(z > 0, (0.0, 0.0, np.inf, np.inf)[k], wave / np.sqrt(np.pi))
    return np.where(missing, far, value)[()]


def airyai(x: Number) -> Number:
    """Airy function Ai."""
    return _airy(x, 0)


def airyaiprime(x: Number) -> Number:
    """Derivative of the Airy function Ai."""
    return _airy(x, 1)


def airybi(x: Number) -> Number:
    """Airy function Bi."""
    return _airy(x, 2)


def airybiprime(x: Number) -> Number:
    """Derivative of the Airy function Bi."""
    return _airy(x, 3)

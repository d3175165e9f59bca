"""Elliptic integrals of the second and third kind, and their moments."""

from __future__ import annotations

from functools import cache, reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from symad.core.arrays import Array

Floats: TypeAlias = "NDArray[np.float64]"
Rule: TypeAlias = "tuple[Floats, Floats, Floats]"
"""Nodes u and 1 − u of (0, 1), and weights."""


def elliptic_e(*args: Array | float) -> Array | float:
    """E(m), complete, or E(z | m)."""
    from scipy.special import ellipe, ellipeinc

    return ellipe(*args) if len(args) == 1 else ellipeinc(*args)


def elliptic_pi(n: Any, *args: Any) -> Any:
    """Π(n | m), complete, or Π(n; z | m), in Carlson's forms (DLMF 19.25.14).

    Beyond |z| = π/2 whole periods are added; if n sin² exceeds 1 between 0 and z, the value is NaN.
    """
    from scipy.special import elliprf, elliprj

    z, m = (np.pi / 2, args[0]) if len(args) == 1 else args
    turns = np.round(np.true_divide(z, np.pi)) if len(args) == 2 else 0.0
    s = np.sin(z - turns * np.pi)
    c = np.cos(z - turns * np.pi) ** 2 if len(args) == 2 else 0.0
    part = s * elliprf(c, 1 - m * s * s, 1.0) + n / 3 * s**3 * elliprj(c, 1 - m * s * s, 1.0, 1 - n * s * s)
    if np.any(turns != 0):
        whole = elliprf(0.0, 1 - m, 1.0) + n / 3 * elliprj(0.0, 1 - m, 1.0, 1 - n)
        part = part + np.where(turns != 0, 2 * turns * whole, 0.0)
    return np.where((n * s * s > 1) | ((turns != 0) & (n > 1)), np.nan, part)[()]


def elliptic_moment(p: Any, r: Any, q: Any, n: Any, *args: Any) -> Any:
    """∫_0^z sin^2p θ (1 − n sin² θ)^(−r) (1 − m sin² θ)^(−q − 1/2) dθ of (n, z, m); to z = π/2 of (n, m).

    ∞ if the complete integral diverges, NaN if the integrand has no value somewhere between 0 and z.
    """
    z, m = args if len(args) == 2 else (np.inf, args[0])
    if not any(np.ndim(order) for order in (p, r, q)):
        rest = np.broadcast_arrays(*[np.asarray(v, dtype=float) for v in (n, z, m)])
        made = _moments((int(p), int(r), int(q)), *[v.ravel() for v in rest])
        return made.reshape(rest[0].shape)[()]
    values = np.broadcast_arrays(*[np.asarray(v, dtype=float) for v in (p, r, q, n, z, m)])
    flat = np.stack([v.ravel() for v in values])
    made = np.empty(flat.shape[1])
    for orders in np.unique(flat[:3], axis=1).T:
        (places,) = np.nonzero(np.all(flat[:3] == orders[:, None], axis=0))
        made[places] = _moments(tuple(map(int, orders)), *flat[3:, places])
    return made.reshape(values[0].shape)[()]


def _moments(orders: tuple[int, ...], n: Floats, z: Floats, m: Floats) -> Floats:
    """The moments for arrays with one axis; z = ∞ stands for the complete integral."""
    low = 6.123233995736766e-17  # π/2 minus its float
    whole = np.isinf(z)
    turns = np.where(whole, 0.0, np.round(z / np.pi))
    to_angle = _by_carlson if orders in ((1, 0, 0), (1, 0, 1)) else _by_quadrature
    with np.errstate(all="ignore"):
        part = np.where(whole, np.pi / 2, (z - turns * np.pi) - turns * 2 * low)
        beside = np.where(whole, 0.0, (np.pi / 2 - np.abs(part)) + low)
        found = _where_defined(orders, n, m, part, beside, to_angle(orders, n, m, part, beside))
        if np.any(turns != 0):
            end, none = np.full_like(z, np.pi / 2), np.zeros_like(z)
            complete = _where_defined(orders, n, m, end, none, to_angle(orders, n, m, end, none))
            found = found + np.where(turns != 0, 2 * turns * complete, 0.0)
    return found


def _where_defined(
    orders: tuple[int, ...], n: Floats, m: Floats, z: Floats, beside: Floats, total: Floats
) -> Floats:
    """The integral where it exists."""
    end = np.sin(z) ** 2
    widest = np.maximum(m, n) if orders[1] > 0 else m
    diverges = (beside == 0) & (widest == 1)
    valid = np.where(beside == 0, widest, widest * end) < 1
    return np.where(diverges, np.copysign(np.inf, z), np.where(valid, total, np.nan))


def _without(k: Floats, sine: Floats, cosine: Floats) -> Floats:
    """1 − k sin², from the squares of sine and cosine."""
    return np.where(k <= 0, 1 - k * sine, cosine + (1 - k) * sine)


def _by_carlson(orders: tuple[int, ...], n: Floats, m: Floats, z: Floats, beside: Floats) -> Floats:
    """The derivatives of K, E, F by m: sin³ z/3 R_D of cos² z, 1, 1 − m sin² z (DLMF 19.25, with csc² θ)."""
    from scipy.special import elliprd

    sine, cosine = np.sin(z), np.sin(beside) ** 2
    under = _without(m, sine**2, cosine)
    return sine**3 / 3 * (elliprd(cosine, 1.0, under) if orders[2] else elliprd(cosine, under, 1.0))


# ---- quadrature ---------------------------------------------------------------------------------


@cache
def _gauss(half: int) -> Rule:
    """Nodes u and 1 − u of (0, 1), and weights by Christoffel's sum, which is accurate."""
    u = np.polynomial.legendre.leggauss(2 * half)[0][half:]
    values = np.polynomial.legendre.legvander(u, 2 * half - 1)
    return u, 1 - u, 1 / np.sum((np.arange(2 * half) + 0.5) * values**2, axis=1)


@cache
def _double_exponential() -> Rule:
    """Nodes u and 1 − u of (0, 1), and weights (Takahasi and Mori 1974).

    Steps of 1/64 give full precision also for integrands with poles as close to an end as m allows.
    """
    t = np.arange(-237, 238) / 64
    q = np.exp(-np.pi * np.sinh(np.abs(t)))
    small, large = q / (1 + q), 1 / (1 + q)
    u, rest = np.where(t < 0, small, large), np.where(t < 0, large, small)
    return u, rest, np.pi / 64 * np.cosh(t) * small * large


def _by_quadrature(orders: tuple[int, ...], n: Floats, m: Floats, z: Floats, beside: Floats) -> Floats:
    """The integral to z in [−π/2, π/2], where π/2 − |z| is ``beside``; each by the smallest sufficient rule.

    The error of Gauss's rule with 2h nodes on [−z, z], where the integrand is even, is ρ^(−4h): exp(−40) is
    4e-18, and a pole of order k requires 4k more.
    """
    made: Floats = np.empty_like(z)
    reach = _reach(m, z) if orders[1] == 0 else np.minimum(_reach(m, z), _reach(n, z))
    needed = 10 + orders[1] + abs(orders[2])
    left = np.ones(z.shape, dtype=bool)
    for half in (16, 48, 0):
        here = np.flatnonzero(left & (half * reach > needed) if half else left)
        left[here] = False
        rule = _gauss(half) if half else _double_exponential()
        step = max(1, 16384 // len(rule[0]))  # values of the integrand that fit in the cache of a core
        for k in range(0, len(here), step):
            some = here[k : k + step]
            columns = [v[some, None] for v in (n, m, z, beside)]
            made[some] = _sum_of(rule, orders, *columns)
    return made


def _reach(k: Floats, z: Floats) -> Floats:
    """log ρ of the largest ellipse around [−z, z] within which 1 − k sin² is not 0 (Trefethen 2008)."""
    w = np.arcsin(1 / np.sqrt(k + 0j)) / np.abs(z)
    return np.where((k == 0) | (z == 0), np.inf, np.log(np.abs(w + np.sqrt(w - 1) * np.sqrt(w + 1))))


def _whole_power(x: Floats, exponent: int) -> Floats:
    """x ** exponent by products, much faster than np.power."""
    if exponent < 0:
        return 1 / _whole_power(x, -exponent)
    return reduce(np.multiply, [x] * exponent) if exponent else np.ones_like(x[..., :1])


def _sum_of(rule: Rule, orders: tuple[int, ...], n: Floats, m: Floats, z: Floats, beside: Floats) -> Floats:
    """The sum of a rule, for columns."""
    (p, r, q), (u, rest, weights) = orders, rule
    sine, cosine = np.sin(np.abs(z) * u) ** 2, np.sin(beside + np.abs(z) * rest) ** 2
    under = _without(m, sine, cosine)
    made = weights * _whole_power(sine, p) / (_whole_power(under, q) * np.sqrt(under))
    if r:
        made = made / _whole_power(_without(n, sine, cosine), r)
    return z[:, 0] * np.sum(made, axis=-1)

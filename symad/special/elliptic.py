"""Elliptic integrals of the second and third kind, and their moments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np

from symad.core.arrays import Array, Number


def elliptic_e(*args: Number) -> Number:
    """E(m), complete, or E(z | m)."""
    from scipy.special import ellipe, ellipeinc

    return ellipe(*args) if len(args) == 1 else ellipeinc(*args)


def elliptic_pi(n: Any, *args: Any) -> Number:
    """Π(n | m), complete, or Π(n; z | m), in Carlson's forms (DLMF 19.25.14).

    Beyond |z| = π/2 whole periods are added; where n sin² z > 1 on the way the value is NaN.
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


def _double_exponential() -> tuple[Any, Any, Any]:
    """Nodes u and 1 − u of (0, 1), and weights (Takahasi and Mori 1974).

    Steps of 1/64 reach full precision also for integrands that have poles as close to an end as m allows.
    """
    t = np.arange(-237, 238) / 64
    q = np.exp(-np.pi * np.sinh(np.abs(t)))
    small, large = q / (1 + q), 1 / (1 + q)
    u, rest = np.where(t < 0, small, large), np.where(t < 0, large, small)
    return u, rest, np.pi / 64 * np.cosh(t) * small * large


def elliptic_moment(p: Mapping[str, Array], r: Number, q: Number, n: Number, *args: Number) -> Number:
    """∫_0^z sin^2p θ (1 − n sin² θ)^(−r) (1 − m sin² θ)^(−q − 1/2) dθ of (n, z, m); to z = π/2 of (n, m).

    ∞ where the complete integral diverges, NaN where the integrand has no value on the way.
    """
    z, m = args if len(args) == 2 else (np.inf, args[0])
    values = np.broadcast_arrays(*[np.asarray(v, dtype=float) for v in (p, r, q, n, z, m)])
    flat = np.stack([v.ravel() for v in values])
    made = np.empty(flat.shape[1])
    for orders in np.unique(flat[:3], axis=1).T:  # one, unless orders come as arrays
        (places,) = np.nonzero(np.all(flat[:3] == orders[:, None], axis=0))
        for k in range(0, len(places), 256):
            here = places[k : k + 256]
            made[here] = _moments(tuple(map(int, orders)), *flat[3:, here, None])
    return made.reshape(values[0].shape)[()]


def _moments(orders: tuple[int, ...], n: Any, z: Any, m: Any) -> Any:
    """Of columns; z = ∞ stands for the complete integral."""
    low = 6.123233995736766e-17  # π/2 less its float
    whole = np.isinf(z)
    turns = np.where(whole, 0.0, np.round(z / np.pi))
    with np.errstate(all="ignore"):
        part = np.where(whole, np.pi / 2, (z - turns * np.pi) - turns * 2 * low)
        beside = np.where(whole, 0.0, (np.pi / 2 - np.abs(part)) + low)
        found = _to_angle(orders, n, m, part, beside)
        if np.any(turns != 0):
            complete = _to_angle(orders, n, m, np.full_like(z, np.pi / 2), np.zeros_like(z))
            found = found + np.where(turns != 0, 2 * turns * complete, 0.0)
    return found[:, 0]


def _whole_power(x: Any, exponent: int) -> Any:
    """x ** exponent by products, much faster than np.power."""
    if exponent < 0:
        return 1 / _whole_power(x, -exponent)
    return reduce(np.multiply, [x] * exponent) if exponent else 1.0


def _to_angle(orders: tuple[int, ...], n: Any, m: Any, z: Any, beside: Any) -> Any:
    """The integral to z in [−π/2, π/2], where π/2 − |z| is ``beside``."""
    p, r, q = orders
    u, rest, weights = _double_exponential()
    sine, cosine = np.sin(np.abs(z) * u) ** 2, np.sin(beside + np.abs(z) * rest) ** 2

    def without(k: Number) -> Any:  # 1 − k sin²
        return np.where(k <= 0, 1 - k * sine, cosine + (1 - k) * sine)

    under = without(m)
    made = weights * _whole_power(sine, p) / (_whole_power(under, q) * np.sqrt(under))
    if r:
        made = made / _whole_power(without(n), r)
    total = z * np.sum(made, axis=-1, keepdims=True)
    end = np.sin(z) ** 2
    widest = np.maximum(m, n) if r > 0 else m
    diverges = (beside == 0) & (widest == 1)
    valid = np.where(beside == 0, widest, widest * end) < 1
    return np.where(diverges, np.copysign(np.inf, z), np.where(valid, total, np.nan))

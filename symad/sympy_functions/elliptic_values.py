"""Elliptic integrals to many digits: by Arb, by the formulas of tables, or by quadrature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import flint
import mpmath
from flint import acb, arb
from sympy.functions.special.elliptic_integrals import elliptic_e, elliptic_f, elliptic_k, elliptic_pi

from symad.facts.functions import state
from symad.sympy_functions.elliptic_moments import elliptic_moment, in_tables

Real: TypeAlias = "mpmath.mpf | arb"

MAX_CANCELED_BITS = 2000
"""The number of bits that may cancel in the formulas of tables; beyond it quadrature is faster."""


@dataclass(frozen=True)
class Integrals:
    """F, E and Π of (z, m) and (n, z, m), and √, for one kind of numbers; z = None means π/2."""

    root: Callable[[Real], Real]
    first: Callable[[Real, Real], Real]
    second: Callable[[Real, Real], Real]
    third: Callable[[Real, Real, Real], Real]


def _by_recurrence(
    orders: tuple[int, int, int], n: Real, z: Real, m: Real, sine: tuple[Real, Real], by: Integrals
) -> Real:
    """The formulas of tables; `elliptic_moment_alias` has them as mathematics."""
    s, c = sine
    under, one = 1 - m * s * s, 1 - n * s * s

    @cache
    def of(p: int, r: int, q: int) -> Real:
        if p:
            over, low = (n, of(p - 1, r - 1, q)) if r else (m, of(p - 1, r, q - 1))
            return (of(p - 1, r, q) - low) / over
        if r and q:
            return (n * of(0, r, q - 1) - m * of(0, r - 1, q)) / (n - m)
        if r == 1:
            return by.third(n, z, m)
        if r == 2:
            slope = of(0, 0, -1) + (m - n) * of(0, 0, 0) / n + (n * n - m) * of(0, 1, 0) / n
            slope -= n * by.root(under) * s * c / one
            return of(0, 1, 0) + n * slope / (2 * (m - n) * (n - 1))
        if r:
            made = (2 * r - 5) * m * of(0, r - 3, 0)
            made += (2 * r - 4) * (n * m + n - 3 * m) * of(0, r - 2, 0)
            made += (2 * r - 3) * (n * n - 2 * n * m - 2 * n + 3 * m) * of(0, r - 1, 0)
            made += n * n * by.root(under) * s * c / one ** (r - 1)
            return made / ((2 * r - 2) * (1 - n) * (m - n))
        if q <= 0:
            return by.second(z, m) if q else by.first(z, m)
        made = (2 * q - 2) * (2 - m) * of(0, 0, q - 1) if q > 1 else 0
        made += (3 - 2 * q) * of(0, 0, q - 2) - m * s * c * by.root(under) / under**q
        return made / ((2 * q - 1) * (1 - m))

    return of(*orders)


# ---- by mpmath ----------------------------------------------------------------------------------

MPMATH = Integrals(mpmath.sqrt, mpmath.ellipf, mpmath.ellipe, mpmath.ellippi)


def _to_many_digits(
    p: mpmath.mpf, r: mpmath.mpf, q: mpmath.mpf, n: mpmath.mpf, *rest: mpmath.mpf
) -> mpmath.mpf:
    """The value to the working precision, one period at a time."""
    orders = int(p), int(r), int(q)
    z, m = rest if len(rest) == 2 else (mpmath.pi / 2, rest[0])
    top = mpmath.sin(z) ** 2 if abs(z) < mpmath.pi / 2 else mpmath.mpf(1)
    if not max(m, n if r > 0 else m) * top < 1:
        return mpmath.nan
    small = [m, 1 - m, *((n, 1 - n, n - m) if r else ())]
    lost = (2 + p + r + abs(q)) * sum(max(0, -mpmath.mag(v)) for v in small if v)
    if in_tables(*orders) and all(small) and lost < MAX_CANCELED_BITS:
        with mpmath.extraprec(int(lost) + 20):
            z = mpmath.pi / 2 if len(rest) == 1 else z
            return _by_recurrence(orders, n, z, m, (mpmath.sin(z), mpmath.cos(z)), MPMATH)

    def integrand(t: mpmath.mpf) -> mpmath.mpf:
        s = mpmath.sin(t) ** 2
        return s ** int(p) * (1 - n * s) ** -int(r) * (1 - m * s) ** (-int(q) - mpmath.mpf(1) / 2)

    turns = mpmath.nint(z / mpmath.pi)
    whole = mpmath.quad(integrand, [0, mpmath.pi / 2]) if turns else 0
    return mpmath.quad(integrand, [0, z - turns * mpmath.pi]) + 2 * turns * whole


def _in_domain(
    function: Callable[..., mpmath.mpf], n: mpmath.mpf, z: mpmath.mpf, *args: mpmath.mpf
) -> mpmath.mpf:
    """A function of n, z and m, never complex; NaN if the integral does not exist. z = None is π/2."""
    widest = max(n, args[-1])
    whole = z is None or abs(z) >= mpmath.pi / 2
    return function(*args) if not widest * (1 if whole else mpmath.sin(z) ** 2) > 1 else mpmath.nan


def _third_to_many_digits(n: mpmath.mpf, *rest: mpmath.mpf) -> mpmath.mpf:
    return _in_domain(mpmath.ellippi, n, rest[0] if len(rest) == 2 else None, n, *rest)


state(elliptic_moment, digits=_to_many_digits)
state(elliptic_pi, digits=_third_to_many_digits)
state(elliptic_f, digits=lambda z, m: _in_domain(mpmath.ellipf, m, z, z, m))


# ---- by Arb -------------------------------------------------------------------------------------


def _on_the_way(z: arb, *poles: arb) -> bool:
    """True if k sin² < 1 is certain, for all k, up to z; None is π/2."""
    top = arb(1)
    if z is not None and abs(z) < arb.pi() / 2:
        top = z.sin() ** 2
    return all(k * top < 1 for k in poles)


def _first(z: arb, m: arb) -> arb:
    if not _on_the_way(z, m):
        return NONE
    return _real(acb(m).elliptic_k() if z is None else acb.elliptic_f(z, m))


def _second(z: arb, m: arb) -> arb:
    if not _on_the_way(z, m):
        return NONE
    return _real(acb(m).elliptic_e() if z is None else acb.elliptic_e_inc(z, m))


def _third(n: arb, z: arb, m: arb) -> arb:
    if not _on_the_way(z, m, n):
        return NONE
    return _real(acb.elliptic_pi(n, m) if z is None else acb.elliptic_pi_inc(n, z, m))


NONE = arb("nan")


def _real(value: acb) -> arb:
    return value.real if value.imag.contains(0) else NONE


ARB = Integrals(arb.sqrt, _first, _second, _third)


def _moment_by_arb(p: arb, r: arb, q: arb, n: arb, *rest: arb) -> arb:
    """A ball, or NaN if the tables divide by 0."""
    if not all(v.is_exact() and v.is_integer() for v in (p, r, q)):
        return NONE
    orders = int(p.unique_fmpz()), int(r.unique_fmpz()), int(q.unique_fmpz())
    z, m = rest if len(rest) == 2 else (None, rest[0])
    if not _on_the_way(z, m, *([n] if r > 0 else [])):
        return NONE
    if not in_tables(*orders):
        return _by_integral(orders, n, arb.pi() / 2 if z is None else z, m)
    before = flint.ctx.prec
    try:
        flint.ctx.prec = 2 * before  # digits cancel near m = 0, 1 and n
        sine = (arb(1), arb(0)) if z is None else (z.sin(), z.cos())
        return _by_recurrence(orders, n, z, m, sine, ARB)
    except ZeroDivisionError:
        return NONE
    finally:
        flint.ctx.prec = before


def _by_integral(orders: tuple[int, int, int], n: arb, z: arb, m: arb) -> arb:
    """The integral by Arb's quadrature, which bounds its error."""
    p, r, q = orders

    def integrand(t: acb, analytic: bool) -> acb:
        s = t.sin() ** 2
        under = 1 - m * s
        return s**p / ((1 - n * s) ** r * under**q * under.sqrt(analytic))

    return _real(acb.integral(integrand, 0, z))


state(elliptic_moment, balls=_moment_by_arb, slow=True)
state(elliptic_k, balls=lambda m: _first(None, m), slow=True)
state(elliptic_f, balls=_first, slow=True)
state(elliptic_e, balls=lambda *rest: _second(*rest) if len(rest) == 2 else _second(None, *rest), slow=True)
state(
    elliptic_pi,
    balls=lambda n, *rest: _third(n, *rest) if len(rest) == 2 else _third(n, None, *rest),
    slow=True,
)

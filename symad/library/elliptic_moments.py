"""Derivatives of elliptic integrals, as integrals of the same family.

    I(p, r, q; n, z, m) = ∫_0^z sin^2p θ (1 − n sin² θ)^(−r) (1 − m sin² θ)^(−q − 1/2) dθ

holds F = I(0, 0, 0), E = I(0, 0, −1) and Π = I(0, 1, 0), and is closed under differentiation. The formulas
of tables, dK/dm = (E − (1 − m) K)/(2m (1 − m)), are differences of nearly equal terms over m: near m = 0, or
n = m, they have no digit left. These integrands are positive, so nothing is lost.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import mpmath
import sympy
from sympy.core.function import ArgumentIndexError
from sympy.functions.special.elliptic_integrals import elliptic_e, elliptic_f, elliptic_k, elliptic_pi

from symad.core.arrays import Array, Number
from symad.core.graph import Node
from symad.core.questions import Nodes, Tangent
from symad.evaluation.function_values import MPMATH_SPECIAL
from symad.evaluation.numpy_names import NUMPY_NAMES
from symad.library.special_functions import SpecialFunction
from symad.ops.arrays.sources import constant
from symad.ops.elementwise.apply import apply, slope
from symad.ops.elementwise.arithmetic import div, mul, neg, sub
from symad.ops.elementwise.powers import power, sqrt


class elliptic_moment(SpecialFunction):
    """I(p, r, q; n, z, m), or with five arguments I(p, r, q; n, m), the complete one to z = π/2.

    p, r, q are integers, m sin² θ ≤ 1 and n sin² θ ≤ 1 on the way; NaN elsewhere.
    """

    nargs = (5, 6)

    def fdiff(self, argindex: int = 6) -> sympy.Expr:
        """By n: r I(p+1, r+1, q); by m: (q + 1/2) I(p+1, r, q+1); by z the integrand."""
        p, r, q, n, *z, m = self.args
        if argindex == len(self.args):
            return (q + sympy.Rational(1, 2)) * elliptic_moment(p + 1, r, q + 1, n, *z, m)
        if argindex == 4:
            return r * elliptic_moment(p + 1, r + 1, q, n, *z, m)
        if argindex == 5:
            s = sympy.sin(z[0]) ** 2
            return s**p * (1 - n * s) ** -r * (1 - m * s) ** (-q - sympy.Rational(1, 2))
        raise ArgumentIndexError(self, argindex)


def moment(p: int, r: int, q: int, n: Node, *rest: Node) -> Node:
    """The integral as a node."""
    return apply(elliptic_moment, constant(p), constant(r), constant(q), n, *rest)


def _root(z: Node, m: Node) -> Node:
    """√(1 − m sin² z)."""
    return sqrt(sub(constant(1), mul(m, _squared_sine(z))))


def _squared_sine(z: Node) -> Node:
    return power(apply(sympy.sin, z), constant(2))


HALF = sympy.Rational(1, 2)


@slope(elliptic_k)
def elliptic_k_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """I(1, 0, 1)/2, complete."""
    return mul(constant(HALF), moment(1, 0, 1, constant(0), *args))


@slope(elliptic_e)
def elliptic_e_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """−I(1, 0, 0)/2 by m, √(1 − m sin² z) by z."""
    if i == len(args) - 1:
        return neg(mul(constant(HALF), moment(1, 0, 0, constant(0), *args)))
    return _root(*args)


@slope(elliptic_f)
def elliptic_f_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """I(1, 0, 1)/2 by m, 1/√(1 − m sin² z) by z."""
    if i == 1:
        return mul(constant(HALF), moment(1, 0, 1, constant(0), *args))
    return div(constant(1), _root(*args))


@slope(elliptic_pi)
def elliptic_pi_slope(y: Node, args: Nodes, i: int) -> Tangent:
    """I(1, 2, 0) by n, I(1, 1, 1)/2 by m, the integrand by z."""
    if i == len(args) - 1:
        return mul(constant(HALF), moment(1, 1, 1, *args))
    if i == 0:
        return moment(1, 2, 0, *args)
    n, z, m = args
    return div(constant(1), mul(sub(constant(1), mul(n, _squared_sine(z))), _root(z, m)))


# ---- values -------------------------------------------------------------------------------------


MOST_LOST = 2000
"""Bits that cancel in the formulas of tables; where more would, quadrature is faster."""


def in_tables(p: int, r: int, q: int) -> bool:
    """Whether the formulas reach an integral: derivatives of K, E, F are made of those, and Π partly."""
    return 0 <= r <= 2 and p >= 0 and q - max(p - r, 0) >= (0 if r else -1)


def _by_recurrence(p: int, r: int, q: int, n: Number, z: Number, m: Number) -> Number:
    """The formulas of tables, see `elliptic_moment_alias` for them as mathematics."""
    s, c = mpmath.sin(z), mpmath.cos(z)
    under, one = 1 - m * s * s, 1 - n * s * s

    @cache
    def of(p: int, r: int, q: int) -> Any:
        if p:
            over, low = (n, of(p - 1, r - 1, q)) if r else (m, of(p - 1, r, q - 1))
            return (of(p - 1, r, q) - low) / over
        if r and q:
            return (n * of(0, r, q - 1) - m * of(0, r - 1, q)) / (n - m)
        if r == 1:
            return mpmath.ellippi(n, z, m)
        if r == 2:
            slope = of(0, 0, -1) + (m - n) * of(0, 0, 0) / n + (n * n - m) * of(0, 1, 0) / n
            slope -= n * mpmath.sqrt(under) * s * c / one
            return of(0, 1, 0) + n * slope / (2 * (m - n) * (n - 1))
        if q <= 0:
            return mpmath.ellipe(z, m) if q else mpmath.ellipf(z, m)
        made = (2 * q - 2) * (2 - m) * of(0, 0, q - 1) if q > 1 else 0
        made += (3 - 2 * q) * of(0, 0, q - 2) - m * s * c * under ** (mpmath.mpf(1) / 2 - q)
        return made / ((2 * q - 1) * (1 - m))

    return of(p, r, q)


def _to_many_digits(p: Any, r: Any, q: Any, n: Any, *rest: Any) -> Number:
    """To the working precision; a period at a time."""
    z, m = rest if len(rest) == 2 else (mpmath.pi / 2, rest[0])
    top = mpmath.sin(z) ** 2 if abs(z) < mpmath.pi / 2 else mpmath.mpf(1)
    if not max(m, n if r > 0 else m) * top < 1:
        return mpmath.nan
    small = [m, 1 - m, *((n, 1 - n, n - m) if r else ())]
    lost = (2 + p + r + abs(q)) * sum(max(0, -mpmath.mag(v)) for v in small if v)
    if in_tables(int(p), int(r), int(q)) and all(small) and lost < MOST_LOST:
        with mpmath.extraprec(int(lost) + 20):
            return _by_recurrence(int(p), int(r), int(q), n, mpmath.pi / 2 if len(rest) == 1 else z, m)

    def integrand(t: Array) -> Any:
        s = mpmath.sin(t) ** 2
        return s ** int(p) * (1 - n * s) ** -int(r) * (1 - m * s) ** (-int(q) - mpmath.mpf(1) / 2)

    turns = mpmath.nint(z / mpmath.pi)
    whole = mpmath.quad(integrand, [0, mpmath.pi / 2]) if turns else 0
    return mpmath.quad(integrand, [0, z - turns * mpmath.pi]) + 2 * turns * whole


MPMATH_SPECIAL[elliptic_moment] = _to_many_digits
NUMPY_NAMES[elliptic_moment] = "symad.special.elliptic_moment"

"""The table of differences: f(u) − f(v) from an exact d = u − v.

A row holds where its condition does. Elsewhere the difference as it was written is taken. ``early`` rows
serve before differentiation, too: their derivatives are as good, and proved like those of the difference.
Functions without such an identity have the integral of their slope over [v, u] by Gauss's rule, whose error
is less than a rounding error where the row's condition holds.
Identities: Abramowitz & Stegun, "Handbook of Mathematical Functions" (1964), 4.3.34-4.3.40, 4.4.32-4.4.34,
4.5.41, 4.6.26-4.6.28, 25.4.29; Higham, "Accuracy and Stability of Numerical Algorithms" (2002), sections 1.7
and 1.14. Every row is proved by `tests/symad/stable/test_rows.py`.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
import sympy
from sympy.codegen.cfunctions import Cbrt, expm1, hypot, log1p

from symad.core.graph import Node
from symad.ops.basic.arithmetic import Add, add, mul
from symad.ops.basic.sources import constant
from symad.ops.elementwise.powers import HALF, Pow, power
from symad.ops.elementwise.selection import compare
from symad.stable.normal_forms import head_of, rational
from symad.stable.rows import (
    Formula,
    FormulaNode,
    Row,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    exp_1,
    function,
    log,
    log_1,
    log_cosh,
    plus,
    s,
    sec,
    sech,
    sin,
    sinh,
    tan,
    tanh,
    where,
)
from symad.sympy_functions.scalar_functions import logcosh, sigmoid, softplus

asin, acos, asinh, acosh, atan, atanh = map(
    function, (sympy.asin, sympy.acos, sympy.asinh, sympy.acosh, sympy.atan, sympy.atanh)
)
cot, csc, sign, loggamma = map(function, (sympy.cot, sympy.csc, sympy.sign, sympy.loggamma))


def secant(f: Formula, result: Formula, condition: Formula | None = None, early: bool = False) -> Row:
    """The row of f(u) − f(v)."""
    return Row(lambda u, v: f(u) - f(v), result, condition, early)


def by_sign(d: FormulaNode, up: FormulaNode, down: FormulaNode) -> FormulaNode:
    """The first where d ≥ 0, else the second."""
    return where(d >= 0, up, down)


def small(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """|d| < 1: v + d/2 is not rounded coarsely beside u and v, and exponentials of d do not overflow."""
    return abs(d) < 1


def below(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """|d| < 1, and 2 cosh(v) is a float."""
    return small(u, v, d) & (abs(v) < 700)


def exp_form(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """The larger exponential times one that is less than 1."""
    return by_sign(d, -(exp(u) * exp_1(-d)), exp(v) * exp_1(d))


def log_form(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """log1p of a ratio that is not negative."""
    return by_sign(d, log_1(d / v), -log_1(-(d / u)))


def log_of_complement(u: FormulaNode) -> FormulaNode:
    """log(1 − exp(u)): one of both is exact to rounding where exp(u) is small, one where it is almost 1."""
    return where(u < -0.6875, log_1(-exp(u)), log(-exp_1(u)))


def log_condition(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """Both logarithms have values, and the ratio is a float."""
    return (v > 0) & (u > 0) & (abs(d) * 2.0**-1000 < v)


def atan_condition(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """0 < 1 + u v: the two angles are less than a right angle apart; and u v is a float."""
    return (1 + u * v > 0) & (1 + u * v < 2.0**1000)


def sine_of_difference(
    u: FormulaNode, v: FormulaNode, d: FormulaNode, cos_u: FormulaNode, cos_v: FormulaNode
) -> FormulaNode:
    """The sine of α − β for sines u, v of one sign and cosines: sin² α − sin² β over sin(α + β)."""
    return d * (u + v) / (u * cos_v + v * cos_u)


def asin_form(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """The angle of the sine of a difference."""
    cosines = [((1 - x) * (1 + x)) ** HALF for x in (u, v)]
    return asin(sine_of_difference(u, v, d, *cosines))


def growth(u: FormulaNode, v: FormulaNode, d: FormulaNode, h: FormulaNode, k: FormulaNode) -> FormulaNode:
    """(u + h)/(v + k) − 1 for h² − u² = k² − v²."""
    return d * (1 + (u + v) / (h + k)) / (v + k)


def asinh_form(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """log((|u| + √(u² + 1))/(|v| + √(v² + 1))), times the sign of v."""
    a, b = abs(u), abs(v)
    return sign(v) * log_1(growth(a, b, sign(v) * d, root(u), root(v)))


def acosh_form(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """log((u + √(u² − 1))/(v + √(v² − 1)))."""
    return log_1(growth(u, v, d, *[(x - 1) ** HALF * (x + 1) ** HALF for x in (u, v)]))


def near(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """u and v differ and have one sign, d is less than both, and squares are floats."""
    return (abs(d) > 0) & (2 * abs(d) < abs(v)) & (abs(v) < 2.0**500)


def atanh_form(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """Artanh of (u − v)/(1 − u v)."""
    return atanh(d / ((1 - v) * (1 + v) - d * v))


def atanh_condition(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """Both have values, and are near each other."""
    return (abs(u) < 1) & (abs(v) < 1) & (2 * abs(d) < (1 - v) * (1 + v))


def sigmoid_form(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """Products of factors that are less than 1."""
    return by_sign(d, -(exp_1(-d) * s(u) * s(-v)), exp_1(d) * s(v) * s(-u))


def softplus_form(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """log1p of (exp(u) − exp(v))/(1 + exp(v))."""
    return by_sign(d, log_1(exp_1(d) * s(v)), -log_1(exp_1(-d) * s(u)))


def sech_form(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """−2 sinh(v + d/2) sinh(d/2) sech(u) sech(v), where the first is divided by cosh(u)."""
    t = tanh(v + d / 2)
    return -(2 * sinh(d / 2) * t / (cosh(d / 2) + t * sinh(d / 2)) * sech(v))


GAUSS = [(float(x), float(w) / 2) for x, w in zip(*np.polynomial.legendre.leggauss(6), strict=True)]
"""The points in [−1, 1] and the weights, whose sum is 1."""


def integral(slope: Formula, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """d Σ w f'(v + d/2 + x d/2)."""
    middle, total = v + d / 2, FormulaNode(constant(0))
    for x, w in GAUSS:
        total = total + w * slope(middle + d * (x / 2))
    return d * total


def erf_form(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """By an integral where u and v are near, else by the tails on one side."""
    slope = 2 / FormulaNode(constant(sympy.pi)) ** HALF
    close = integral(lambda x: slope * exp(-(x * x)), v, d)
    right, left = erfc(v) - erfc(u), erfc(-u) - erfc(-v)
    apart = where(v > 0.5, right, where(v < -0.5, left, erf(u) - erf(v)))
    return where(abs(d) * (1 + abs(v)) < 0.1875, close, apart)


def root(u: FormulaNode) -> FormulaNode:
    """√(1 + u²)."""
    return function(hypot)(1, u)


def by_addition(near: Formula, result: Formula) -> Formula:
    """f(u) − f(v) as near(v, d) by the addition theorem if u alone is a sum, which is rounded, or v alone."""

    def made(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
        sums = [type(x.node.op) is Add for x in (u, v)]
        if sums[0] is sums[1]:
            return result(u, v, d)
        return near(v, d) if sums[0] else -near(u, -d)

    return made


@lru_cache(64)
def polygamma_secant(order: int) -> Row:
    """The row of ψ of an order, −1 for log Γ."""
    psi = function(sympy.polygamma)
    f = loggamma if order < 0 else partial(psi, order)

    def result(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
        return integral(lambda x: psi(order + 1, x), v, d)

    return secant(f, result, lambda u, v, d: 8 * abs(d) < v)


SECANTS: dict[Hashable, Row] = {
    sympy.exp: secant(exp, exp_form),
    expm1: secant(exp_1, exp_form),
    sympy.log: secant(log, log_form, log_condition),
    sympy.sin: secant(
        sin,
        by_addition(
            lambda w, d: cos(w) * sin(d) - 2 * sin(w) * sin(d / 2) ** 2,
            lambda u, v, d: 2 * cos(v + d / 2) * sin(d / 2),
        ),
        small,
    ),
    sympy.cos: secant(
        cos,
        by_addition(
            lambda w, d: -(sin(w) * sin(d) + 2 * cos(w) * sin(d / 2) ** 2),
            lambda u, v, d: -(2 * sin(v + d / 2) * sin(d / 2)),
        ),
        small,
    ),
    sympy.tan: secant(
        tan,
        by_addition(
            lambda w, d: sin(d) / cos(w) / (cos(w) * cos(d) - sin(w) * sin(d)),
            lambda u, v, d: sin(d) / cos(u) / cos(v),
        ),
    ),
    sympy.cot: secant(cot, lambda u, v, d: -(sin(d) / sin(u) / sin(v)), small),
    sympy.sec: secant(sec, lambda u, v, d: 2 * sin(v + d / 2) * sin(d / 2) / cos(u) / cos(v), small),
    sympy.csc: secant(csc, lambda u, v, d: -(2 * cos(v + d / 2) * sin(d / 2) / sin(u) / sin(v)), small),
    sympy.asin: secant(asin, asin_form, lambda u, v, d: near(u, v, d) & (abs(u + v) < 2)),
    sympy.acos: secant(
        acos, lambda u, v, d: -asin_form(u, v, d), lambda u, v, d: near(u, v, d) & (abs(u + v) < 2)
    ),
    sympy.atan: secant(atan, lambda u, v, d: atan(d / (1 + u * v)), atan_condition),
    sympy.sinh: secant(sinh, lambda u, v, d: 2 * cosh(v + d / 2) * sinh(d / 2), below),
    sympy.cosh: secant(cosh, lambda u, v, d: 2 * sinh(v + d / 2) * sinh(d / 2), below),
    sympy.sech: secant(sech, sech_form, small),
    sympy.tanh: secant(tanh, lambda u, v, d: 2 * sigmoid_form(2 * u, 2 * v, 2 * d)),
    sympy.asinh: secant(asinh, asinh_form, near),
    sympy.acosh: secant(acosh, acosh_form, lambda u, v, d: near(u, v, d) & (u + v > 2)),
    sympy.atanh: secant(atanh, atanh_form, atanh_condition),
    sigmoid: secant(s, sigmoid_form),
    softplus: secant(plus, softplus_form, small),
    logcosh: secant(log_cosh, lambda u, v, d: log_1(2 * sinh(d / 2) ** 2 + tanh(v) * sinh(d)), small),
    sympy.erf: secant(erf, erf_form),
    sympy.erfc: secant(erfc, lambda u, v, d: -erf_form(u, v, d)),
    hypot: secant(root, lambda u, v, d: d * ((u + v) / (root(u) + root(v)))),
    sympy.loggamma: polygamma_secant(-1),
}
"""The rows by functions; those of powers are made by `power_secant`."""


def spelled(node: Node) -> tuple[Hashable, Node] | None:
    """The function f and the argument u of a value f(u) that has a row; log1p(x) is log(1 + x)."""
    head = head_of(node)
    if head is log1p:
        return sympy.log, add(constant(1), node.args[0])
    if head is Cbrt:
        return Fraction(1, 3), node.args[0]
    if head in (hypot, sympy.polygamma):
        first = rational(node.args[0])
        if head is hypot:
            return (hypot, node.args[1]) if first == 1 else None
        return (("polygamma", first), node.args[1]) if isinstance(first, int) else None
    if head is not None:
        return (head, node.args[0]) if head in SECANTS else None
    if isinstance(node.op, Pow):
        exponent = rational(node.args[1])
        return node.args[1] if exponent is None else exponent, node.args[0]
    return None


def secant_of(f: Hashable) -> Row:
    """The row of a function that `spelled` has named."""
    if isinstance(f, tuple):
        return polygamma_secant(f[1])
    return SECANTS[f] if f in SECANTS else power_secant(f)


# ---- powers ---------------------------------------------------------------------------------------


MAX_POWER = 6
"""Powers, also those of roots, up to which a difference is d Σ u^i v^(n−1−i)."""


@lru_cache(256)
def power_secant(exponent: Any) -> Row:
    """The row of u^p − v^p for a rational p, or for a node.

    Differences of roots are 0 where both may be. Others: the power of the smaller base, times expm1 of the
    difference of logarithms; u^p − 1 is expm1(p log u), also where u is far from 1.
    """
    p = FormulaNode(exponent if isinstance(exponent, Node) else constant(exponent))

    def power_of(u: FormulaNode) -> FormulaNode:
        return u**p

    if isinstance(exponent, Fraction):
        q, m = exponent.denominator, exponent.numerator
        if q in (2, 3) and 0 < m <= MAX_POWER:
            return secant(
                power_of,
                lambda u, v, d: _of_roots(u ** Fraction(1, q), v ** Fraction(1, q), d, q, m),
                differ,
                early=True,
            )

    def form(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
        if rational(v.node) == 1:
            return exp_1(p * where(2 * abs(d) < 1, log_1(d), log(u)))
        up, down = v**p * exp_1(p * log_1(d / v)), u**p * exp_1(p * log_1(-(d / u)))
        return by_sign(d, up, -down)

    return secant(power_of, form, lambda u, v, d: u > 0 if rational(v.node) == 1 else abs(d) < v)


def differ(u: FormulaNode, v: FormulaNode, d: FormulaNode) -> FormulaNode:
    """d ≠ 0."""
    return FormulaNode(constant(True) if rational(d.node) else compare("!=", d.node, constant(0)))


def _of_roots(r: FormulaNode, t: FormulaNode, d: FormulaNode, q: int, m: int) -> FormulaNode:
    """From d = r^q − t^q: d Σ r^i t^(m−1−i) / Σ r^i t^(q−1−i)."""
    over, under = (FormulaNode(powers_between(r.node, t.node, n)) for n in (m, q))
    return d * over / under


def powers_between(a: Node, b: Node, n: int) -> Node:
    """Σ_i a^i b^(n−1−i): the quotient of aⁿ − bⁿ and a − b."""
    return add(*(mul(power(a, constant(i)), power(b, constant(n - 1 - i))) for i in reversed(range(n))))

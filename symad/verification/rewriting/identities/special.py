"""Special functions in terms of one another: shifts and recurrences that hold at every real point.

Elliptic integrals and all their derivatives, by K or F, E and Π: sources by their formulas.
"""

from __future__ import annotations

from fractions import Fraction
from math import factorial, gcd

import sympy
from sympy.functions.combinatorial.numbers import stirling
from sympy.functions.special.elliptic_integrals import elliptic_e, elliptic_f, elliptic_k, elliptic_pi

from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import add, div, mul, neg, sub
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.sympy_functions.elliptic_moments import elliptic_moment, in_tables
from symad.sympy_functions.special_functions import polylog_slope, spherical_in
from symad.verification.rewriting.basis import Basis
from symad.verification.rewriting.identities.elementary import (
    exponential,
    logarithm,
    rational_power,
    sine_and_cosine,
)
from symad.verification.rewriting.identities.functions import ALIASES, Alias, aliased
from symad.verification.terms.linear_terms import linear_terms, number


@aliased(sympy.gamma)
def gamma_alias(args: Nodes, basis: Basis) -> Node:
    """Γ(m + k) = m (m + 1) ... (m + k − 1) Γ(m) for an integer k, and Γ(u) Γ(1 − u) = π/sin(πu)."""
    base, k = _without_whole_number(args[0])
    if _falls(base):
        sine = sine_and_cosine(mul(constant(sympy.pi), args[0]), basis)[1]
        return div(constant(sympy.pi), mul(sine, gamma_alias((sub(constant(1), args[0]),), basis)))
    factors = [add(base, constant(j)) for j in (range(k) if k > 0 else range(k, 0))]
    parts = _parts_of_multiple(base)
    value = mul(*[gamma_alias((z,), basis) for z in parts]) if parts else apply(sympy.gamma, base)
    if parts:
        value = mul(value, exponential(_multiplied(base, len(parts), basis), basis))
    if not factors:
        return value
    return mul(*factors, value) if k > 0 else div(value, mul(*factors))


@aliased(sympy.loggamma)
def loggamma_alias(args: Nodes, basis: Basis) -> Node:
    """The logarithm of Γ where the argument is positive: what Γ is of products, sums are of it."""
    if basis.sign(args[0]) != 1:
        return apply(sympy.loggamma, args[0])
    return logarithm(gamma_alias(args, basis), basis)


@aliased(sympy.zeta)
def zeta_alias(args: Nodes, basis: Basis) -> Node:
    """ζ(n + 1, x) = (−1)^(n+1) ψ_n(x)/n! for integers 1 ≤ n ≤ 8 (DLMF 25.11.12)."""
    order = constant_value(args[0])
    if len(args) != 2 or not isinstance(order, int) or not 2 <= order <= 9:
        return apply(sympy.zeta, *args)
    value = polygamma_alias((constant(order - 1), args[1]), basis)
    return div(value, constant((-1) ** order * factorial(order - 1)))


@aliased(sympy.polylog)
def polylog_alias(args: Nodes, basis: Basis) -> Node:
    """Li₁(x) = −log(1 − x)."""
    if constant_value(args[0]) != 1:
        return apply(sympy.polylog, *args)
    return mul(constant(-1), logarithm(sub(constant(1), args[1]), basis))


@aliased(sympy.uppergamma)
def uppergamma_alias(args: Nodes, basis: Basis) -> Node:
    """Γ(m + 1, x) = m Γ(m, x) + x^m exp(−x), for x > 0 (DLMF 8.8.2)."""
    (m, k), x = _without_whole_number(args[0]), args[1]
    if basis.sign(x) != 1 or k < 0:
        return apply(sympy.uppergamma, *args)
    value, decay = apply(sympy.uppergamma, m, x), div(constant(1), exponential(x, basis))
    for j in range(k):
        shifted = add(m, constant(j))
        value = add(mul(shifted, value), mul(basis.rewritten(power(x, shifted)), decay))
    return value


@aliased(sympy.lowergamma)
def lowergamma_alias(args: Nodes, basis: Basis) -> Node:
    """γ(s, x) = Γ(s) − Γ(s, x), for s > 0 and x > 0 (DLMF 8.2.3)."""
    if any(basis.sign(a) != 1 for a in args):
        return apply(sympy.lowergamma, *args)
    return sub(gamma_alias(args[:1], basis), uppergamma_alias(args, basis))


@aliased(sympy.polygamma)
def polygamma_alias(args: Nodes, basis: Basis) -> Node:
    """ψ_n(m + k) = ψ_n(m) + (−1)^n n! Σ 1/(m + j)^(n+1) over 0 ≤ j < k, for an integer k."""
    n = constant_value(args[0])
    if not isinstance(n, int) or not 0 <= n <= 8:
        return apply(sympy.polygamma, *args)
    base, k = _without_whole_number(args[1])
    if n <= 1 and _falls(base):  # ψ(u) = ψ(1 − u) − π cot(πu), and its derivative
        other = polygamma_alias((args[0], sub(constant(1), args[1])), basis)
        cosine, sine = sine_and_cosine(mul(constant(sympy.pi), args[1]), basis)
        if n == 0:
            return sub(other, div(mul(constant(sympy.pi), cosine), sine))
        return sub(div(power(constant(sympy.pi), constant(2)), mul(sine, sine)), other)
    steps = range(k) if k > 0 else range(k, 0)
    scale = (-1) ** n * factorial(n) * (1 if k > 0 else -1)
    terms = [div(constant(scale), power(add(base, constant(j)), constant(n + 1))) for j in steps]
    parts = _parts_of_multiple(base)
    if not parts:
        return add(apply(sympy.polygamma, args[0], base), *terms)
    share = constant(Fraction(1, len(parts) ** (n + 1)))
    terms += [mul(share, polygamma_alias((args[0], z), basis)) for z in parts]
    return add(*terms, *([] if n else [logarithm(constant(len(parts)), basis)]))


MAX_PARTS = 4
"""The maximum factor k of an argument k z that is divided by a multiplication theorem."""


def _parts_of_multiple(argument: Node) -> list[Node]:
    """z, z + 1/k, ..., z + (k − 1)/k for k z, with k > 1 the greatest divisor of integer coefficients."""
    found = [c for c, m in linear_terms(argument) if constant_value(m) != 1]
    whole = all(c.denominator == 1 for c in found)
    k = gcd(*[c.numerator for c in found]) if found and whole else 1
    if not 1 < k <= MAX_PARTS:
        return []
    return [div(add(argument, constant(j)), constant(k)) for j in range(k)]


def _multiplied(argument: Node, k: int, basis: Basis) -> Node:
    """log of Γ(k z) / Π Γ(z + j/k): (k z − 1/2) log k + (1 − k)/2 log 2π (DLMF 5.5.6)."""
    half = constant(Fraction(1, 2))
    turn = add(logarithm(constant(2), basis), logarithm(constant(sympy.pi), basis))
    return add(
        mul(sub(argument, half), logarithm(constant(k), basis)), mul(constant(Fraction(1 - k, 2)), turn)
    )


def _without_whole_number(argument: Node) -> tuple[Node, int]:
    """The argument as m + k with a small integer k, where that leaves a sum that is no number."""
    terms = linear_terms(argument)
    whole = next((c for c, m in terms if constant_value(m) == 1), Fraction(0))
    k = whole.numerator // whole.denominator
    if not k or len(terms) < 2 or abs(k) > 12:
        return argument, 0
    return sub(argument, constant(k)), k


def _falls(argument: Node) -> bool:
    """Whether an argument is a − c m with c > 0 and no more: it is reflected to one that rises."""
    terms = [c for c, m in linear_terms(argument) if constant_value(m) != 1]
    return len(terms) == 1 and terms[0] < 0


# ---- orders: Bessel functions, spherical ones, exponential integrals --------------------------------

MAX_ORDER, MAX_SPHERICAL_ORDER = 12, 6
"""The maximum orders of functions that are written by those of low orders; others remain."""


def _climbed(
    below: Node, here: Node, order: Fraction, last: Fraction, x: Node, signs: tuple[int, int]
) -> Node:
    """C of order ``last`` from C_{k−1} and C_k with k = ``order``, by C_{k+1} = s (2k/x) C_k + t C_{k−1}."""
    step, back = signs
    while order < last:
        middle = div(mul(constant(2 * order * step), here), x)
        below, here, order = here, add(middle, mul(constant(back), below)), order + 1
    return here


def _bessel_alias(head: type[sympy.Basic], signs: tuple[int, int]) -> Alias:
    """By those of the first two orders in 0 ≤ f < 2, or of order ±1/2, which are elementary for x > 0."""

    def rule(args: Nodes, basis: Basis) -> Node:
        n, x = number(args[0]), args[1]
        if n is None or abs(n) > MAX_ORDER:
            return apply(head, *args)
        whole = n.denominator == 1
        size = abs(n) if whole or head is sympy.besselk else n  # K is even in its order
        start = size % 1
        if size >= 0 and start == Fraction(1, 2) and basis.sign(x) == 1:
            return _climbed(*_of_half_orders(head, x, basis), start, size, x, signs)
        if size <= start:
            return apply(head, constant(size), x)
        first = _of_first_order(head, x) if whole else apply(head, constant(start + 1), x)
        value = _climbed(apply(head, constant(start), x), first, start + 1, size, x, signs)
        return neg(value) if n < 0 and n % 2 == 1 and head in (sympy.besselj, sympy.bessely) else value

    return rule


def _of_first_order(head: type[sympy.Basic], x: Node) -> Node:
    """Y₁ and K₁ by Wronskians (DLMF 10.5.2, 10.28.2): J₁ Y₀ − J₀ Y₁ = 2/(πx), I₀ K₁ + I₁ K₀ = 1/x."""
    other = {sympy.bessely: sympy.besselj, sympy.besselk: sympy.besseli}.get(head)
    if other is None:
        return apply(head, constant(1), x)
    (zeroth, first), over = (apply(other, constant(j), x) for j in (0, 1)), div(constant(1), x)
    mixed = mul(first, apply(head, constant(0), x))
    if head is sympy.besselk:
        return div(sub(over, mixed), zeroth)
    return div(sub(mixed, mul(div(constant(2), constant(sympy.pi)), over)), zeroth)


def _of_half_orders(head: type[sympy.Basic], x: Node, basis: Basis) -> tuple[Node, Node]:
    """C_{−1/2} and C_{1/2} (DLMF 10.16.1, 10.39.1, 10.39.2)."""
    if head is sympy.besselk:
        root = rational_power(div(constant(sympy.pi), mul(constant(2), x)), Fraction(1, 2), basis)
        value = div(root, exponential(x, basis))
        return value, value
    scale = rational_power(div(constant(2), mul(constant(sympy.pi), x)), Fraction(1, 2), basis)
    if head is sympy.besseli:
        pair = tuple(basis.rewritten(apply(f, x)) for f in (sympy.cosh, sympy.sinh))
    else:
        cosine, sine = sine_and_cosine(x, basis)
        pair = (cosine, sine) if head is sympy.besselj else (sine, neg(cosine))
    return mul(scale, pair[0]), mul(scale, pair[1])


def _spherical_alias(
    head: type[sympy.Basic], signs: tuple[int, int], lowest: tuple[type[sympy.Basic], type[sympy.Basic]]
) -> Alias:
    """j and i of orders k by orders −1 and 0, f(x)/x: Bessel functions of k + 1/2 times the same root."""

    def rule(args: Nodes, basis: Basis) -> Node:
        order, x, half = constant_value(args[0]), args[1], Fraction(1, 2)
        if not isinstance(order, int) or not 0 <= order <= MAX_SPHERICAL_ORDER:
            return apply(head, *args)
        below, here = (basis.rewritten(div(apply(f, x), x)) for f in lowest)
        return _climbed(below, here, half, order + half, x, signs)

    return rule


ALIASES[sympy.besselj] = _bessel_alias(sympy.besselj, (1, -1))
ALIASES[sympy.bessely] = _bessel_alias(sympy.bessely, (1, -1))
ALIASES[sympy.besseli] = _bessel_alias(sympy.besseli, (-1, 1))
ALIASES[sympy.besselk] = _bessel_alias(sympy.besselk, (1, 1))
ALIASES[sympy.jn] = _spherical_alias(sympy.jn, (1, -1), (sympy.cos, sympy.sin))
ALIASES[spherical_in] = _spherical_alias(spherical_in, (-1, 1), (sympy.cosh, sympy.sinh))


@aliased(sympy.expint)
def expint_alias(args: Nodes, basis: Basis) -> Node:
    """Integer orders by E_1: n E_{n+1}(x) = exp(−x) − x E_n(x), and E_0 = exp(−x)/x."""
    order, x = constant_value(args[0]), args[1]
    if not isinstance(order, int) or abs(order) > MAX_ORDER:
        return apply(sympy.expint, *args)
    decay = div(constant(1), exponential(x, basis))
    if order >= 1:
        below = basis.sign(x) == 1  # E₁(x) = −Ei(−x) for x > 0
        first = neg(apply(sympy.Ei, neg(x))) if below else apply(sympy.expint, constant(1), x)
        value, n = first, 1
    else:
        value, n = div(decay, x), 0
    while n < order:
        value, n = div(sub(decay, mul(x, value)), constant(n)), n + 1
    while n > order:
        value, n = div(sub(decay, mul(constant(n - 1), value)), x), n - 1
    return value


@aliased(polylog_slope)
def polylog_slope_alias(args: Nodes, basis: Basis) -> Node:
    """By polylogarithms of lower orders: x^k d^k/dx^k = Σ_j s(k, j) (x d/dx)^j, with Stirling's numbers."""
    order, s, x = constant_value(args[0]), args[1], args[2]
    if not isinstance(order, int) or order < 1:
        return apply(polylog_slope, *args)
    lower = [polylog_alias((sub(s, constant(j)), x), basis) for j in range(1, order + 1)]
    numbers = [stirling(order, j, kind=1, signed=True) for j in range(1, order + 1)]
    terms = [mul(constant(int(n)), value) for n, value in zip(numbers, lower, strict=True)]
    return div(add(*terms), power(x, constant(order)))


# ---- elliptic integrals and all their derivatives, by K or F, E and Π ----------------------------


@aliased(elliptic_moment)
def elliptic_moment_alias(args: Nodes, basis: Basis) -> Node:
    """By K, E, F and Π, as in tables (Byrd and Friedman 1971, 710.00, 713.00): for m, n ≠ 0, 1 and n ≠ m."""
    *orders, n = args[:4]
    p, r, q = (int(constant_value(order)) for order in orders)
    if not in_tables(p, r, q):
        return apply(elliptic_moment, *args)
    return _Moments(n, args[4:], basis).of(p, r, q)


class _Moments:
    """The integrals of one n, z and m, each by those of smaller orders."""

    def __init__(self, n: Node, rest: Nodes, basis: Basis) -> None:
        self.n, self.rest, self.m, self.basis = n, rest, rest[-1], basis
        self.complete, self.one = len(rest) == 1, constant(1)
        if not self.complete:
            self.cosine, self.sine = sine_and_cosine(rest[0], basis)

    def of(self, p: int, r: int, q: int) -> Node:
        """I(p, r, q), by sin² = (1 − Δ)/m or over n, and 1 = (n Δ_m − m Δ_n)/(n − m)."""
        n, m = self.n, self.m
        if p and r:
            return div(sub(self.of(p - 1, r, q), self.of(p - 1, r - 1, q)), n)
        if p:
            return div(sub(self.of(p - 1, 0, q), self.of(p - 1, 0, q - 1)), m)
        if r and q > 0:
            return div(sub(mul(n, self.of(0, r, q - 1)), mul(m, self.of(0, r - 1, q))), sub(n, m))
        if r > 2:
            return self.third_power(r)
        return (self.first, self.third, self.third_squared)[r](q)

    def first(self, q: int) -> Node:
        """I(0, 0, q) by F and E, with a recurrence from the derivative of sin cos Δ^(1/2 − q)."""
        m = self.m
        if q == 0:
            return apply(elliptic_k if self.complete else elliptic_f, *self.rest)
        if q == -1:
            return apply(elliptic_e, *self.rest)
        made = mul(constant(3 - 2 * q), self.first(q - 2))
        if q > 1:
            made = add(made, mul(mul(constant(2 * q - 2), sub(constant(2), m)), self.first(q - 1)))
        if not self.complete:
            made = sub(made, mul(m, self.sine, self.cosine, self.root(1 - 2 * q)))
        return div(made, mul(constant(2 * q - 1), sub(self.one, m)))

    def root(self, power: int) -> Node:
        """(1 − m sin² z)^(power/2)."""
        under = sub(self.one, mul(self.m, self.sine, self.sine))
        return rational_power(under, Fraction(power, 2), self.basis)

    def third(self, q: int) -> Node:
        """Π."""
        return apply(elliptic_pi, self.n, *self.rest)

    def third_squared(self, q: int) -> Node:
        """I(0, 2, 0) = Π + n ∂Π/∂n (DLMF 19.4.5)."""
        n, m, one = self.n, self.m, self.one
        slope = add(self.first(-1), div(mul(sub(m, n), self.first(0)), n))
        slope = add(slope, div(mul(sub(mul(n, n), m), self.third(0)), n))
        if not self.complete:
            under = sub(one, mul(n, self.sine, self.sine))
            slope = sub(slope, div(mul(n, self.root(1), self.sine, self.cosine), under))
        slope = div(slope, mul(constant(2), mul(sub(m, n), sub(n, one))))
        return add(self.third(0), mul(n, slope))

    def third_power(self, r: int) -> Node:
        """I(0, r, 0) by the three before it (Byrd and Friedman 1971, 336.03)."""
        n, m, one = self.n, self.m, self.one
        last = add(sub(mul(n, n), mul(constant(2), n, add(m, one))), mul(constant(3), m))
        middle = sub(add(mul(n, m), n), mul(constant(3), m))
        made = mul(constant(2 * r - 5), m, self.of(0, r - 3, 0))
        made = add(made, mul(constant(2 * r - 4), middle, self.of(0, r - 2, 0)))
        made = add(made, mul(constant(2 * r - 3), last, self.of(0, r - 1, 0)))
        if not self.complete:
            under = power(sub(one, mul(n, self.sine, self.sine)), constant(r - 1))
            made = add(made, div(mul(n, n, self.root(1), self.sine, self.cosine), under))
        return div(made, mul(constant(2 * r - 2), sub(one, n), sub(m, n)))

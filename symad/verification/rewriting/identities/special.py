"""Special functions in terms of one another: shifts and recurrences that hold at every real point."""

from __future__ import annotations

from fractions import Fraction
from math import factorial, gcd

import sympy
from sympy.functions.combinatorial.numbers import stirling

from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import add, div, mul, neg, sub
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.sympy_functions.special_functions import polylog_slope, spherical_in
from symad.verification.rewriting.basis import Basis
from symad.verification.rewriting.identities.elementary import (
    exponential,
    logarithm,
    rational_power,
    sine_and_cosine,
)
from symad.verification.rewriting.identities.functions import ALIASES, MAX_SPHERICAL_ORDER, Alias, aliased
from symad.verification.terms.linear_terms import linear_terms


@aliased(sympy.erfc)
def erfc_alias(args: Nodes, basis: Basis) -> Node:
    return sub(constant(1), apply(sympy.erf, args[0]))


@aliased(sympy.factorial)
def factorial_alias(args: Nodes, basis: Basis) -> Node:
    return gamma_alias((add(args[0], constant(1)),), basis)


@aliased(sympy.digamma)
def digamma_alias(args: Nodes, basis: Basis) -> Node:
    return polygamma_alias((constant(0), args[0]), basis)


@aliased(sympy.beta)
def beta_alias(args: Nodes, basis: Basis) -> Node:
    a, b = args[0], args[-1]
    over = mul(gamma_alias((a,), basis), gamma_alias((b,), basis))
    return div(over, gamma_alias((add(a, b),), basis))


@aliased(sympy.binomial)
def binomial_alias(args: Nodes, basis: Basis) -> Node:
    n, k = args
    one = constant(1)
    under = mul(gamma_alias((add(k, one),), basis), gamma_alias((add(sub(n, k), one),), basis))
    return div(gamma_alias((add(n, one),), basis), under)


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


def _bessel_alias(head: type[sympy.Basic], signs: tuple[int, int]) -> Alias:
    """Integer orders by those of order 0 and 1: C_{n+1} = s (2n/x) C_n + t C_{n−1}."""
    step, back = signs

    def rule(args: Nodes, basis: Basis) -> Node:
        n = constant_value(args[0])
        if isinstance(n, Fraction) and n.denominator > 1 and abs(n) <= 12:
            return _of_fractional_order(head, n, args[1], signs, basis)
        if not isinstance(n, int) or abs(n) > 12:
            return apply(head, *args)
        turned = n < 0 and n % 2 and head in (sympy.besselj, sympy.bessely)
        before, value = apply(head, constant(0), args[1]), _of_first_order(head, args[1])
        if n == 0:
            return before
        for j in range(1, abs(n)):
            middle = div(mul(constant(2 * j * step), value), args[1])
            before, value = value, add(middle, mul(constant(back), before))
        return mul(constant(-1), value) if turned else value

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


def _of_fractional_order(
    head: type[sympy.Basic], n: Fraction, x: Node, signs: tuple[int, int], basis: Basis
) -> Node:
    """By those of order f and f + 1 with 0 < f < 1, or of order ±1/2, which are elementary for x > 0."""
    step, back = signs
    if head is sympy.besselk:
        n = abs(n)  # K is even in its order
    start = n - n.numerator // n.denominator
    if n < 0:
        return apply(head, constant(n), x)
    elementary = start == Fraction(1, 2) and basis.sign(x) == 1
    if elementary:
        before, value, order = *_of_half_orders(head, x, basis), start
    else:
        before, order = apply(head, constant(start), x), start + 1
        value = apply(head, constant(order), x)
        if n == start:
            return before
    while order < n:
        middle = div(mul(constant(2 * order * step), value), x)
        before, value, order = value, add(middle, mul(constant(back), before)), order + 1
    return value


def _of_half_orders(head: type[sympy.Basic], x: Node, basis: Basis) -> tuple[Node, Node]:
    """C_{−1/2} and C_{1/2} (DLMF 10.16.1, 10.39.1, 10.39.2)."""
    over = div(constant(2), mul(constant(sympy.pi), x))
    e = exponential(x, basis)
    if head is sympy.besselk:
        value = div(rational_power(div(constant(sympy.pi), mul(constant(2), x)), Fraction(1, 2), basis), e)
        return value, value
    scale, (cosine, sine) = rational_power(over, Fraction(1, 2), basis), sine_and_cosine(x, basis)
    pair = {
        sympy.besselj: (cosine, sine),
        sympy.bessely: (sine, neg(cosine)),
        sympy.besseli: (
            div(add(e, div(constant(1), e)), constant(2)),
            div(sub(e, div(constant(1), e)), constant(2)),
        ),
    }[head]
    return mul(scale, pair[0]), mul(scale, pair[1])


ALIASES[sympy.besselj] = _bessel_alias(sympy.besselj, (1, -1))
ALIASES[sympy.bessely] = _bessel_alias(sympy.bessely, (1, -1))
ALIASES[sympy.besseli] = _bessel_alias(sympy.besseli, (-1, 1))
ALIASES[sympy.besselk] = _bessel_alias(sympy.besselk, (1, 1))


@aliased(sympy.airybiprime)
def airybiprime_alias(args: Nodes, basis: Basis) -> Node:
    """By the Wronskian Ai Bi′ − Ai′ Bi = 1/π (DLMF 9.2.7)."""
    Ai, slope, Bi = (apply(head, *args) for head in (sympy.airyai, sympy.airyaiprime, sympy.airybi))
    return div(add(div(constant(1), constant(sympy.pi)), mul(slope, Bi)), Ai)


@aliased(sympy.expint)
def expint_alias(args: Nodes, basis: Basis) -> Node:
    """Integer orders by E_1: n E_{n+1}(x) = exp(−x) − x E_n(x), and E_0 = exp(−x)/x."""
    order, x = constant_value(args[0]), args[1]
    if not isinstance(order, int) or abs(order) > 12:
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


@aliased(sympy.E1)
def e1_alias(args: Nodes, basis: Basis) -> Node:
    return expint_alias((constant(1), args[0]), basis)


@aliased(spherical_in)
def spherical_in_alias(args: Nodes, basis: Basis) -> Node:
    """i₋₁ = cosh x/x, i₀ = sinh x/x, i_{k+1} = i_{k−1} − (2k + 1) i_k/x (DLMF 10.49.8, 10.51.4)."""
    order, x = constant_value(args[0]), args[1]
    if not isinstance(order, int) or not 0 <= order <= MAX_SPHERICAL_ORDER:
        return apply(spherical_in, *args)
    below, here = (div(ALIASES[head]((x,), basis), x) for head in (sympy.cosh, sympy.sinh))
    for k in range(order):
        below, here = here, sub(below, mul(div(constant(2 * k + 1), x), here))
    return here


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

"""Special functions in terms of one another: shifts and recurrences that hold at every real point."""

from __future__ import annotations

from fractions import Fraction
from math import factorial
from typing import Any

import sympy

from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.ops.arrays.sources import constant, constant_value
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.arithmetic import add, div, mul, sub
from symad.ops.elementwise.powers import power
from symad.verification.rewriting.basis import Basis
from symad.verification.rewriting.elementary import exponential
from symad.verification.rewriting.function_identities import ALIASES, Alias, aliased
from symad.verification.rewriting.linear_terms import linear_terms


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
    """Γ(m + k) = m (m + 1) ... (m + k − 1) Γ(m) for an integer k."""
    base, k = _without_whole_number(args[0])
    factors = [add(base, constant(j)) for j in (range(k) if k > 0 else range(k, 0))]
    value = apply(sympy.gamma, base)
    if not factors:
        return value
    return mul(*factors, value) if k > 0 else div(value, mul(*factors))


@aliased(sympy.polygamma)
def polygamma_alias(args: Nodes, basis: Basis) -> Node:
    """ψ_n(m + k) = ψ_n(m) + (−1)^n n! Σ 1/(m + j)^(n+1) over 0 ≤ j < k, for an integer k."""
    n = constant_value(args[0])
    if not isinstance(n, int) or not 0 <= n <= 8:
        return apply(sympy.polygamma, *args)
    base, k = _without_whole_number(args[1])
    steps = range(k) if k > 0 else range(k, 0)
    scale = (-1) ** n * factorial(n) * (1 if k > 0 else -1)
    terms = [div(constant(scale), power(add(base, constant(j)), constant(n + 1))) for j in steps]
    return add(apply(sympy.polygamma, args[0], base), *terms)


def _without_whole_number(argument: Node) -> tuple[Node, int]:
    """The argument as m + k with a small integer k, where that leaves a sum that is no number."""
    terms = linear_terms(argument)
    whole = next((c for c, m in terms if constant_value(m) == 1), Fraction(0))
    k = whole.numerator // whole.denominator
    if not k or len(terms) < 2 or abs(k) > 12:
        return argument, 0
    return sub(argument, constant(k)), k


def _bessel_alias(head: Any, signs: tuple[int, int]) -> Alias:
    """Integer orders by those of order 0 and 1: C_{n+1} = s (2n/x) C_n + t C_{n−1}."""
    step, back = signs

    def rule(args: Nodes, basis: Basis) -> Node:
        n = constant_value(args[0])
        if not isinstance(n, int) or abs(n) > 12:
            return apply(head, *args)
        turned = n < 0 and n % 2 and head in (sympy.besselj, sympy.bessely)
        before, value = (apply(head, constant(j), args[1]) for j in (0, 1))
        if n == 0:
            return before
        for j in range(1, abs(n)):
            middle = div(mul(constant(2 * j * step), value), args[1])
            before, value = value, add(middle, mul(constant(back), before))
        return mul(constant(-1), value) if turned else value

    return rule


ALIASES[sympy.besselj] = _bessel_alias(sympy.besselj, (1, -1))
ALIASES[sympy.bessely] = _bessel_alias(sympy.bessely, (1, -1))
ALIASES[sympy.besseli] = _bessel_alias(sympy.besseli, (-1, 1))
ALIASES[sympy.besselk] = _bessel_alias(sympy.besselk, (1, 1))


@aliased(sympy.expint)
def expint_alias(args: Nodes, basis: Basis) -> Node:
    """Integer orders by E_1: n E_{n+1}(x) = exp(−x) − x E_n(x), and E_0 = exp(−x)/x."""
    order, x = constant_value(args[0]), args[1]
    if not isinstance(order, int) or abs(order) > 12:
        return apply(sympy.expint, *args)
    decay = div(constant(1), exponential(x, basis))
    if order >= 1:
        value, n = apply(sympy.expint, constant(1), x), 1
    else:
        value, n = div(decay, x), 0
    while n < order:
        value, n = div(sub(decay, mul(x, value)), constant(n)), n + 1
    while n > order:
        value, n = div(sub(decay, mul(constant(n - 1), value)), x), n - 1
    return value


@aliased(sympy.E1)
def e1_alias(args: Nodes, basis: Basis) -> Node:
    return apply(sympy.expint, constant(1), args[0])

"""Elliptic integrals and all their derivatives, by K or F, E and Π: sources by their formulas."""

from __future__ import annotations

from fractions import Fraction

from sympy.functions.special.elliptic_integrals import elliptic_e, elliptic_f, elliptic_k, elliptic_pi

from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import add, div, mul, sub
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.sympy_functions.elliptic_integral import elliptic_moment, in_tables
from symad.verification.rewriting.basis import Basis
from symad.verification.rewriting.identities.elementary import rational_power, sine_and_cosine
from symad.verification.rewriting.identities.functions import aliased


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

"""Variables t of Laurent series, and the series of nodes that depend on t.

A variable is an input, the argument of a function up to a number, or u − 1 for a logarithm or a root of u,
such as x/y − 1: there x = y (1 + t).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import sympy

from symad.core.graph import Node
from symad.ops.basic.arithmetic import Add, add, mul
from symad.ops.basic.sources import Constant, Input, constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import equal, select
from symad.stable.laurent import FACTORS, ROOT_OF_PI, ROUNDED, SERIES, Laurent, product_of, scaled, sum_of
from symad.stable.normal_forms import ONE, Forms, Monomial, Term, head_of, product, rational

DEPTH, MAX_DEPENDENT = 4, 4
"""The depth of functions in functions that are expanded; the terms of sums in a sum at most."""


class Substitution(NamedTuple):
    """An input x = R ((t − b)/a)^k with factors R."""

    x: Node
    rest: Monomial
    a: float | Fraction
    b: float | Fraction
    k: int

    def expanded(self) -> tuple[Monomial, Laurent] | None:
        """R and the series of x/R."""
        ratio = sum_of([scaled(1 / Fraction(self.a), 1), scaled(-self.b / Fraction(self.a))])
        made = None if ratio is None else ratio.power(self.k)
        return None if made is None else (self.rest, made)

    def zero(self) -> float:
        """The input x at t = 0 if there are no factors R."""
        return float(-self.b / Fraction(self.a)) ** self.k


@dataclass(frozen=True)
class SeriesVariable:
    """t, a product of powers, with the series of functions of t."""

    monomial: Monomial
    forms: Forms
    known: dict[Node, tuple[Monomial, Laurent] | None] = field(default_factory=dict)

    @cached_property
    def substituted(self) -> Substitution | None:
        """The input x as a function of t = (a u + b v)/v, if x is in u alone."""
        sums = [base for base, k in self.monomial if k == 1 and type(base.op) is Add]
        terms = self.forms.terms(sums[0]) if len(sums) == 1 else {}
        over = self.forms.ordered({base: -k for base, k in self.monomial if base not in sums})
        if len(terms) != 2 or over not in terms:
            return None
        (u,) = [m for m in terms if m != over]
        free = [(x, k) for x, k in u if type(x.op) is Input and abs(k) == 1 and x not in dict(over)]
        if not free:
            return None
        x, k = free[0]
        rest = self.forms.ordered({**dict(self.forms.times(over, u, -1)), x: 0})
        return Substitution(x, tuple([(b, j * k) for b, j in rest]), terms[u], terms[over], k)

    def may_hold(self, base: Node) -> bool:
        """Whether a factor may depend on t, or come from a function that does, quickly."""
        if type(base.op) is Apply:
            inside = base.args[0]
            return base.op.head in SERIES and (bool(inside.args) or self.may_hold(inside))
        if type(base.op) in (Add, Pow, Constant) or any([base is b for b, _ in self.monomial]):
            return True
        return self.substituted is not None and base is self.substituted.x

    def split(self, term: Term, depth: int = DEPTH) -> tuple[Monomial, list[Laurent]]:
        """The factors that do not depend on t, and the series of the others."""
        rest, made = dict[Node, int](), [scaled(term[0])]
        for base, k in term[1]:
            others, part = self._factor(base, depth) or (((base, 1),), None)
            inner = None if part is None else part.power(k)
            if inner is not None:
                made.append(inner)
            for b, j in others:
                rest[b] = rest.get(b, 0) + j * k
        base, highest = min(self.monomial, key=_rank)
        k = int(rest.get(base, 0) / highest)
        if k and self.substituted is None:
            made.append(scaled(1, k))
            for b, j in self.monomial:
                rest[b] = rest.get(b, 0) - j * k
        return self.forms.ordered(rest), made

    def _factor(self, base: Node, depth: int) -> tuple[Monomial, Laurent] | None:
        """Other factors and the series of a function of t; None if it is none."""
        if base is ROOT_OF_PI:
            return ((ROUNDED, 1),), scaled(1)
        if base not in self.known:
            if not base.args and self.substituted is not None and base is self.substituted.x:
                self.known[base] = self.substituted.expanded()
            elif not base.args or not depth:
                return None
            else:
                self.known[base] = self._expanded(base, depth - 1)
        return self.known[base]

    def _expanded(self, base: Node, depth: int) -> tuple[Monomial, Laurent] | None:
        if type(base.op) is Add:
            return self.sum_of(base, depth)
        head, inside = head_of(base), base.args[0]
        rest = FACTORS.get(head, ONE)
        if type(base.op) is Pow and constant_value(base.args[1]) is None:
            whole, moving = whole_part(base.args[1], self.forms)
            head, inside = sympy.exp, exponent_of(inside, moving)
            rest = ((base.args[0], whole),) if whole else ONE
        elif type(base.op) is not Pow and head not in SERIES:
            return None
        given = self.sum_of(inside, depth)
        if given is None or given[0]:
            return None
        made = SERIES[head](given[1]) if head in SERIES else given[1].power(rational(base.args[1]) or 0)
        return None if made is None else (rest, made)

    def sum_of(self, node: Node, depth: int) -> tuple[Monomial, Laurent] | None:
        """The factors and the series of a sum whose terms have equal factors; None for others."""
        terms = self.forms.terms(node)
        if not 0 < len(terms) <= MAX_DEPENDENT:
            return None
        parts = [self.split((c, m), depth) for m, c in terms.items()]
        if len({rest for rest, _ in parts}) > 1:
            return None
        whole = sum_of([product_of(part) for _, part in parts])
        return None if whole is None else (parts[0][0], whole)


def variable_of(t: Monomial, forms: Forms) -> SeriesVariable:
    """The variable with few coefficients, which all sums of a graph share."""
    if t not in forms.variables:
        forms.variables[t] = SeriesVariable(t, forms)
    return forms.variables[t]


def _rank(factor: tuple[Node, int]) -> tuple[int, bool]:
    """Factors of t by which powers of t are counted: inputs rather than numbers."""
    return abs(factor[1]), type(factor[0].op) is Constant


def exponent_of(base: Node, exponent: Node) -> Node:
    """The number e log b of b^e = exp(e log b), with the logarithm that is in slopes."""
    return mul(exponent, apply(sympy.log, select(equal(base, constant(0)), constant(1), base)))


def whole_part(exponent: Node, forms: Forms) -> tuple[int, Node]:
    """The whole number in an exponent n + e, and e."""
    whole = forms.terms(exponent).get(ONE, 0) if type(exponent.op) is Add else 0
    if not isinstance(whole, int) or not whole:
        return 0, exponent
    return whole, product(*forms.monomial(add(exponent, constant(-whole))))

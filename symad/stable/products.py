"""Products: two factors that overflow or cancel are one function that does not, by a row of `PRODUCTS`.

The factors are found in a product and in products in it; functions that a row does not pair stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from fractions import Fraction
from typing import Any

import sympy
from sympy.codegen.cfunctions import expm1

from symad.core.graph import Node
from symad.ops.basic.arithmetic import Mul, div
from symad.ops.basic.sources import Constant, constant
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Select, compare, logic, select
from symad.stable.normal_forms import Forms, Monomial, collected, head_of, product
from symad.stable.rows import PRODUCTS, FormulaNode, Row, function, of_pair

SQUARES = (sympy.sin, sympy.sinh, sympy.tan)
"""Functions whose squares are made by rows of sums."""


def is_quotient(node: Node) -> bool:
    """Whether a node is a quotient by other nodes than numbers."""
    op = node.op
    return type(op) is Mul and any(
        [p < 0 and type(a.op) is not Constant for p, a in zip(op.powers, node.args, strict=True)]
    )


def may_have_pairs(heads: Set[Any], quotients: bool) -> bool:
    """Whether a row may apply to products of a graph with these functions, with or without quotients."""
    rows = [row for f in heads for row in PRODUCTS.get(f, ())]
    paired = any([row.pattern.other in heads and (quotients or row.pattern.power > 0) for row in rows])
    return paired or (quotients and not heads.isdisjoint(SQUARES))


def may_simplify(factors: Monomial) -> bool:
    """Whether a row may apply: quickly, since it is asked for each product."""
    given = [(base.op.head, k) for base, k in factors if type(base.op) is Apply]
    for f, k in given:
        for row in PRODUCTS.get(f, ()):
            if any([g is row.pattern.other and j * k * row.pattern.power > 0 for g, j in given]):
                return True
        if f in SQUARES and k > 0 and any([j < 0 for _, j in factors]):
            return True
    return [f for f, _ in given].count(expm1) > 2


def has_pair(node: Node) -> bool:
    """Whether a row may replace two functions that are factors of a product, before differentiation."""
    heads = {a.op.head for a in node.args if type(a.op) is Apply}
    return len(heads) > 1 and any(
        [
            row.early and row.pattern.power > 0 and row.pattern.other in heads
            for f in heads
            for row in PRODUCTS.get(f, ())
        ]
    )


def better_product(node: Node, forms: Forms, last: bool) -> Node | None:
    """The product with two factors replaced, or more; None if no row applies."""
    coefficient, factors = forms.monomial(node)
    changed = False
    while (found := next(_found(factors, forms, last), None)) is not None:
        f, g, row, value = found
        powers = dict(factors)
        sign = 1 if powers[f] > 0 else -1
        count = sign * min(abs(powers[f]), abs(powers[g]))
        c, m = forms.monomial(value)
        coefficient, changed = coefficient * Fraction(c) ** count, True
        left = forms.times(factors, ((f, 1), (g, row.pattern.power)), -count)
        factors = forms.times(left, m, count)
    cotangents = _cotangents(factors, forms)
    if cotangents is not None:
        left, value = cotangents
        factors, changed = forms.times(left, ((value, 1),)), True
    quotients = _quotients(factors, forms) if last else factors
    return product(coefficient, quotients) if changed or quotients is not factors else None


def in_branches(node: Node, forms: Forms) -> Node | None:
    """The product m select(c, a, b) as select(c, m a, m b) where factors of m and a cancel; else None.

    The product has no value at 0 of a factor by which it was divided.
    """
    coefficient, factors = forms.monomial(node)
    for f, k in factors:
        if k != 1 or type(f.op) is not Select:
            continue
        (condition, near, far), rest = f.args, tuple([pair for pair in factors if pair[0] is not f])
        c, m = forms.monomial(near)
        powers = dict(m)
        met = [(b, j) for b, j in rest if j * powers.get(b, 0) < 0]
        if met:
            given = [compare("!=", b, constant(0)) for b, j in met if j < 0]
            return select(
                logic("and", condition, *given),
                product(coefficient * c, forms.times(rest, m)),
                product(coefficient, forms.times(rest, ((far, 1),))),
            )
    return None


def _quotients(factors: Monomial, forms: Forms) -> Monomial:
    """(f/g)² for f²/g², where both are 0: f = sin(u), and g a factor of u."""
    for f, k in factors:
        if k > 1 and head_of(f) in SQUARES:
            for g, j in forms.monomial(f.args[0])[1]:
                n = min(k, -dict(factors).get(g, 0))
                if j > 0 and n > 1:
                    return forms.times(factors, ((f, -1), (g, 1), (div(f, g), 1)), n)
    return factors


def _cotangents(factors: Monomial, forms: Forms) -> tuple[Monomial, Node] | None:
    """expm1(u + v)/(expm1(u) expm1(v)) = (coth(u/2) + coth(v/2))/2, whose slopes do not cancel."""
    over = [f for f, k in factors if k == 1 and head_of(f) is expm1]
    under = [f for f, k in factors if k == -1 and head_of(f) is expm1]
    if len(over) != 1 or len(under) != 2:
        return None
    given = [forms.monomial(f.args[0]) for f in (*under, *over)]
    shared = set(given[0][1]).intersection(given[1][1], given[2][1])
    left = [(c, tuple([pair for pair in m if pair not in shared])) for c, m in given]
    u, v, w = (forms.terms(product(c, m)) for c, m in left)
    if collected((1, u), (1, v), (-1, w))[0]:
        return None
    coth = function(sympy.coth)
    made = (coth(FormulaNode(under[0].args[0]) / 2) + coth(FormulaNode(under[1].args[0]) / 2)) / 2
    return forms.times(factors, ((over[0], -1), *((f, 1) for f in under))), made.node


def _found(factors: Monomial, forms: Forms, last: bool) -> Iterator[tuple[Node, Node, Row, Node]]:
    """Two factors, their row, and the function that they are; or of which their product is the reciprocal."""
    functions = [(f, k, head_of(f)) for f, k in factors if type(f.op) is Apply]
    for sign in (1, -1):
        for f, k, head in functions:
            for row in PRODUCTS.get(head, ()) if k * sign > 0 else ():
                for g, j, other in functions if last or row.early else ():
                    if other is row.pattern.other and j * row.pattern.power * sign > 0 and f is not g:
                        value = of_pair(row, f, g, forms)
                        if value is not None:
                            yield f, g, row, value

"""The tables of pairs: two factors, or terms, that overflow or cancel are one function that does not.

The engine finds the two factors in a product and in products in it; a row says which function they are. Sums
of two functions are found by `symad.stable.steps`. Every row is proved by `tests/symad/stable/test_rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy
from sympy.codegen.cfunctions import expm1

from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import Mul, add, div, mul, neg
from symad.ops.basic.sources import Constant, constant
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import HALF, power, sqrt
from symad.ops.elementwise.selection import Select, compare, logic, select
from symad.stable.formulas import FormulaNode, function
from symad.stable.normal_forms import Forms, Monomial, collected, head_of, product
from symad.sympy_functions.probability import gammainc, gammaincc, normal_ratio
from symad.sympy_functions.scalar_functions import sigmoid, softplus

ONE, TWO = constant(1), constant(2)
Relation = Callable[[Nodes, Nodes], "Node | None"]


@dataclass(frozen=True)
class PairRow:
    """f(u) g(v)^power, or f(u) + power g(v), is form(u, v) for a function g, ``other``.

    The form is None if u and v are not related as needed.
    """

    other: Any
    power: int
    form: Relation
    early: bool = True


def same(form: Callable[[FormulaNode], FormulaNode]) -> Relation:
    """The form of u for v = u."""
    return lambda u, v: form(FormulaNode(u[0])).node if u == v else None


def opposite(form: Callable[[FormulaNode], FormulaNode]) -> Relation:
    """The form of u for v = −u."""

    def relation(u: Nodes, v: Nodes) -> Node | None:
        forms = Forms()
        (c, m), (k, n) = forms.monomial(u[0]), forms.monomial(v[0])
        return form(FormulaNode(u[0])).node if m == n and c == -k else None

    return relation


def twice(u: Nodes, v: Nodes) -> Node | None:
    """exp(v) + 1 for u = 2v."""
    return add(apply(sympy.exp, v[0]), ONE) if u[0] is mul(TWO, v[0]) else None


def distribution(head: sympy.FunctionClass) -> Relation:
    """head(a, x) for a function of (a, x) and one of a."""
    return lambda u, v: apply(head, *u) if u[0] is v[0] else None


def normal_slope(u: Nodes, v: Nodes) -> Node | None:
    """√(π/2) h(−√2 v) for u = −v², with the slope h of log Φ."""
    forms = Forms()
    c, m = forms.monomial(neg(power(v[0], TWO)))
    k, m = forms.rooted(m)
    given, n = forms.monomial(u[0])
    j, n = forms.rooted(n)
    if (given * j, n) != (c * k, m):  # √p where exp(p) is, or of a number
        return None
    x = product(*forms.monomial(neg(mul(sqrt(TWO), v[0]))))
    return ((FormulaNode(constant(sympy.pi)) / 2) ** HALF * apply(normal_ratio, x)).node


def scaled_tail(u: Nodes, v: Nodes) -> Node | None:
    """√(2/π)/h(−√2 v) for u = v², if v > 0; else the factors are not small beside each other."""
    made = normal_slope((neg(u[0]),), v)
    given = mul(apply(sympy.exp, u[0]), apply(sympy.erfc, v[0]))
    return None if made is None else select(compare("<", constant(0), v[0]), div(ONE, made), given)


s, tanh, exp_1 = function(sigmoid), function(sympy.tanh), function(expm1)
PRODUCTS: dict[Any, tuple[PairRow, ...]] = {
    sympy.sinh: (PairRow(sympy.cosh, -1, same(tanh)), PairRow(sympy.sech, 1, same(tanh))),
    sympy.cosh: (PairRow(sympy.sinh, -1, same(function(sympy.coth))),),
    sympy.exp: (
        PairRow(expm1, -1, same(lambda u: -(1 / exp_1(-u)))),
        PairRow(sympy.sinh, -1, same(lambda u: -(2 / exp_1(-2 * u)))),
        PairRow(sympy.cosh, -1, same(lambda u: 2 * s(2 * u))),
        PairRow(sympy.cosh, -1, opposite(lambda u: 2 * s(2 * u))),
        PairRow(sympy.erfc, -1, normal_slope, early=False),
        PairRow(sympy.erfc, 1, scaled_tail),
        PairRow(sigmoid, 1, opposite(s)),
        PairRow(sympy.exp, 1, opposite(lambda u: FormulaNode(ONE))),
    ),
    expm1: (
        PairRow(sigmoid, 1, opposite(lambda u: tanh(u / 2))),
        PairRow(expm1, -1, twice),
        PairRow(expm1, 1, opposite(lambda u: -(4 * function(sympy.sinh)(u / 2) ** 2))),
    ),
    sigmoid: (PairRow(sigmoid, -1, opposite(function(sympy.exp))),),
    sympy.lowergamma: (PairRow(sympy.gamma, -1, distribution(gammainc)),),
    sympy.uppergamma: (PairRow(sympy.gamma, -1, distribution(gammaincc)),),
}
"""The rows of products by f."""

REFLECTIONS: dict[Any, tuple[PairRow, ...]] = {
    sympy.exp: (
        PairRow(sympy.exp, 1, opposite(lambda u: 2 * function(sympy.cosh)(u))),
        PairRow(sympy.exp, -1, opposite(lambda u: 2 * function(sympy.sinh)(u))),
    ),
    softplus: (PairRow(softplus, -1, opposite(lambda u: u)),),
    sigmoid: (PairRow(sigmoid, 1, opposite(lambda u: FormulaNode(ONE))),),
}
"""The rows of sums f(u) ± f(−u) by f, for a u that has no negative factor."""


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
    paired = any([row.other in heads and (quotients or row.power > 0) for row in rows])
    return paired or (quotients and not heads.isdisjoint(SQUARES))


def may_simplify(factors: Monomial) -> bool:
    """Whether a row may apply: quickly, since it is asked for each product."""
    given = [(base.op.head, k) for base, k in factors if type(base.op) is Apply]
    for f, k in given:
        for row in PRODUCTS.get(f, ()):
            if any([g is row.other and j * k * row.power > 0 for g, j in given]):
                return True
        if f in SQUARES and k > 0 and any([j < 0 for _, j in factors]):
            return True
    return [f for f, _ in given].count(expm1) > 2


def has_pair(node: Node) -> bool:
    """Whether a row may replace two functions that are factors of a product, before differentiation."""
    heads = {a.op.head for a in node.args if type(a.op) is Apply}
    return len(heads) > 1 and any(
        [row.early and row.power > 0 and row.other in heads for f in heads for row in PRODUCTS.get(f, ())]
    )


def better_product(node: Node, forms: Forms, last: bool) -> Node | None:
    """The product with two factors replaced, or more; None if no row applies."""
    coefficient, factors = forms.monomial(node)
    changed = False
    while (found := next(_found(factors, last), None)) is not None:
        f, g, row, value = found
        powers = dict(factors)
        sign = 1 if powers[f] > 0 else -1
        count = sign * min(abs(powers[f]), abs(powers[g]))
        c, m = forms.monomial(value)
        coefficient, changed = coefficient * Fraction(c) ** count, True
        left = forms.times(factors, ((f, 1), (g, row.power)), -count)
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


def _found(factors: Monomial, last: bool) -> Iterator[tuple[Node, Node, PairRow, Node]]:
    """Two factors, their row, and the function that they are; or of which their product is the reciprocal."""
    functions = [(f, k, head_of(f)) for f, k in factors if type(f.op) is Apply]
    for sign in (1, -1):
        for f, k, head in functions:
            for row in PRODUCTS.get(head, ()) if k * sign > 0 else ():
                for g, j, other in functions if last or row.early else ():
                    if other is row.other and j * row.power * sign > 0 and f is not g:
                        value = row.form(f.args, g.args)
                        if value is not None:
                            yield f, g, row, value

"""The table of products: two factors that overflow, or cancel, are one function that does not.

The engine finds the two factors in a product and in products in it; a row says which function they are. Every
row is proved by `tests/symad/stable/test_rows.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy
from sympy.codegen.cfunctions import expm1

from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import Add, add, div, mul, neg, signed_product
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import HALF, Pow, power, sqrt
from symad.stable.normal_forms import Forms, Monomial, head_of, product, rational, times
from symad.sympy_functions.probability import gammainc, gammaincc, normal_ratio
from symad.sympy_functions.scalar_functions import sigmoid

ONE, TWO = constant(1), constant(2)


@dataclass(frozen=True)
class Product:
    """f(u) g(v)^power = form(u, v), which is None where u and v are not related as the row needs.

    ``other``: the function g, or `Add` for 1 + exp(v).
    """

    other: Any
    power: int
    form: Callable[[Nodes, Nodes], Node | None]
    early: bool = True


def same(head: sympy.FunctionClass, scale: Node = ONE) -> Callable[[Nodes, Nodes], Node | None]:
    """head(u/scale) for v = u."""
    return lambda u, v: apply(head, div(u[0], scale)) if u == v else None


def opposite(form: Callable[[Node], Node]) -> Callable[[Nodes, Nodes], Node | None]:
    """The form of u for v = −u."""
    return lambda u, v: form(u[0]) if v[0] is neg(u[0]) or u[0] is neg(v[0]) else None


def twice(u: Nodes, v: Nodes) -> Node | None:
    """exp(v) + 1 for u = 2v."""
    return add(apply(sympy.exp, v[0]), ONE) if u[0] is mul(TWO, v[0]) else None


def distribution(head: sympy.FunctionClass) -> Callable[[Nodes, Nodes], Node | None]:
    """head(a, x) for a function of (a, x) and one of a."""
    return lambda u, v: apply(head, *u) if u[0] is v[0] else None


def of_negative(u: Nodes, v: Nodes) -> Node | None:
    """−1/expm1(−u) for v = u."""
    return neg(div(ONE, apply(expm1, neg(u[0])))) if u == v else None


def normal_slope(u: Nodes, v: Nodes) -> Node | None:
    """√(π/2) h(−√2 v) for u = −v², with the slope h of log Φ."""
    forms = Forms()
    if not _is_square(u[0], v[0], forms):
        return None
    x = product(*forms.monomial(neg(mul(sqrt(TWO), v[0]))))
    return mul(sqrt(div(constant(sympy.pi), TWO)), apply(normal_ratio, x))


def _is_square(u: Node, v: Node, forms: Forms) -> bool:
    """Whether u = −v² for v with roots of numbers."""
    c, m = forms.monomial(neg(power(v, TWO)))
    for base, k in m:
        if type(base.op) is Pow and rational(base.args[1]) == HALF and k % 2 == 0:
            c *= Fraction(rational(base.args[0]) or 0) ** (k // 2)
            m = m - {(base, k)}
    return forms.monomial(u) == (c, m)


PRODUCTS: dict[Any, tuple[Product, ...]] = {
    sympy.sinh: (Product(sympy.cosh, -1, same(sympy.tanh)), Product(sympy.sech, 1, same(sympy.tanh))),
    sympy.cosh: (Product(sympy.sinh, -1, same(sympy.coth)),),
    sympy.exp: (
        Product(expm1, -1, of_negative),
        Product(sympy.erfc, -1, normal_slope, early=False),
        Product(sigmoid, 1, opposite(lambda u: apply(sigmoid, u))),
    ),
    expm1: (
        Product(Add, -1, same(sympy.tanh, TWO)),
        Product(sigmoid, 1, opposite(lambda u: apply(sympy.tanh, div(u, TWO)))),
        Product(expm1, -1, twice),
    ),
    sigmoid: (Product(sigmoid, -1, opposite(lambda u: apply(sympy.exp, u))),),
    sympy.lowergamma: (Product(sympy.gamma, -1, distribution(gammainc)),),
    sympy.uppergamma: (Product(sympy.gamma, -1, distribution(gammaincc)),),
}
"""The rows by f."""


def better_product(node: Node, forms: Forms, last: bool) -> Node | None:
    """The product with two factors replaced, or more; None if no row applies."""
    coefficient, factors = forms.monomial(node)
    made: list[tuple[int, Node]] = []
    while (found := next(_found(factors, last), None)) is not None:
        f, g, row, value = found
        powers = dict(factors)
        count = min(powers[f], abs(powers[g]))
        factors = times(factors, frozenset([(f, -count), (g, -row.power * count)]))
        made.append((1, power(value, constant(count))))
    return signed_product([*made, (1, product(coefficient, factors))]) if made else None


def _found(factors: Monomial, last: bool) -> Iterator[tuple[Node, Node, Product, Node]]:
    """Two factors, their row, and the function that they are."""
    rows = [(f, row) for f, k in factors if k > 0 and (h := head_of(f)) in PRODUCTS for row in PRODUCTS[h]]
    if not rows or len(factors) < 2:
        return
    heads = {head_of(g) for g, _ in factors}
    for f, row in rows:
        if (row.other is Add or row.other in heads) and (last or row.early):
            for g, j in factors:
                value = _value(row, f, g) if j * row.power > 0 else None
                if value is not None:
                    yield f, g, row, value


def _value(row: Product, f: Node, g: Node) -> Node | None:
    if f is g:
        return None
    if row.other is not Add:
        return row.form(f.args, g.args) if head_of(g) is row.other else None
    exponential = next((a for a in g.args if head_of(a) is sympy.exp), None) if type(g.op) is Add else None
    if exponential is None or g is not add(ONE, exponential):
        return None
    return row.form(f.args, exponential.args)

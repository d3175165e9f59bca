"""The notation of all rows, and the rows of one argument.

A row is an identity with a condition: what is written, and the result that is taken in its place. Both are
formulas of nodes in Python's operators; the engines read from ``written`` what they look for. The tables here
hold sums beside a number and of two functions, products of two functions, functions of 1 + u, and logarithms;
differences f(u) − f(v) are in `symad.stable.secants`. `tests/symad/stable/test_rows.py` proves every row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import sympy
from sympy.codegen.cfunctions import expm1, log1p

from symad.core.graph import Node, op_of, rebuild
from symad.ops.basic.arithmetic import add, div, mul, neg, signed_product, sub
from symad.ops.basic.sources import Input, constant, input_node
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import HALF, power
from symad.ops.elementwise.selection import compare, logic, select
from symad.stable.normal_forms import ONE, Forms, Number, Term, head_of, product, rational
from symad.sympy_functions.probability import gammainc, gammaincc, log_ndtr, normal_ratio
from symad.sympy_functions.scalar_functions import logcosh, sigmoid, softplus

# ---- formulas of nodes in Python's notation ------------------------------------------------------


def node_of(value: Any) -> Node:
    """The node of a formula, of a node, or of an exact number."""
    if isinstance(value, FormulaNode):
        return value.node
    return value if isinstance(value, Node) else constant(value)


def _of_two(make: Callable[[Node, Node], Node]) -> Callable[[Any, Any], FormulaNode]:
    return lambda a, b: FormulaNode(make(node_of(a), node_of(b)))


def _of_two_reversed(make: Callable[[Node, Node], Node]) -> Callable[[Any, Any], FormulaNode]:
    return lambda a, b: FormulaNode(make(node_of(b), node_of(a)))


@dataclass(frozen=True, eq=False)
class FormulaNode:
    """A node with the operators of Python; numbers beside it are exact constants."""

    node: Node

    __add__, __radd__ = _of_two(add), _of_two_reversed(add)
    __sub__, __rsub__ = _of_two(sub), _of_two_reversed(sub)
    __mul__, __rmul__ = _of_two(mul), _of_two_reversed(mul)
    __truediv__, __rtruediv__ = _of_two(div), _of_two_reversed(div)
    __pow__ = _of_two(lambda a, b: a if rational(a) == 1 else power(a, b))
    __lt__ = _of_two(partial(compare, "<"))
    __gt__ = _of_two_reversed(partial(compare, "<"))
    __le__ = _of_two(partial(compare, "<="))
    __ge__ = _of_two_reversed(partial(compare, "<="))
    __and__ = _of_two(partial(logic, "and"))

    def __neg__(self) -> FormulaNode:
        return FormulaNode(neg(self.node))

    def __abs__(self) -> FormulaNode:
        value = rational(self.node)
        return FormulaNode(apply(sympy.Abs, self.node) if value is None else constant(abs(value)))


def function(head: Any) -> Callable[..., FormulaNode]:
    """A function of formulas."""
    return lambda *args: FormulaNode(apply(head, *map(node_of, args)))


def where(condition: FormulaNode, a: Any, b: Any) -> FormulaNode:
    """The value a where the condition holds, else b."""
    return FormulaNode(select(condition.node, node_of(a), node_of(b)))


def formulas(*nodes: Node) -> list[FormulaNode]:
    """The nodes as formulas."""
    return list(map(FormulaNode, nodes))


Formula = Callable[..., FormulaNode]


@dataclass(frozen=True)
class Row:
    """``written`` is equal to ``result`` where the condition holds: formulas of u, or of u, v and d = u − v.

    ``early``: whether it serves before differentiation, too. ``in_layers``: whether it serves where u comes
    from layers of a network. ``count``: the arguments.
    """

    written: Formula
    result: Formula
    condition: Formula | None = None
    early: bool = True
    in_layers: bool = True
    count: int = 1

    @cached_property
    def pattern(self) -> WrittenForm:
        """What an engine looks for."""
        return _pattern(self.written(*map(FormulaNode, ARGUMENTS[: self.count])).node)


@dataclass(frozen=True)
class WrittenForm:
    """number + sign f^power of a function; f g^power, or f + power g, of two; ``other``: the head of g."""

    first: Node
    power: int
    second: Node | None = None
    other: Any = None
    sign: int = 1
    number: Number = 0

    def arguments(self, f: Node, g: Node, forms: Forms) -> list[Node] | None:
        """The arguments for which two given functions are those of the pattern; None if there are none."""
        assert self.second is not None
        pairs = [*zip(self.first.args, f.args, strict=True), *zip(self.second.args, g.args, strict=True)]
        bound = {p: a for p, a in pairs[::-1] if type(p.op) is Input}
        for p, a in pairs:
            made, squared = rebuild((p,), bound)[0], any([k > 1 for _, k in forms.monomial(p)[1]])
            if made is not a and _normal(made, squared, forms) != _normal(a, squared, forms):
                return None
        return [bound[p] for p in ARGUMENTS if p in bound]


def _normal(node: Node, squared: bool, forms: Forms) -> Term:
    """The normal form of a product; of a square with (√p)² as p, which the row's other argument has as √p."""
    c, m = forms.monomial(node)
    k, m = forms.rooted(m) if squared else (1, m)
    return c * k, m


ARGUMENTS = tuple([input_node(sympy.Symbol(name, real=True)) for name in "uv"])
"""The inputs u and v of the forms that rows are written for."""


def _pattern(written: Node) -> WrittenForm:
    terms = Forms().terms(written)
    if len(terms) == 1:
        (factors,) = terms
        (f, _), *others = factors
        return (
            WrittenForm(f, others[0][1], others[0][0], head_of(others[0][0])) if others else WrittenForm(f, 1)
        )
    if ONE in terms:
        ((factors, sign),) = [(m, int(c)) for m, c in terms.items() if m]
        ((f, power),) = factors
        return WrittenForm(f, power, sign=sign, number=terms[ONE])
    (((f, _),), _), (((g, _),), second) = terms.items()
    return WrittenForm(f, int(second), g, head_of(g))


def guarded(row: Row, given: Sequence[Node], written: Node) -> Node:
    """The row's result where its condition holds, else what was written."""
    arguments = list(map(FormulaNode, given))
    made, condition = row.result(*arguments).node, row.condition and row.condition(*arguments)
    return made if condition is None else select(condition.node, made, written)


def of_pair(row: Row, f: Node, g: Node, forms: Forms) -> Node | None:
    """What a row makes of two functions whose product is written; None if their arguments do not fit."""
    given = row.pattern.arguments(f, g, forms)
    return None if given is None else guarded(row, given, signed_product([(1, f), (row.pattern.power, g)]))


def by_heads(*rows: Row) -> dict[Any, tuple[Row, ...]]:
    """The rows by the function that is written first."""
    found: dict[Any, tuple[Row, ...]] = {}
    for row in rows:
        head = op_of(row.pattern.first, Apply).head
        found[head] = (*found.get(head, ()), row)
    return found


sin, cos, tan, sec = map(function, (sympy.sin, sympy.cos, sympy.tan, sympy.sec))
sinh, cosh, tanh, sech = map(function, (sympy.sinh, sympy.cosh, sympy.tanh, sympy.sech))
exp, log, erf, erfc, exp_1, log_1 = map(function, (sympy.exp, sympy.log, sympy.erf, sympy.erfc, expm1, log1p))
s, plus, log_cosh, gamma = map(function, (sigmoid, softplus, logcosh, sympy.gamma))

COMPLEMENTS = by_heads(
    Row(lambda u: 1 - erf(u), erfc),
    Row(lambda u: 1 + erf(u), lambda u: erfc(-u)),
    Row(lambda u: 2 - erfc(u), lambda u: erfc(-u)),
    Row(lambda u: 1 - erfc(u), erf),
    Row(lambda u: exp(u) - 1, exp_1),
    Row(lambda u: exp_1(u) + 1, exp),
    Row(lambda u: 1 - cos(u), lambda u: 2 * sin(u / 2) ** 2, early=False),
    Row(lambda u: 1 - cos(u) ** 2, lambda u: sin(u) ** 2, early=False),
    Row(lambda u: 1 - sin(u) ** 2, lambda u: cos(u) ** 2, early=False),
    Row(lambda u: sec(u) - 1, lambda u: 2 * sin(u / 2) ** 2 / cos(u), early=False),
    Row(lambda u: sec(u) ** 2 - 1, lambda u: tan(u) ** 2, early=False),
    Row(lambda u: cosh(u) - 1, lambda u: 2 * sinh(u / 2) ** 2, early=False),
    Row(lambda u: cosh(u) ** 2 - 1, lambda u: sinh(u) ** 2, early=False),
    Row(lambda u: 1 - s(u), lambda u: s(-u), in_layers=False),
    Row(lambda u: HALF - s(u), lambda u: -(tanh(u / 2) / 2), in_layers=False),
    Row(lambda u: 1 - tanh(u), lambda u: 2 * s(-(2 * u)), in_layers=False),
    Row(lambda u: 1 + tanh(u), lambda u: 2 * s(2 * u), in_layers=False),
    Row(lambda u: 1 - tanh(u) ** 2, lambda u: sech(u) ** 2, in_layers=False),
)
"""The rows of a function beside a number, the first that fits is taken."""

REFLECTIONS = by_heads(
    Row(lambda u: exp(u) + exp(-u), lambda u: 2 * cosh(u)),
    Row(lambda u: exp(u) - exp(-u), lambda u: 2 * sinh(u)),
    Row(lambda u: plus(u) - plus(-u), lambda u: u),
    Row(lambda u: s(u) + s(-u), lambda u: FormulaNode(constant(1))),
)
"""The rows of f(u) ± f(−u), for a u that has no negative factor."""


def normal_slope(u: FormulaNode) -> FormulaNode:
    """√(π/2) h(−√2 u), with the slope h of log Φ."""
    x = product(*Forms().monomial((-(FormulaNode(constant(2)) ** HALF * u)).node))
    return (FormulaNode(constant(sympy.pi)) / 2) ** HALF * function(normal_ratio)(x)


PRODUCTS = by_heads(
    Row(lambda u: sinh(u) / cosh(u), tanh),
    Row(lambda u: sinh(u) * sech(u), tanh),
    Row(lambda u: cosh(u) / sinh(u), function(sympy.coth)),
    Row(lambda u: exp(u) / exp_1(u), lambda u: -(1 / exp_1(-u))),
    Row(lambda u: exp(u) / sinh(u), lambda u: -(2 / exp_1(-2 * u))),
    Row(lambda u: exp(u) / cosh(u), lambda u: 2 * s(2 * u)),
    Row(lambda u: exp(-u) / cosh(u), lambda u: 2 * s(2 * -u)),
    Row(lambda u: exp(-(u**2)) / erfc(u), normal_slope, early=False),
    Row(lambda u: exp(u**2) * erfc(u), lambda u: 1 / normal_slope(u), lambda u: u > 0),
    Row(lambda u: exp(u) * s(-u), s),
    Row(lambda u: exp(u) * exp(-u), lambda u: FormulaNode(constant(1))),
    Row(lambda u: exp_1(u) * s(-u), lambda u: tanh(u / 2)),
    Row(lambda u: exp_1(2 * u) / exp_1(u), lambda u: exp(u) + 1),
    Row(lambda u: exp_1(u) * exp_1(-u), lambda u: -(4 * sinh(u / 2) ** 2)),
    Row(lambda u: s(u) / s(-u), exp),
    Row(lambda u, v: function(sympy.lowergamma)(u, v) / gamma(u), function(gammainc), count=2),
    Row(lambda u, v: function(sympy.uppergamma)(u, v) / gamma(u), function(gammaincc), count=2),
)
"""The rows of products of two functions."""


def acos_near_one(r: FormulaNode) -> FormulaNode:
    """By the half angle; at −1, on the other side of the circle, acos(1 + r) is as good.

    And beyond 1, where r is rounded and 1 + r may be 1.
    """
    half_angle = function(sympy.asin)(square_root(-r / 2))
    return where((r > -1) & (r <= 0), 2 * half_angle, function(sympy.acos)(1 + r))


def square_root(u: FormulaNode) -> FormulaNode:
    """√u, of a square the absolute value: its slopes do not cancel."""
    c, m = Forms().monomial(u.node)
    if c <= 0 or any(k % 2 for _, k in m):
        return u**HALF
    inside = product(1, tuple([(b, k // 2) for b, k in m]))
    return FormulaNode(constant(c)) ** HALF * abs(FormulaNode(inside))


NEAR_ONE: dict[Any, Row] = {
    sympy.log: Row(lambda r: log(1 + r), log_1, early=False),
    sympy.acos: Row(lambda r: function(sympy.acos)(1 + r), acos_near_one),
    sympy.acosh: Row(
        lambda r: function(sympy.acosh)(1 + r), lambda r: 2 * function(sympy.asinh)(square_root(r / 2))
    ),
}
"""The rows of functions of 1 + r, which lose no digits of r."""


def log_of_difference(a: FormulaNode, b: Any) -> FormulaNode:
    """log(exp a − exp b) = a + log(1 − exp(b − a)), a > b: exact at a = b as well as far above."""
    return a + log(-exp_1(b - a))


def log_erfc(u: FormulaNode) -> FormulaNode:
    """log(2 Φ(−√2 u)), and log(1 − erf u) where that is small."""
    two = FormulaNode(constant(2))
    scaled = product(*Forms().monomial((-(two**HALF * u)).node))  # √2/√2 is 1
    return where(u < HALF, log_1(-erf(u)), log(two) + function(log_ndtr)(scaled))


def positive(u: FormulaNode) -> FormulaNode:
    """0 < u: the function has a logarithm."""
    return u > 0


LOGARITHMS_OF: dict[Any, Row] = {
    sympy.exp: Row(lambda u: log(exp(u)), lambda u: u),
    sigmoid: Row(lambda u: log(s(u)), lambda u: -plus(-u)),
    sympy.cosh: Row(lambda u: log(cosh(u)), log_cosh),
    sympy.erfc: Row(lambda u: log(erfc(u)), log_erfc),
    expm1: Row(lambda u: log(exp_1(u)), lambda u: log_of_difference(u, 0), positive),
    sympy.sinh: Row(
        lambda u: log(sinh(u)), lambda u: log_of_difference(u, -u) - log(FormulaNode(constant(2))), positive
    ),
    sympy.tanh: Row(
        lambda u: log(tanh(u)),
        lambda u: log_of_difference(FormulaNode(constant(0)), -(2 * u)) - plus(-(2 * u)),
        positive,
    ),
}
"""The rows of logarithms: those without a condition are of positive functions."""

EXPONENTIALS_OF: dict[Any, Row] = {
    sympy.exp: Row(exp, exp),
    sympy.sinh: Row(sinh, lambda u: tanh(u) * exp(log_cosh(u))),
    expm1: Row(exp_1, lambda u: tanh(u / 2) * exp(plus(u))),
}
"""The rows of functions that are a sign times an exponential, which is the last factor."""

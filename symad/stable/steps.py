"""The rules of sums: some terms, and what replaces them.

Each rule looks for terms that are related as it needs; the engine in `differences` tries one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product as pairs_of

from symad.core.graph import Node
from symad.ops.basic.arithmetic import Add, add, div, mul, sub
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.layers import of_layer
from symad.ops.elementwise.powers import HALF, Pow
from symad.ops.elementwise.selection import compare, select
from symad.stable.formulas import FormulaNode
from symad.stable.normal_forms import (
    Forms,
    Monomial,
    Number,
    Terms,
    collected,
    head_of,
    inverse,
    product,
    rational,
    times,
    total,
)
from symad.stable.secants import COMPLEMENTS, REFLECTIONS, spelled

Step = tuple[Terms, Node]
"""Some terms of a sum, and what they are replaced by."""

MAX_PAIRS, MAX_INSIDE = 30, 12
"""The pairs that are tried for one sum; the terms of a sum that are compared with those of its factors."""


@dataclass(frozen=True)
class RuleContext:
    """What the rules of one graph share.

    ``last``: whether it is not differentiated afterwards. ``in_layers``: whether rows serve that take values
    of layers apart, which are stored anyway.
    """

    forms: Forms
    last: bool
    in_layers: bool


def _named(terms: Terms, table: Collection[object]) -> list[tuple[Monomial, Node, int]]:
    """The terms with functions of a table, these functions, and their powers."""
    return [(m, base, k) for m in terms for base, k in m if head_of(base) in table]


def reflections(terms: Terms, given: RuleContext) -> Iterator[Step]:
    """f(u) ± f(−u) by its row."""
    named = _named(terms, REFLECTIONS)
    for m, base, k in named:
        u = base.args[0]
        if k != 1 or type(u.op) is not Add or u.op.signs != (-1,):
            continue
        u, head = u.args[0], head_of(base)
        other = next((b for _, b, _ in named if head_of(b) is head and b.args[0] is u), None)
        if other is None:
            continue
        rest = times(m, frozenset([(base, -1)]))
        positive = times(rest, frozenset([(other, 1)]))
        for row in REFLECTIONS[head]:
            c = terms.get(positive, 0)
            if c and terms[m] == c * row.sign:
                yield {positive: c, m: terms[m]}, mul(product(c, rest), row.form(FormulaNode(u)).node)


def complements(terms: Terms, given: RuleContext) -> Iterator[Step]:
    """c ± c f(u) for a number c by its row, if c is all of that number."""
    found: dict[tuple[Monomial, Number], list[tuple[Number, Monomial, Node]]] = {}
    for m, base, k in _named(terms, COMPLEMENTS):
        rest: Monomial = frozenset([pair for pair in m if pair[0] is not base])
        if rest not in terms:
            continue
        for row in COMPLEMENTS.get(head_of(base), ()):
            needed, u = terms[m] * row.sign * row.number, base.args[0]
            if row.power != k or terms[rest] * needed <= 0 or not (given.last or row.early):
                continue
            if row.in_layers or given.in_layers or not of_layer(u):
                made = mul(product(terms[m] * row.sign, rest), row.form(FormulaNode(u)).node)
                found.setdefault((rest, row.number), []).append((needed, m, made))
    for (rest, _), parts in found.items():
        if sum(part[0] for part in parts) == terms[rest]:
            yield {m: terms[m] for m in (*(m for _, m, _ in parts), rest)}, add(*(f for *_, f in parts))


def conjugates(terms: Terms, given: RuleContext) -> Iterator[Step]:
    """p + s √q for a number s, where q s² − p² is shorter: (p² − q s²)/(p − s √q) where signs differ."""
    if not given.last or not 2 <= len(terms) <= 3:
        return
    for m, c in terms.items():
        if len(m) != 1:
            continue
        ((root, k),) = m
        if k != 1 or not is_root(root):
            continue
        others = {n: x for n, x in terms.items() if n != m}
        square = [(1, {times(x, y): a * b}) for (x, a), (y, b) in pairs_of(others.items(), others.items())]
        inside = {n: -(c**2) * x for n, x in given.forms.terms(root.args[0]).items()}
        rest, met = collected(*square, (1, inside))
        if not met or len(rest) >= max(len(inside), 2) or not rest:
            continue
        p, scaled = total(others), product(c, m)
        same = compare(">=" if c > 0 else "<=", p, constant(0))
        conjugate = div(total(rest), sub(p, scaled))
        yield dict(terms), select(same, add(p, scaled), conjugate)


def _sums_in(terms: Terms, given: RuleContext, sign: int) -> Iterator[tuple[Monomial, Node, Terms]]:
    """The terms n S or n/S with a sum S, S, and its terms R, if n R or n/R may be another term."""
    forms, prints = given.forms, {given.forms.print_of(m) for m in terms}
    for m in terms if len(terms) <= MAX_INSIDE else ():
        for base, k in m:
            if is_sum(base) and (k == 1 if sign > 0 else k < 0):
                inside = forms.terms(base)
                n = forms.print_of(m) - sign * hash((base, 1))
                if any([n + sign * forms.print_of(part) in prints for part in inside]):
                    yield m, base, inside


def over_sums(terms: Terms, given: RuleContext) -> Iterator[Step]:
    """The terms n − n R/S = n (S − R)/S for a term R of a sum S, as in slopes of quotients."""
    for m, base, inside in _sums_in(terms, given, -1):
        whole = times(m, frozenset([(base, 1)]))
        for part, factor in inside.items():
            n = times(whole, inverse(part))
            if n not in terms:
                continue
            needed = -Fraction(terms[m]) / factor
            if terms[n] * needed <= 0 or abs(Fraction(terms[n])) < abs(needed):
                continue  # what would be left of n R/S is beyond n
            rest = total({r: x for r, x in inside.items() if r != part})
            if given.last or rational(rest) is not None:
                over = product(needed, times(n, frozenset([(base, -1)])))
                yield {n: needed, m: terms[m]}, mul(over, rest)


def by_parts(terms: Terms, given: RuleContext) -> Iterator[Step]:
    """The terms n S − n R = n (S − R) for a term R of a sum S, which is beside other factors."""
    for m, base, inside in _sums_in(terms, given, 1):
        c, n = terms[m], times(m, frozenset([(base, -1)]))
        products = {part: times(n, part) for part in inside}
        met = [
            part for part, other in products.items() if other in terms and terms[other] == -c * inside[part]
        ]
        if met:
            made = mul(product(c, n), total({r: x for r, x in inside.items() if r not in met}))
            yield {m: c} | {products[part]: -c * inside[part] for part in met}, made


EARLIER: tuple[Callable[[Terms, RuleContext], Iterator[Step]], ...] = (reflections, complements)
LATER: tuple[Callable[[Terms, RuleContext], Iterator[Step]], ...] = (conjugates, over_sums, by_parts)
"""The rules before and after the differences of pairs."""


# ---- pairs ----------------------------------------------------------------------------------------


def pairs(terms: Terms, forms: Forms) -> Iterator[tuple[Monomial, Monomial]]:
    """Pairs of a positive and a negative term of one skeleton, and of a power or a quotient and 1."""
    boxes: dict[object, tuple[list[Monomial], list[Monomial]]] = {}
    for m, c in terms.items():
        skeleton = forms.skeletons.get(m)
        if skeleton is None:
            skeleton = forms.skeletons[m] = _skeleton(m), tuple(_without_one(m))
        boxes.setdefault(skeleton[0], ([], []))[c < 0].append(m)
        for n in skeleton[1]:
            if terms.get(n, 0) * c < 0:
                yield (m, n) if c > 0 else (n, m)
    for positive, negative in boxes.values():
        if len(positive) * len(negative) <= MAX_PAIRS:
            yield from pairs_of(positive, negative)


def _without_one(m: Monomial) -> Iterator[Monomial]:
    """The monomial without a power, and without a quotient."""
    for base, k in m:
        if isinstance(base.op, Pow) and abs(k) == 1:
            yield times(m, frozenset([(base, -k)]))
        if k < 0:
            yield from [times(m, frozenset([(base, j), (a, -j)])) for a, j in m if 0 < j <= -k]
            yield times(m, frozenset([(base, -k)]))


def _skeleton(m: Monomial) -> object:
    """The functions of a monomial with their powers, and the powers of all of its factors."""
    kinds = [(kind, k) for kind, k in [(kind_of(base), k) for base, k in m] if kind is not None]
    return tuple(sorted([k for _, k in m])), frozenset(kinds)


def kind_of(base: Node) -> object:
    """The function of a factor; nothing for sums and for what has no arguments."""
    if type(base.op) not in (Apply, Pow):
        return None
    found = spelled(base)
    if found is not None:
        return "power" if isinstance(found[0], Node) else found[0]
    return head_of(base)


def is_root(node: Node) -> bool:
    """Whether a node is √q."""
    return type(node.op) is Pow and rational(node.args[1]) == HALF


def is_sum(node: Node) -> bool:
    """Whether a node has two terms or more."""
    return isinstance(node.op, Add) and len(node.args) > 1

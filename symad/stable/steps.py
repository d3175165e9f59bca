"""The rules of sums: some terms, and what replaces them.

Each rule looks for terms that are related as it needs; the engine in `differences` tries one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product as pairs_of

import sympy

from symad.core.graph import Node
from symad.ops.basic.arithmetic import Add, add, div, mul, sub
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import compare, select
from symad.ops.elementwise.slopes import of_layer
from symad.stable.normal_forms import (
    ONE,
    Forms,
    Monomial,
    Number,
    Terms,
    collected,
    head_of,
    is_root,
    product,
    rational,
    total,
)
from symad.stable.rows import COMPLEMENTS, REFLECTIONS, FormulaNode
from symad.stable.secants import spelled

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
    related: dict[Monomial, tuple[object, tuple[Monomial, ...]]] = field(default_factory=dict)
    inside: dict[Node, tuple[Monomial, Terms, list[int]]] = field(default_factory=dict)

    def skeleton(self, m: Monomial) -> tuple[object, tuple[Monomial, ...]]:
        """The functions and all powers of a monomial, and the monomial without a power, and a quotient."""
        found = self.related.get(m)
        if found is None:
            kinds = [(kind_of(base), k) for base, k in m if type(base.op) in (Apply, Pow)]
            powers = tuple(sorted([k for _, k in m]))
            found = self.related[m] = (powers, frozenset(kinds)), tuple(_without_one(m, self.forms))
        return found

    def parts(self, base: Node) -> tuple[Monomial, Terms, list[int]]:
        """A factor that is a sum, or the square of one that is a root of a sum, its terms and their marks."""
        found = self.inside.get(base)
        if found is None:
            root = is_root(base)
            terms = self.forms.terms(base.args[0] if root else base)
            found = self.inside[base] = ((base, 2 if root else 1),), terms, list(map(_mark, terms))
        return found


def _mark(m: Monomial) -> int:
    """A number that equal monomials share, the sum of those of their factors."""
    return sum([k * hash((base, 1)) for base, k in m])


class SumTraits:
    """The terms of a sum with what the rules look for in them, found by one walk for all rules.

    ``named``: the functions with rows for numbers or reflections; ``sums``: the factors that are sums, and
    roots whose squares are; ``under``: the roots by which terms are divided.
    Most sums of a graph have terms of one sign, and no other rule looks at them.
    """

    def __init__(self, terms: Terms, given: RuleContext) -> None:
        """One walk over the factors of the terms."""
        self.terms, self.given = terms, given
        self.has_signs = {False, True} == {c.numerator > 0 for c in terms.values()}
        self.named: list[tuple[Monomial, Node, int]] = []
        self.sums: list[tuple[Monomial, Node, int]] = []
        self.under: list[tuple[Monomial, Node]] = []
        for m in terms:
            for base, k in m:
                op = base.op
                if type(op) is Apply:
                    if op.head in COMPLEMENTS or op.head in REFLECTIONS:
                        self.named.append((m, base, k))
                elif type(op) is Add and k <= 1 and len(op.signs) > 1:
                    self.sums.append((m, base, k))
                elif k < 0 and is_root(base):
                    self.under.append((m, base))
                    if k < -1 and type(base.args[0].op) is Add:
                        self.sums.append((m, base, k))
        if len(terms) > MAX_INSIDE:
            self.sums, self.under = [], []

    @cached_property
    def marks(self) -> set[int]:
        """The marks of the terms."""
        return set(map(_mark, self.terms))


def reflections(whole: SumTraits) -> Iterator[Step]:
    """Two functions with equal factors beside them by their row."""
    terms, forms = whole.terms, whole.given.forms
    reflected = [(m, f) for m, f, k in whole.named if k == 1 and head_of(f) in REFLECTIONS]
    given = [(m, f, head_of(f), *forms.monomial(f.args[0])) for m, f in reflected]
    beside = {(without(m, f), head, -c, u): m for m, f, head, c, u in given if c < 0}
    for m, f, head, c, u in given if beside else ():
        rest = without(m, f)
        for row in REFLECTIONS[head]:
            n = beside.get((rest, row.pattern.other, c, u))
            if n is not None and terms[n] == terms[m] * row.pattern.power:
                value = row.result(FormulaNode(f.args[0])).node
                yield {m: terms[m], n: terms[n]}, mul(product(terms[m], rest), value)


def without(m: Monomial, base: Node) -> Monomial:
    """A monomial without one of its factors."""
    return tuple([pair for pair in m if pair[0] is not base])


def complements(whole: SumTraits) -> Iterator[Step]:
    """c ± c f(u) for a number c by its row, if c is all of that number."""
    terms, given = whole.terms, whole.given
    found: dict[tuple[Monomial, Number], list[tuple[Number, Monomial, Node]]] = {}
    for m, base, k in whole.named:
        rest = without(m, base)
        if rest not in terms:
            continue
        for row in COMPLEMENTS.get(head_of(base), ()):
            one, u = row.pattern, base.args[0]
            needed = terms[m] * one.sign * one.number
            if one.power != k or terms[rest] * needed <= 0 or not (given.last or row.early):
                continue
            if row.in_layers or given.in_layers or not of_layer(u):
                made = mul(product(terms[m] * one.sign, rest), row.result(FormulaNode(u)).node)
                found.setdefault((rest, one.number), []).append((needed, m, made))
    for (rest, _), parts in found.items():
        if sum(part[0] for part in parts) == terms[rest]:
            yield {m: terms[m] for m in (*(m for _, m, _ in parts), rest)}, add(*(f for *_, f in parts))


def conjugates(whole: SumTraits) -> Iterator[Step]:
    """p + s √q as a whole by its conjugate."""
    for made in _by_conjugate(whole.terms, whole.given):
        yield dict(whole.terms), made


def over_roots(whole: SumTraits) -> Iterator[Step]:
    """n + s n p/√q = n (√q + s p)/√q by the conjugate, as in slopes of p + s √q."""
    terms, forms = whole.terms, whole.given.forms
    for m, root in whole.under if whole.given.last else ():
        over = forms.times(m, ((root, 1),))
        for n in [n for n in terms if n != m]:
            inside: Terms = {((root, 1),): 1, forms.times(over, n, -1): Fraction(terms[m]) / terms[n]}
            for made in _by_conjugate(inside, whole.given):
                yield {m: terms[m], n: terms[n]}, mul(product(terms[n], n), div(made, root))


def _by_conjugate(terms: Terms, given: RuleContext) -> Iterator[Node]:
    """p + s √q for a number s, where q s² − p² is shorter: (p² − q s²)/(p − s √q) where signs differ.

    Nothing cancels in a sum of positive terms.
    """
    for m, p, rest, size in roots(terms, given.forms):
        signs = {c * terms[m] < 0 if _is_positive(n) else None for n, c in terms.items() if n != m}
        differ = signs == {True}
        serves = given.last or (differ and rest.keys() == {ONE})
        if serves and signs != {False} and len(rest) < max(size, 2):
            scaled = product(terms[m], m)
            same = compare(">=" if terms[m] > 0 else "<=", p, constant(0))
            conjugate = div(total(rest), sub(p, scaled))
            yield conjugate if differ else select(same, add(p, scaled), conjugate)


def _is_positive(m: Monomial) -> bool:
    """Whether a product has no negative value, by its form."""
    return all([k % 2 == 0 or is_root(b) or head_of(b) is sympy.Abs for b, k in m])


def roots(terms: Terms, forms: Forms) -> Iterator[tuple[Monomial, Node, Terms, int]]:
    """A root in a sum p + s √q, p, p² − q s² where terms cancel, and the number of terms of q."""
    for m in terms if 2 <= len(terms) <= 3 else ():
        ((root, k), *more) = m or [(None, 0)]
        if root is None or more or k != 1 or not is_root(root):
            continue
        others = {n: x for n, x in terms.items() if n != m}
        both = pairs_of(others.items(), others.items())
        square = [(1, _rooted(forms, forms.times(x, y), a * b)) for (x, a), (y, b) in both]
        inside = {n: -(terms[m] ** 2) * x for n, x in forms.terms(root.args[0]).items()}
        rest, met = collected(*square, (1, inside))
        if met and rest:
            yield m, total(others), rest, len(inside)


def _rooted(forms: Forms, m: Monomial, coefficient: Number) -> Terms:
    c, m = forms.rooted(m)
    return {m: c * coefficient}


def _sums_in(whole: SumTraits, sign: int) -> Iterator[tuple[Monomial, Monomial, Terms]]:
    """The terms n S or n/S with a sum S, S, and its terms R, if n R or n/R may be another term.

    Terms of opposite signs have to be there, in the sum or in S.
    """
    for m, base, k in whole.sums:
        if k * sign < 0:
            continue
        factor, inside, marks = whole.given.parts(base)
        if whole.has_signs or any([c.numerator < 0 for c in inside.values()]):
            n = _mark(m) - sign * _mark(factor)
            if not whole.marks.isdisjoint([n + sign * part for part in marks]):
                yield m, factor, inside


def over_sums(whole: SumTraits) -> Iterator[Step]:
    """The terms n − n R/S = n (S − R)/S for a term R of a sum S, as in slopes of quotients and roots.

    Terms n (S − R)/S that cancel with others of the sum are listed one by one.
    """
    terms, times = whole.terms, whole.given.forms.times
    for m, factor, inside in _sums_in(whole, -1):
        outside = times(m, factor)
        for part, c in inside.items():
            n = times(outside, part, -1)
            if n not in terms:
                continue
            needed = -Fraction(terms[m]) / c
            if terms[n] * needed <= 0 or abs(Fraction(terms[n])) < abs(needed):
                continue  # what would be left of n R/S is beyond n
            over, rest = times(n, factor, -1), {r: x for r, x in inside.items() if r != part}
            if whole.given.last or rational(total(rest)) is not None:
                listed: Terms = {times(over, r): needed * x for r, x in rest.items()}
                met = any([terms.get(r, 0) * x < 0 for r, x in listed.items()])
                made = total(listed) if met else mul(product(needed, over), total(rest))
                yield {n: needed, m: terms[m]}, made


def over_one_root(whole: SumTraits) -> Iterator[Step]:
    """Terms n/√q^k over one power of √q, if the sums in them cancel to fewer terms than q has."""
    terms, forms = whole.terms, whole.given.forms
    given = [r for _, r in whole.under if is_sum(r.args[0])] if whole.given.last and len(terms) > 1 else []
    listed = {m: _expanded(m, c, forms) for m, c in terms.items()} if given else {}
    for root in dict.fromkeys(given):
        powers = {n: dict(n).get(root, 0) for found in listed.values() for n in found}
        least, q = min(powers.values(), default=0), root.args[0]
        whole_steps = {n for n, k in powers.items() if k < 0 and (k - least) % 2 == 0}
        under = [m for m, found in listed.items() if whole_steps.issuperset(found)]
        raised = [
            (forms.times(n, ((root, -powers[n]), (q, (powers[n] - least) // 2))), c)
            for m in under
            for n, c in listed[m].items()
        ]
        over, met = collected(*[(1, _expanded(n, c, forms)) for n, c in raised])
        if met and len(under) > 1 and len(over) < len(forms.terms(q)):
            yield {m: terms[m] for m in under}, mul(total(over), product(1, ((root, least),)))


def _expanded(m: Monomial, c: Number, forms: Forms) -> Terms:
    """The terms of a product with sums, which stay factors where there would be too many terms."""
    made: Terms = {ONE: c}
    for base, k in m:
        while k > 0 and is_sum(base) and len(made) <= MAX_INSIDE:
            parts = forms.terms(base).items()
            made, _ = collected(*[(1, {forms.times(n, r): x * y for r, y in parts}) for n, x in made.items()])
            k -= 1
        if k:
            made = {forms.times(n, ((base, k),)): x for n, x in made.items()}
    return made


def by_parts(whole: SumTraits) -> Iterator[Step]:
    """The terms n S − n R = n (S − R) for a term R of a sum S, which is beside other factors."""
    terms = whole.terms
    for m, factor, inside in _sums_in(whole, 1):
        c, n = terms[m], whole.given.forms.times(m, factor, -1)
        products = {part: whole.given.forms.times(n, part) for part in inside}
        met = [
            part for part, other in products.items() if other in terms and terms[other] == -c * inside[part]
        ]
        if met:
            made = mul(product(c, n), total({r: x for r, x in inside.items() if r not in met}))
            yield {m: c} | {products[part]: -c * inside[part] for part in met}, made


Rule = Callable[[SumTraits], Iterator[Step]]
EARLIER: tuple[Rule, ...] = (reflections, complements, over_roots)
LATER: tuple[Rule, ...] = (conjugates, over_sums, over_one_root, by_parts)
"""The rules before and after the differences of pairs."""


# ---- pairs ----------------------------------------------------------------------------------------


def pairs(whole: SumTraits) -> Iterator[tuple[Monomial, Monomial]]:
    """Pairs of a positive and a negative term of one skeleton, and of a power or a quotient and 1."""
    terms, boxes = whole.terms, dict[object, tuple[list[Monomial], list[Monomial]]]()
    for m in terms if whole.has_signs else ():
        skeleton, rests = whole.given.skeleton(m)
        boxes.setdefault(skeleton, ([], []))[terms[m] < 0].append(m)
        for n in rests:
            if terms.get(n, 0) == -terms[m]:
                yield (m, n) if terms[m] > 0 else (n, m)
    for positive, negative in boxes.values():
        if len(positive) * len(negative) <= MAX_PAIRS:
            yield from pairs_of(positive, negative)


def _without_one(m: Monomial, forms: Forms) -> Iterator[Monomial]:
    """The monomial without a power, and without a quotient."""
    for base, k in m:
        if isinstance(base.op, Pow) and abs(k) == 1:
            yield without(m, base)
        if k < 0:
            yield from [forms.times(m, ((base, 1), (a, -1)), j) for a, j in m if 0 < j <= -k]
            yield without(m, base)


def kind_of(base: Node) -> object:
    """The function of a factor; nothing for sums and for what has no arguments."""
    if type(base.op) not in (Apply, Pow):
        return None
    found = spelled(base)
    if found is not None:
        return "power" if isinstance(found[0], Node) else found[0]
    return head_of(base)


def is_sum(node: Node) -> bool:
    """Whether a node has two terms or more."""
    return isinstance(node.op, Add) and len(node.args) > 1

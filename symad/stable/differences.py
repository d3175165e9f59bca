"""Sums without cancellation: terms of opposite signs are replaced by exact differences.

D(u, v) is u − v after equal terms have canceled, and terms of one skeleton have been paired by the rows of
`symad.stable.secants`: f(u) − f(v) is computed from D(u, v), recursively. It exists only if something
canceled or was paired; two different inputs have none. The engine knows no function: it finds equal terms,
common factors, and pairs.

Source: Reps & Rall, "Computational divided differencing and divided-difference arithmetics" (2003), for the
recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import sympy
from sympy.codegen.cfunctions import expm1, log1p

from symad.core.dims import Shape
from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import Add, Mul, add, div, mul, neg, signed_sum, sub
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import Input, constant, constant_value
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import Pow, power
from symad.ops.elementwise.selection import Select, logic, select
from symad.stable.normal_forms import (
    MAX_TERMS,
    ONE,
    Forms,
    Monomial,
    Terms,
    collected,
    common,
    head_of,
    is_root,
    product,
    rational,
    total,
)
from symad.stable.rows import FormulaNode, formulas, guarded
from symad.stable.secants import (
    MAX_POWER,
    log_of_complement,
    power_secant,
    powers_between,
    secant_of,
    spelled,
)
from symad.stable.steps import (
    EARLIER,
    LATER,
    RuleContext,
    Step,
    SumTraits,
    is_sum,
    kind_of,
    pairs,
    roots,
)

DEPTH, STEPS = 5, 12
"""The depth of differences in differences; the replacements in one sum."""

STEPWISE = frozenset((Add, Mul, Select))
"""Ops that of steps make a step."""


Near: TypeAlias = "Callable[[Node, Node], bool]"


def never(u: Node, v: Node) -> bool:
    """Two different inputs have no difference."""
    return False


class Differences:
    """The differences of one graph, each found once.

    ``last``: whether the graph is not differentiated afterwards. Rows with conditions serve only then.
    ``in_layers``: whether rows serve that take values of layers apart, which are stored anyway.
    ``near``: whether two inputs are known to be near each other, so that their difference counts.
    """

    def __init__(self, last: bool, in_layers: bool = False, near: Near = never) -> None:
        """Nothing is known."""
        self.last, self.near = last, near
        self.known: dict[tuple[Node, Node], Node | None] = {}
        self.forms = Forms()
        self.given = RuleContext(self.forms, last, in_layers)

    def better_sum(self, op: Add, args: Nodes) -> Node | None:
        """A sum with the same value that cancels less; None if there is none."""
        if not MAX_TERMS >= len(args) > 1:
            return None
        listed = [(sign, self.forms.terms(a)) for sign, a in zip(op.signs, args, strict=True)]
        terms, met = collected(*listed)
        if not terms and met:
            return broadcast_to(constant(0), _shape_of(args))
        if not 0 < len(terms) <= MAX_TERMS:
            return None
        made, changed = self._combined(terms, DEPTH)
        if not changed and not met:
            return None
        return broadcast_to(_joined(made, list(zip(args, listed, strict=True))), _shape_of(args))

    def of_root(self, inside: Node) -> Node | None:
        """The logarithm of p + √(p² ± 1): an inverse hyperbolic function."""
        terms = self.forms.terms(inside) if type(inside.op) is Add else {}
        for m, p, rest, _ in roots(terms, self.forms):
            if terms[m] > 0 and rest.keys() == {ONE} and abs(rest[ONE]) == 1:
                return apply(sympy.asinh if rest[ONE] < 0 else sympy.acosh, p)
        return None

    def logarithm(self, inside: Node) -> Node | None:
        """log(a/b) by the difference d of a and b: 2 atanh(d/(a + b)) if a + b is a number, or log1p(d/b).

        And log(1 − exp(u)) by its row.
        """
        coefficient, factors = self.forms.monomial(inside)
        if coefficient == -1 and [(head_of(base), k) for base, k in factors] == [(expm1, 1)]:
            ((base, _),) = factors
            return log_of_complement(FormulaNode(base.args[0])).node
        if coefficient != 1 or sorted(k for _, k in factors) != [-1, 1]:
            return None
        (a, _), (b, _) = sorted(factors, key=lambda pair: -pair[1])
        d = self.difference(a, b)
        if d is None:
            return None
        whole, _ = collected((1, self.forms.terms(a)), (1, self.forms.terms(b)))
        if set(whole) == {ONE}:
            return mul(constant(2), apply(sympy.atanh, div(d, total(whole))))
        return select(_less(d, b, 2), apply(log1p, div(d, b)), apply(sympy.log, inside))

    def difference(self, u: Node, v: Node, depth: int = DEPTH) -> Node | None:
        """D(u, v), or None."""
        if (u, v) not in self.known:
            self.known[u, v] = self._difference(u, v, depth)
        return self.known[u, v]

    def _difference(self, u: Node, v: Node, depth: int) -> Node | None:
        mine, other = self.forms.terms(u), self.forms.terms(v)
        size = _size_of_difference(mine, other)
        if not size or 2 < size >= max(len(mine), len(other)):
            return None  # what is not shorter would be computed twice
        if type(u.op) is type(v.op) is Input and not self.near(u, v):
            return None
        terms, met = collected((1, mine), (-1, other))
        made, changed = self._combined(terms, depth - 1) if depth else (terms, False)
        exact = met or changed or len(made) == 1 or self.near(u, v)
        return total(made) if exact and made else None

    def _combined(self, terms: Terms, depth: int) -> tuple[Terms, bool]:
        """The terms after all replacements, and whether there was one."""
        changed = False
        for _ in range(STEPS):
            step = next(self._steps(terms, depth), None)
            if step is None:
                break
            removed, made = step
            terms, _ = collected((1, terms), (-1, removed), (1, self.forms.terms(made, 1)))
            changed = True
        return terms, changed

    def _steps(self, terms: Terms, depth: int) -> Iterator[Step]:
        """Some of the terms, and what replaces them."""
        if len(terms) < 2:
            return
        whole = SumTraits(terms, self.given)
        for rule in EARLIER:
            yield from rule(whole)
        for m, n in pairs(whole):
            c = min(terms[m], -terms[n])
            shared = common(m, n)
            r, s = (self.forms.times(x, shared, -1) for x in (m, n))
            made = self._of_monomials(r, s, depth)
            if made is not None:
                yield {m: c, n: -c}, mul(product(c, shared), made)
        for rule in LATER:
            yield from rule(whole)

    # ---- differences of monomials and their factors ----------------------------------------------

    def _of_monomials(self, r: Monomial, s: Monomial, depth: int) -> Node | None:
        """r − s without common factors, by the differences of their factors."""
        if not s and len(r) == 1:
            return self._of_power_and_one(*next(iter(r)), depth)
        if not s and r:
            return self._of_quotient(r, depth)
        if not r:
            made = self._of_monomials(s, r, depth) if s else None
            return None if made is None else neg(made)
        matched = self._matched(r, s, depth)
        if matched is not None and len(matched) == 1:
            return matched[0][2]
        if matched is None or len(matched) != 2 or not self.last:
            return None
        (a, a_, da), (b, b_, db) = matched
        close = logic("or", _less(da, a_, 2), _less(db, b_, 2))
        return select(close, add(mul(da, b), mul(a_, db)), sub(mul(a, b), mul(a_, b_)))

    def _matched(self, r: Monomial, s: Monomial, depth: int) -> list[tuple[Node, Node, Node]] | None:
        """Triples a, a', a − a' of factors that are powers of one order; the most similar ones first."""
        if len(r) != len(s):
            return None
        left, other, found = dict(r), dict(s), []
        tried = [
            (a, b) for a, k in r for b, j in s if j == k and (kind_of(a) == kind_of(b) or _is_open(a, b))
        ]
        if len(tried) > len(r):
            tried.sort(key=lambda pair: self._distance(*pair))
        for a, b in tried:
            d = self._of_powers(a, b, left[a], depth) if a in left and b in other else None
            if d is not None:
                k = left.pop(a)
                found.append((_power(a, k), _power(b, other.pop(b)), d))
        return None if left else found

    def _distance(self, a: Node, b: Node) -> int:
        """The number of terms of the difference of the arguments of one function, or of sums."""
        f, g = spelled(a) or (None, a), spelled(b) or (None, b)
        if f[0] != g[0]:
            return MAX_TERMS
        return _size_of_difference(self.forms.terms(f[1]), self.forms.terms(g[1]))

    def _of_powers(self, a: Node, b: Node, k: int, depth: int) -> Node | None:
        """a^k − b^k."""
        d = self._of_factors(a, b, depth) if abs(k) <= MAX_POWER else None
        if d is None:
            return None
        if abs(k) > 1:
            d = mul(d, powers_between(a, b, abs(k)))
        if k > 0:
            return d
        over, under = _power(a, -k), _power(b, -k)
        made = neg(div(div(d, over), under))
        if not self.last or rational(d) is not None:
            return made if rational(d) is not None else None
        return select(_less(d, under, 1), made, sub(_power(a, k), _power(b, k)))  # d may overflow

    def _of_factors(self, a: Node, b: Node, depth: int) -> Node | None:
        """a − b for two factors that are no products."""
        if type(a.op) is Select or type(b.op) is Select:
            return self._of_selections(a, b, depth)
        f, g = spelled(a), spelled(b)
        if f is None or g is None or f[0] != g[0]:
            return (
                self.difference(a, b, depth) if is_sum(a) or is_sum(b) or is_root(a) or is_root(b) else None
            )
        if not depth:
            return None
        u, v = f[1], g[1]
        row, d = secant_of(f[0]), self.difference(u, v, depth - 1)
        if d is None:
            return None
        if not self.last and not (row.early and rational(d)):
            return None
        of_one = type(b.op) is Pow and v is constant(1)
        return guarded(row, (u, v, d), sub(a, constant(1) if of_one else b))

    def _of_selections(self, a: Node, b: Node, depth: int) -> Node | None:
        """The difference of the last branches where no other is taken; nothing cancels between steps."""
        conditions = [x.args[0] for x in (a, b) if type(x.op) is Select]
        u, v = (x.args[2] if type(x.op) is Select else x for x in (a, b))
        steps = _is_step(u, DEPTH) and _is_step(v, DEPTH)
        d = self.difference(u, v, depth - 1) if self.last and depth and not steps else None
        return None if d is None else select(logic("or", *conditions), sub(a, b), d)

    def _of_quotient(self, r: Monomial, depth: int) -> Node | None:
        """a/b − 1 = (a − b)/b, where roots in even powers are no roots."""
        parts = [tuple([(b, abs(k)) for b, k in r if k * sign > 0]) for sign in (1, -1)]
        a, b = (product(*self.forms.rooted(part)) for part in parts)
        d = self.difference(a, b, depth - 1) if depth and parts[1] else None
        if d is None or (not self.last and rational(d) is None):
            return None
        if rational(d) is not None:
            return div(d, b)
        return select(_less(d, b, 1), div(d, b), sub(div(a, b), constant(1)))

    def _of_power_and_one(self, a: Node, k: int, depth: int) -> Node | None:
        """u^p − 1 = u^p − 1^p, for a variable p also where u − 1 is rounded."""
        if not isinstance(a.op, Pow) or not depth or abs(k) > 1:
            return None
        one = constant(1)
        base, exponent = a.args
        if constant_value(exponent) is not None or self.difference(base, one, depth - 1) is not None:
            return self._of_powers(a, Node.of(a.op, (one, exponent)), k, depth)
        if not self.last:
            return None
        p = exponent if k > 0 else neg(exponent)
        return guarded(power_secant(p), (base, one, sub(base, one)), sub(_power(a, k), one))


def _is_step(node: Node, depth: int) -> bool:
    """Whether a node is a number, or made of selections of numbers, such as the mask of a piece."""
    if constant_value(node) is not None:
        return True
    args = node.args[1:] if type(node.op) is Select else node.args
    return bool(depth) and type(node.op) in STEPWISE and all([_is_step(a, depth - 1) for a in args])


def _shape_of(args: Nodes) -> Shape:
    """The shape of a sum; scalars are repeated in it."""
    return next((a.shape for a in args if a.shape), ())


def _size_of_difference(u: Terms, v: Terms) -> int:
    """The number of terms that are left."""
    return len(u) + len(v) - sum([1 + (u[m] == v[m]) for m in u.keys() & v.keys()])


def _less(d: Node, b: Node, times: int) -> Node:
    """Times |d| < |b|."""
    f, g = formulas(d, b)
    return ((abs(f) if times == 1 else times * abs(f)) < abs(g)).node


def _power(base: Node, k: int) -> Node:
    return power(base, constant(k))


def _is_open(a: Node, b: Node) -> bool:
    """Whether factors of two kinds may have a difference: sums, roots and selections."""
    return any(is_sum(x) or is_root(x) or type(x.op) is Select for x in (a, b))


def _joined(terms: Terms, parts: list[tuple[Node, tuple[int, Terms]]]) -> Node:
    """The sum of the terms; parts of the written sum stay together if all of their terms are left."""
    left, kept = dict(terms), []
    for node, (sign, own) in parts:
        if own and all([left.get(m) == sign * c for m, c in own.items()]):
            kept.append((sign, node))
            for m in own:
                del left[m]
    return signed_sum([*kept, (1, total(left))]) if left else signed_sum(kept)


def complement(node: Node) -> Node | None:
    """A sum as a function by a row, such as 1 − σ(u) = σ(−u), also in layers of networks; else None."""
    if type(node.op) is not Add or len(node.args) < 2:
        return None
    made = Differences(last=False, in_layers=True).better_sum(node.op, node.args)
    return None if made is None or type(made.op) is Add else made


def difference_of_squares(op: Add, args: Nodes) -> Node | None:
    """x² − y² = (x − y)(x + y), also for two inputs, whose difference is rounded once."""
    if len(args) != 2 or op.signs[0] == op.signs[1]:
        return None
    (x, k), (y, j) = ((a.args[0], rational(a.args[1])) if type(a.op) is Pow else (a, 1) for a in args)
    if k != 2 or j != 2:
        return None
    return mul(sub(x, y), add(x, y)) if op.signs[0] > 0 else mul(sub(y, x), add(y, x))

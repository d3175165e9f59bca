"""Taylor pieces at removable cancellations: x − sin(x) = x³/6 − x⁵/120 + ... near 0.

The terms of a sum of one variable t are expanded in Laurent series with rational coefficients. If the sum
starts at a higher order k than its terms, the digits of these cancel near t = 0, and t^k P(t) is taken there:
where |t| < r, with r the largest of some radii at which the dropped terms are below a quarter of a rounding
error. Only for graphs that are not differentiated afterwards: differentiation would lose a degree.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isfinite
from typing import Any

import numpy as np
import sympy
from flint import fmpq_series

from symad.core.graph import Node, op_of
from symad.core.questions import evaluate
from symad.ops.basic.arithmetic import Add, Mul, add, mul, signed_sum
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import Constant, Input, constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow, power
from symad.ops.elementwise.selection import compare, equal, logic, select
from symad.stable.laurent import FEW, ORDER, SERIES, Laurent, exact_number, first, laurent, sum_of
from symad.stable.normal_forms import ONE, Forms, Monomial, Term, head_of, product, rational, times

MAX_DEGREE, MAX_NODES = 24, 40
"""The coefficients printed at most; the nodes of a sum at most."""

MAX_TERMS, MAX_ARGUMENTS, MAX_DEPENDENT = 12, 8, 4
"""The terms of a sum of several inputs, the arguments in it that are tried, and the terms of sums in it."""

RADII = [m / 2**k for k in range(8) for m in (1.0, 0.75)]
DROPPED = 2.0**-55
PROBE = 2.0**-12
"""A small value of the variable, at which sums that lose no digits are left alone."""


def may_have_series(node: Node) -> bool:
    """Whether a node is a quotient or a power that sums of series may hold."""
    op = node.op
    return -1 in op.powers if type(op) is Mul else type(op) is Pow and rational(node.args[1]) not in (2, 3, 4)


def without_cancellation(written: Node, better: Node, forms: Forms) -> Node | None:
    """A sum with Taylor pieces; None if it has no removable cancellation.

    Args:
        written: the sum as it was written.
        better: the same value, which is taken elsewhere.
        forms: the normal forms of the graph.
    """
    if type(better.op) is not Add or len(written.args) == 1:
        return None
    if any([a in forms.large or any([b in forms.large for b in a.args]) for a in written.args]):
        forms.large.add(written)
        return None
    t = variable_of(written)
    if t is None:
        forms.large.add(written)
        return None
    if type(t.op) is not Input:
        with first(FEW):
            sums = [n for n in dict.fromkeys((better, written)) if 1 < len(n.args) <= MAX_TERMS]
            return next(filter(None, (_by_groups(n, better, forms) for n in sums)), None)
    if not all(_cancels_at(better, t, x) for x in (PROBE, -PROBE)):
        return None
    with first(ORDER):
        known: dict[Node, Laurent | None] = {}
        terms = [laurent(a, t, known) for a in written.args]
        whole = laurent(written, t, known)
    lowest = min([term.order for term in terms if term is not None], default=0)
    if whole is None or None in terms or whole.order <= lowest:
        return None
    found = _piece(whole, t, any(_has_pole(known[n]) for n in known))
    if found is None:
        return None
    return select(found[0], mul(power(t, constant(whole.order)), found[1]), better)


# ---- sums of several inputs ------------------------------------------------------------------------


def _by_groups(total: Node, better: Node, forms: Forms) -> Node | None:
    """A sum with pieces for terms R t^k f(t) with one R and one t, which is an argument of functions.

    In the sum as it was written, these are all terms.
    """
    arguments = list(_arguments(total, forms).items())[:MAX_ARGUMENTS]
    if not arguments:
        return None
    left: list[tuple[int, Node]] = []
    for sign, arg in zip(op_of(total, Add).signs, total.args, strict=True):
        terms = forms.terms(arg)
        left += [(sign, arg)] if len(terms) == 1 else [(sign, product(c, m)) for m, c in terms.items()]
    made: list[tuple[int, Node]] = []
    for t, guard in arguments:
        if not _may_share(left, t, forms):
            continue
        groups: dict[Monomial, list[tuple[tuple[int, Node], Term, Laurent]]] = {}
        for sign, arg in left:
            c, m = forms.monomial(arg)
            rest, part = _split((sign * c, m), t, forms)
            groups.setdefault(rest, []).append(((sign, arg), (sign * c, m), part))
        for rest, parts in groups.items():
            whole = total is better or len(parts) == len(left)
            may = whole and len(parts) > 1 and _rises([part for *_, part in parts])
            piece = _of_group(t, guard, [term for _, term, _ in parts], forms) if may else None
            if piece is not None:
                args = [pair for pair, *_ in parts]
                left = [pair for pair in left if pair not in args]
                far = signed_sum(args) if total is better else better
                scale, inside = forms.monomial(t)
                order = piece[2]
                lead = times(rest, frozenset([(b, j * order) for b, j in inside]))
                value = mul(product(Fraction(scale) ** order, lead), piece[1])
                made.append((1, select(piece[0], value, far)))
    return broadcast_to(signed_sum([*left, *made]), better.shape) if made else None


def _may_share(terms: list[tuple[int, Node]], t: Node, forms: Forms) -> bool:
    """Whether two terms may have equal factors beside functions of t: a quick test, without series."""
    inside, seen = {b for b, _ in forms.monomial(t)[1]}, set[int]()
    for _, arg in terms:
        key = 0
        for b, k in forms.monomial(arg)[1]:
            of_t = b is t or b in inside or _is_of(b, t)
            few = not of_t and type(b.op) is Add and 1 < len(forms.terms(b)) <= MAX_DEPENDENT
            if few and any(f is t or f in inside or _is_of(f, t) for m in forms.terms(b) for f, _ in m):
                return True
            key += 0 if of_t else hash((b, k))
        if key in seen:
            return True
        seen.add(key)
    return False


def _is_of(base: Node, t: Node) -> bool:
    """Whether a factor is a function of t that has a series."""
    if head_of(base) in SERIES:
        return base.args[0] is t
    return type(base.op) is Pow and constant_value(base.args[1]) is None and exponent_of(base) is t


def _rises(parts: list[Laurent]) -> bool:
    """Whether a sum of series starts at a higher order than its terms, as far as is known."""
    whole = sum_of((1,) * len(parts), parts)
    return whole is None or whole.order > min(part.order for part in parts)


def _of_group(t: Node, guard: Node, terms: list[Term], forms: Forms) -> tuple[Node, Node, int] | None:
    with first(ORDER):
        parts = [_split(term, t, forms)[1] for term in terms]
        whole = sum_of((1,) * len(parts), parts)
        found = None if whole is None else _piece(whole, t, any(map(_has_pole, parts)))
    return None if found is None or whole is None else (logic("and", found[0], guard), found[1], whole.order)


def _arguments(total: Node, forms: Forms) -> dict[Node, Node]:
    """The arguments t of functions among the factors of terms, and where these are functions of t."""
    found: dict[Node, Node] = {}
    for arg in total.args:
        for base, k in forms.monomial(arg)[1]:
            inside = forms.terms(base) if type(base.op) is Add else {}
            for b in (base, *(b for m in inside if len(inside) <= MAX_DEPENDENT for b, _ in m)):
                if head_of(b) in SERIES:
                    found.setdefault(b.args[0], constant(True))
                elif type(b.op) is Pow and constant_value(b.args[1]) is None:
                    found[exponent_of(b)] = compare("<", constant(0), b.args[0])
            if k < 0 and len(inside) == 2 and ONE in inside:
                (m,) = inside.keys() - {ONE}
                if not any(type(b.op) in (Apply, Pow) for b, _ in m):
                    found.setdefault(product(1, m), constant(True))
    return {t: guard for t, guard in found.items() if all(forms.monomial(t))}  # numbers are no arguments


def exponent_of(base: Node) -> Node:
    """The number e log b of b^e = exp(e log b), with the logarithm that is in slopes."""
    b, e = base.args
    return mul(e, apply(sympy.log, select(equal(b, constant(0)), constant(1), b)))


def _split(term: Term, t: Node, forms: Forms, depth: int = 3) -> tuple[Monomial, Laurent]:
    """The factors that do not depend on t, and the series of the others."""
    scale, inside = forms.monomial(t)
    rest, order = dict[Node, int](), 0
    made = fmpq_series([exact_number(term[0])])
    if not term[0]:
        return term[1], Laurent(0, made)
    for base, k in term[1]:
        factors, part = _of_argument(base, t, forms, depth)
        for b, j in factors:
            rest[b] = rest.get(b, 0) + j * k
        if part is not None:
            order += k * part.order
            for _ in range(abs(k)):
                made = made * part.series if k > 0 else made / part.series
    base, highest = min(inside, key=lambda pair: abs(pair[1]), default=(t, 1))
    k = rest.get(base, 0) // highest
    for b, j in inside:
        rest[b] = rest.get(b, 0) - j * k
    made = made / exact_number(Fraction(scale) ** k)
    return frozenset([pair for pair in rest.items() if pair[1]]), Laurent(order + k, made)


def _of_argument(base: Node, t: Node, forms: Forms, depth: int) -> tuple[Monomial, Laurent | None]:
    """Other factors and the series of a function of t, also of a sum of such."""
    one: Monomial = frozenset([(base, 1)])
    if _is_of(base, t):
        return ONE, _of_head(head_of(base) if head_of(base) in SERIES else sympy.exp)
    terms = forms.terms(base) if type(base.op) is Add and base is not t and depth else {}
    if not 1 < len(terms) <= MAX_DEPENDENT:
        return one, None
    parts = [_split((c, m), t, forms, depth - 1) for m, c in terms.items()]
    alike = len({rest for rest, _ in parts}) == 1
    whole = sum_of((1,) * len(parts), [part for _, part in parts]) if alike else None
    return (one, None) if whole is None else (parts[0][0], whole)


@lru_cache(256)
def _of_head(head: Any) -> Laurent | None:
    with first(ORDER):
        return SERIES[head](Laurent(1, fmpq_series([1])))


def variable_of(total: Node) -> Node | None:
    """The only input of a sum of few elementwise nodes; the sum if there are others; None for many nodes."""
    seen, waiting, found = {total}, [total], set[Node]()
    while waiting:
        node = waiting.pop()
        if type(node.op) not in (Add, Mul, Pow, Apply, Constant):
            found.add(node)
        else:
            new = [a for a in node.args if a not in seen]
            seen.update(new)
            waiting += new
            if len(seen) > MAX_NODES:
                return None
    return next(iter(found)) if len(found) == 1 else total


def _cancels_at(total: Node, t: Node, value: float) -> bool:
    """Whether the sum is much smaller than one of its terms."""
    assert isinstance(total.op, Add)
    known: dict[Node, Any] = {t: value}
    with np.errstate(all="ignore"):
        parts = [_value(a, known) for a in total.args]
    finite = [part for part in parts if part is not None and isfinite(part)]
    if len(finite) < len(parts):
        return False
    signed = [sign * part for sign, part in zip(total.op.signs, finite, strict=True)]
    return abs(sum(signed)) < max(map(abs, signed)) / 16


def _value(node: Node, known: dict[Node, Any]) -> float | None:
    if node not in known:
        values = [_value(a, known) for a in node.args]
        try:
            known[node] = None if None in values else float(evaluate(node.op, tuple(values)))
        except (ArithmeticError, ValueError, TypeError):
            known[node] = None
    return known[node]


# ---- the piece ------------------------------------------------------------------------------------


def _has_pole(part: Laurent | None) -> bool:
    return part is None or part.order < 0


def _piece(whole: Laurent, t: Node, pole: bool) -> tuple[Node, Node] | None:
    """The condition |t| < r, and P(t) for t^k P(t); ``pole``: the sum has no value at 0."""
    given = [Fraction(int(c.p), int(c.q)) for c in whole.series.coeffs()]
    sizes = [float(abs(c / given[0])) for c in given]
    if len(sizes) < ORDER // 2 or max(sizes) > 1e200:
        return None
    growth = max(
        [size ** (1 / (j + 1)) for j, size in enumerate(sizes[1:]) if j >= len(sizes) // 2], default=0.0
    )
    step = 2 if not any(given[1::2]) else 1
    kept = given[::step][: MAX_DEGREE // 2 + 1]
    for r in RADII:
        rest = sum(size * r**j for j, size in enumerate(sizes) if j >= step * len(kept))
        q = growth * r
        tail = q ** len(sizes) / (1 - q) if q < 1 else 1.0
        if rest + tail < DROPPED:
            break
    else:
        return None
    x = power(t, constant(2)) if step == 2 else t
    value = constant(float(kept[-1])) if len(kept) > 1 else constant(kept[0])
    for c in reversed(kept[:-1]):
        value = add(constant(float(c)), mul(x, value))
    near = compare("<", apply(sympy.Abs, t), constant(r))
    return logic("and", near, compare("!=", t, constant(0))) if pole else near, value

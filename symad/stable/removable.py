"""Taylor pieces at removable cancellations: x − sin(x) = x³/6 − x⁵/120 + ... near 0.

The terms of a sum are R L(t) with a factor R that is free of t and a Laurent series L with rational
coefficients; `series_variables` says what t may be. If the sum of the series with one R starts at a higher
order k than these, digits cancel near t = 0, and R t^k P(t) is taken there: where |t| < r, with r the largest
of some radii at which the dropped terms are below a quarter of a rounding error. Only for graphs that are not
differentiated afterwards: differentiation would lose a degree.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import isfinite, log2
from typing import Any

import numpy as np
import sympy

from symad.core.graph import Node, op_of
from symad.core.questions import evaluate
from symad.ops.basic.arithmetic import Add, Mul, add, div, mul, signed_sum, sub
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import Constant, Input, constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow, power
from symad.ops.elementwise.selection import compare, logic, select
from symad.stable.laurent import FEW, ORDER, SERIES, Laurent, first, product_of, sum_of
from symad.stable.normal_forms import ONE, Forms, Monomial, Term, head_of, product, rational
from symad.stable.series_variables import (
    DEPTH,
    MAX_DEPENDENT,
    SeriesVariable,
    exponent_of,
    variable_of,
    whole_part,
)

MAX_DEGREE, MAX_NODES = 24, 40
"""The coefficients printed at most; the nodes of a sum at most."""

MAX_TERMS, MAX_ARGUMENTS = 12, 8
"""The terms of a sum, and the arguments in it that are tried."""

RADII = [m / 2**k for k in range(8) for m in (1.0, 0.75)]
DROPPED = 2.0**-55
PROBE = 2.0**-12
"""A small value of the only input, at which sums that lose no digits are left alone."""

Signed = tuple[int, Node]


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
    if type(better.op) is not Add or 1 in (len(written.args), len(better.args)):
        return None
    sums = [n for n in dict.fromkeys((written, better)) if len(n.args) <= MAX_TERMS]
    if not sums:
        return None
    large = any([a in forms.large or any([b in forms.large for b in a.args]) for a in written.args])
    inputs = None if large else inputs_of(written)
    if inputs is None:
        forms.large.add(written)
        return None
    only = next(iter(inputs)) if {type(n.op) for n in inputs} == {Input} and len(inputs) == 1 else None
    for total in sums:
        variables = {
            t: (size, guard)
            for t, (size, guard) in _variables(total, only, forms).items()
            if only is None or _may_cancel(better, only, PROBE / size, variable_of(t, forms))
        }
        made = _with_pieces(total, better, variables, forms) if variables else None
        if made is not None:
            return made
    return None


def inputs_of(total: Node) -> set[Node] | None:
    """The inputs of a sum of few elementwise nodes, and other nodes as such; None for many nodes."""
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
    return found


def _variables(total: Node, only: Node | None, forms: Forms) -> dict[Monomial, tuple[float, Node]]:
    """What functions in a sum have as their arguments up to a number, the largest such number, and where."""
    found: dict[Monomial, tuple[float, Node]] = {}
    for base, k in [factor for arg in total.args for factor in forms.monomial(arg)[1]]:
        known = forms.arguments.get((base, k < 0))
        if known is None:
            given = [(forms.monomial(u), guard) for u, guard in _arguments(base, k, forms)]
            known = [(m, abs(float(c)), guard) for (c, m), guard in given if c and m]
            forms.arguments[base, k < 0] = known
        for m, size, guard in known:
            if len(found) < MAX_ARGUMENTS or m in found:
                found[m] = max(found.get(m, (0.0,))[0], size), guard
    if only is not None:
        alone = ((only, 1),)
        found = {alone: found.get(alone, (1.0, constant(True))), **found}
    return found


def _arguments(base: Node, k: int, forms: Forms) -> Iterator[tuple[Node, Node]]:
    """The arguments of functions in a factor base^k, and of 1/(1 + t); and where they have values."""
    anywhere, inside = constant(True), forms.terms(base) if type(base.op) is Add else {}
    for b in _factors_in(base, forms, DEPTH):
        if head_of(b) in SERIES:
            yield b.args[0], anywhere
        elif type(b.op) is Pow and constant_value(b.args[1]) is None:
            log = exponent_of(b.args[0], whole_part(b.args[1], forms)[1])
            yield log, compare("<", constant(0), b.args[0])
        if head_of(b) is sympy.log or type(b.op) is Pow:
            yield from [(u, anywhere) for u in _less_one(b.args[0], forms)]
    if k < 0 and len(inside) == 2 and ONE in inside:
        (m,) = [m for m in inside if m]
        if not any(type(b.op) in (Apply, Pow) for b, _ in m):
            yield product(1, m), anywhere


def _factors_in(base: Node, forms: Forms, depth: int) -> Iterator[Node]:
    """A factor, and the factors in the terms of one that is a short sum."""
    yield base
    inside = forms.terms(base) if type(base.op) is Add and depth else {}
    for b in [b for m in inside if len(inside) <= MAX_DEPENDENT for b, _ in m if b is not base]:
        yield from _factors_in(b, forms, depth - 1)


def _less_one(u: Node, forms: Forms) -> Iterator[Node]:
    """The ratio u − 1 for a product u of powers with an input, without a division before the difference."""
    c, m = forms.monomial(u)
    if any(type(base.op) is Input and abs(k) == 1 for base, k in m):
        under = product(1, tuple([(base, -k) for base, k in m if k < 0]))
        above = product(c, tuple([(base, k) for base, k in m if k > 0]))
        yield div(sub(above, under), under)


def _may_cancel(total: Node, x: Node, size: float, t: SeriesVariable) -> bool:
    """Whether a sum of one input x is much smaller than one of its terms near t = 0, if that is known."""
    if any([b.args for b, _ in t.monomial]) and t.substituted is None:
        return True
    at = 0.0 if t.substituted is None else t.substituted.zero()
    for value in (at + size, at - size):
        known: dict[Node, Any] = {x: value}
        with np.errstate(all="ignore"):
            whole, parts = _value(total, known), [_value(a, known) for a in _added(total)]
        finite = [abs(part) for part in parts if part is not None and isfinite(part)]
        if whole is None or len(finite) < len(parts) or abs(whole) >= max(finite) / 16:
            return False
    return True


def _added(total: Node) -> Iterator[Node]:
    """The terms of a sum and of sums in it."""
    for arg in total.args:
        yield from _added(arg) if type(arg.op) is Add else (arg,)


def _value(node: Node, known: dict[Node, Any]) -> float | None:
    if node not in known and type(node.op) is Input:
        return None
    if node not in known:
        values = [_value(a, known) for a in node.args]
        try:
            known[node] = None if None in values else float(evaluate(node.op, tuple(values)))
        except (ArithmeticError, ValueError, TypeError):
            known[node] = None
    return known[node]


# ---- pieces ---------------------------------------------------------------------------------------


def _with_pieces(
    total: Node, better: Node, variables: dict[Monomial, tuple[float, Node]], forms: Forms
) -> Node | None:
    """A sum with pieces for its terms R L(t) with one R; of the sum as it was written, for all terms."""
    left: list[tuple[Signed, Term]] = []
    for sign, arg in zip(op_of(total, Add).signs, total.args, strict=True):
        terms = forms.terms(arg)
        for m, c in terms.items():
            left.append(((sign, arg if len(terms) == 1 else product(c, m)), (sign * c, m)))
    made: list[Signed] = []
    for t, (size, guard) in variables.items():
        for rest, members in _groups(left, variable_of(t, forms)).items():
            whole = total is better or len(members) == len(left)
            found = _piece([term for _, term in members], SeriesVariable(t, forms), size) if whole else None
            if found is not None:
                left = [pair for pair in left if pair not in members]
                near, order, value = found
                lead = product(1, forms.times(rest, t, order))
                far = signed_sum([signed for signed, _ in members]) if total is better else better
                made.append((1, select(logic("and", near, guard), mul(lead, value), far)))
    return broadcast_to(signed_sum([*[arg for arg, _ in left], *made]), better.shape) if made else None


def _groups(terms: list[tuple[Signed, Term]], t: SeriesVariable) -> dict[Monomial, list[tuple[Signed, Term]]]:
    """The terms with equal factors beside functions of t, if their sum may start at a higher order."""
    fixed = [tuple([f for f in m if not t.may_hold(f[0])]) for _, (_, m) in terms]
    if len(set(fixed)) == len(terms):
        return {}
    groups: dict[Monomial, list[tuple[tuple[Signed, Term], list[Laurent]]]] = {}
    with first(FEW):
        for pair in terms:
            rest, parts = t.split(pair[1])
            groups.setdefault(rest, []).append((pair, parts))
        return {
            rest: [pair for pair, _ in members]
            for rest, members in groups.items()
            if len(members) > 1 and _rises([product_of(parts) for _, parts in members])
        }


def _rises(parts: list[Laurent]) -> bool:
    """Whether a sum of series starts at a higher order than its terms, as far as is known."""
    whole = sum_of(parts)
    return whole is None or whole.order > min(part.order for part in parts)


def _piece(terms: list[Term], variable: SeriesVariable, size: float) -> tuple[Node, int, Node] | None:
    """The condition |t| < r, the order k, and P(t) for t^k P(t); functions are far from 0 at t = 1/size."""
    with first(ORDER):
        whole = sum_of([product_of(variable.split(term)[1]) for term in terms])
    if whole is None:
        return None
    t, unit = product(1, variable.monomial), Fraction(2) ** -round(log2(size))
    given = [Fraction(int(c.p), int(c.q)) for c in whole.series.coeffs()]
    sizes = [float(abs(c / given[0]) * unit**j) for j, c in enumerate(given)]
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
    near = compare("<", apply(sympy.Abs, t), constant(r * float(unit)))
    if whole.pole:
        near = logic("and", near, compare("!=", t, constant(0)))
    return near, whole.order, value

"""Numbers of one input, by another one in which regions with irrational ends have rational ends.

With x = 2 atan s, |x| < π, sin x, cos x and tan x are rational in s, and π/2 is s = 1; with x = s/√(1 + s²),
|x| < 1, so is x/√(1 − x²), and 1/√2 is s = 1. Where whole parts of x/π occur, x is 2π n + 2 atan s with an
integer n: each whole part is then 2a n and a number for s between −∞, −1, 0, 1 and ∞, and n stands for a real
number. Cuts are computed exactly: a pair with an end that is not rational in s is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import floor
from typing import NamedTuple

import sympy

from symad.core.graph import Graph, Node, rebuild, topological
from symad.ops.basic.arithmetic import Mul, add, div, mul, neg, sub
from symad.ops.basic.sources import Input, constant, input_node, symbol_of
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow, power
from symad.ops.elementwise.selection import Compare, compare
from symad.verification.rewriting.restated.by_injective import Box, by_signs
from symad.verification.rewriting.restated.by_regions import Case, between, by_regions, without_conditions
from symad.verification.rewriting.restated.by_whole_parts import by_whole_parts
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.terms.discontinuities import jumps

CIRCULAR = {sympy.sin, sympy.cos, sympy.tan}
QUARTERS = {Fraction(-1): Fraction(-1, 2), Fraction(0): Fraction(0), Fraction(1): Fraction(1, 2)}
"""2 atan(s)/π at the points where regions are cut in any case."""

PROMISES = {"integer", "rational", "irrational", "zero", "positive", "negative", "nonpositive", "nonnegative"}
"""What inputs that are not replaced are known to be, or not to be."""

MAX_NODES, MAX_CUTS = 60, 12
"""The maximum numbers of nodes of two sides, and of points that cut the line."""

S = sympy.Dummy("s", real=True)


class Way(NamedTuple):
    """x as a function of s that grows, the end of its values, and its inverse."""

    value: sympy.Expr
    end: sympy.Expr
    inverse: sympy.Lambda


ANGLE = Way(2 * sympy.atan(S), sympy.pi, sympy.Lambda(S, sympy.tan(S / 2)))
SINE = Way(S / sympy.sqrt(1 + S**2), sympy.Integer(1), sympy.Lambda(S, S / sympy.sqrt(1 - S**2)))


def cases_of(outputs: Sequence[Node]) -> Iterator[list[Case]]:
    """The cases of two numbers, all of which must hold, in each way in which there are some."""
    for pairs in (by_signs(outputs), by_whole_parts(outputs)):
        yield [Case(a, b, {}) for a, b in pairs]
    yield by_regions(outputs)
    yield by_substitution(outputs)


def by_substitution(outputs: Sequence[Node]) -> list[Case]:
    """Two scalars of one real input on each interval of s; none where it does not apply."""
    sides = expand_definitions(outputs)
    nodes = topological(sides)
    inputs = [n for n in nodes if isinstance(n.op, Input)]
    if len(inputs) != 1 or len(nodes) > MAX_NODES or any(n.shape for n in nodes):
        return []
    (x,), circular = inputs, [n for n in nodes if isinstance(n.op, Apply) and n.op.head in CIRCULAR]
    roots = any(isinstance(n.op, Pow) or _is_inverse(n) for n in nodes)
    if getattr(symbol_of(x), "assumptions0", {}).keys() & PROMISES:
        return []
    if not (circular and all(n.args[0] is x for n in circular)) and (circular or not roots):
        return []
    steps = [n for n in nodes if isinstance(n.op, Apply) and n.op.head in (sympy.floor, sympy.ceiling)]
    conditions = [n for n in nodes if isinstance(n.op, Compare)]
    if steps:
        return [] if conditions or not circular else _periodic(sides, x, circular, steps)
    return _bounded(sides, x, circular, conditions)


def _is_inverse(node: Node) -> bool:
    return isinstance(node.op, Apply) and node.op.head in (sympy.asin, sympy.acos)


def _bounded(
    sides: Sequence[Node], x: Node, circular: Sequence[Node], conditions: Sequence[Node]
) -> list[Case]:
    """For |x| below the end: beyond it both sides are the same, or have no value."""
    way, known = ANGLE if circular else SINE, dict[Node, sympy.Expr]()
    zeros = set[sympy.Expr]()
    for c in conditions:
        gap = _expression(sub(*c.args), x)
        if gap is None:  # of other conditions
            continue
        found = _zeros(gap)
        if found is None:
            return []
        known[c], zeros = gap, zeros | found
    inside = [(way.end - sympy.Abs(z)).is_positive for z in zeros]
    if None in inside or len(zeros) > MAX_CUTS or not all(_decided(c, known) for c in conditions):
        return []
    cuts = {sympy.Integer(k) for k in QUARTERS}
    cuts |= {sympy.simplify(way.inverse(z)) for z, near in zip(zeros, inside, strict=True) if near}
    if not all(c.is_Rational for c in cuts):
        return []
    ends = sorted(
        {way.end, -way.end, *(z for z, near in zip(zeros, inside, strict=True) if not near)}, key=float
    )
    beyond = [ends[0] - 1, ends[-1] + 1]
    beyond += [(a + b) / 2 for a, b in pairwise(ends) if abs((a + b) / 2) > way.end]
    for place in beyond:
        a, b = rebuild(sides, _truths(known, place))
        left, right = without_conditions([a, b], {})
        nothing = any(_is_inverse(n) and n.args[0] is x for n in topological([left, right]))
        if left is not right and not (nothing and way is SINE):
            return []
    made = []
    for s, box, sample in _intervals([Fraction(int(c.p), int(c.q)) for c in cuts]):
        inner = {
            **_truths(known, way.value.subs(S, sample)),
            **_in_s(topological(sides), x, s, circular, way),
        }
        made.append(Case(*without_conditions(rebuild(sides, inner), box), box))
    return made


def _periodic(sides: Sequence[Node], x: Node, circular: Sequence[Node], steps: Sequence[Node]) -> list[Case]:
    """For all x = 2π n + 2 atan s, where whole parts are of a x/π + b with rational numbers."""
    n, made = input_node(sympy.Dummy("n", real=True)), []
    for s, box, sample in _intervals(list(QUARTERS)):
        edges = [q for q in QUARTERS if (q < sample)][-1:], [q for q in QUARTERS if q > sample][:1]
        low, high = (QUARTERS[q[0]] if q else Fraction(end) for q, end in zip(edges, (-1, 1), strict=True))
        inner = _in_s((), x, s, circular, ANGLE)
        for step in steps:
            whole = _whole(step, x, low, high)
            if whole is None:
                return []
            inner[step] = add(mul(constant(whole[0]), n), constant(whole[1]))
        inner[x] = add(mul(constant(2), constant(sympy.pi), n), inner[x])
        left, right = rebuild(sides, inner)
        gap = _expression(sub(left, right), n)
        if jumps(left) or jumps(right) or gap is None or gap.has(S):  # n must cancel
            return []
        a, b = rebuild([left, right], {n: constant(0)})
        made.append(Case(a, b, box))
    return made


def _whole(step: Node, x: Node, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction] | None:
    """2a and k where ⌊a x/π + b⌋ is 2a n + k for x = π (2n + u), u between low and high."""
    assert isinstance(step.op, Apply)
    argument = _expression(step.args[0], x)
    if argument is None or not argument.is_polynomial(S) or sympy.degree(argument, S) != 1:
        return None
    a, b = sympy.simplify(argument.coeff(S, 1) * sympy.pi), argument.coeff(S, 0)
    if not (a.is_Rational and b.is_Rational and (2 * a).is_Integer):
        return None
    a, b, sign = Fraction(int(a.p), int(a.q)), Fraction(int(b.p), int(b.q)), 1
    if step.op.head is sympy.ceiling:  # ⌈v⌉ = −⌊−v⌋
        a, b, sign = -a, -b, -1
    ends = sorted((a * low + b, a * high + b))
    whole = floor(ends[0])
    return (2 * a * sign, Fraction(whole * sign)) if ends[1] <= whole + 1 else None


def _intervals(cuts: Sequence[Fraction]) -> list[tuple[Node, Box, Fraction]]:
    """s by a positive input on each interval between cuts, of which 0 is one, its bounds, and a point."""
    made, ends = list[tuple[Node, Box, Fraction]](), sorted(cuts)
    points = [(a + b) / 2 for a, b in pairwise([ends[0] - 2, *ends, ends[-1] + 2])]
    for low, high, point in zip([None, *ends], [*ends, None], points, strict=True):
        up = low is not None and low >= 0
        free = input_node(sympy.Dummy("s", positive=True))
        bounds = between(low, high) if up else -between(low, high)
        made.append((free if up else neg(free), {free: bounds}, point))
    return made


def _monomial(e: sympy.Expr | None) -> tuple[Fraction, Fraction, Fraction] | None:
    """k, i and e of k xⁱ (1 − x²)ᵉ, with whole i ≥ 0."""
    k, powers = sympy.Integer(1), {S: sympy.Integer(0), 1 - S**2: sympy.Integer(0)}
    for factor in sympy.Mul.make_args(e) if e is not None else (S + 1,):
        base, exponent = factor.as_base_exp()
        if base in powers and exponent.is_Rational:
            powers[base] += exponent
        elif factor.is_Rational:
            k *= factor
        else:
            return None
    if not powers[S].is_Integer or powers[S] < 0 or powers[1 - S**2] == 0:
        return None
    found = [Fraction(int(q.p), int(q.q)) for q in (k, *powers.values())]
    return found[0], found[1], found[2]


def _angles(nodes: Sequence[Node], x: Node, s: Node) -> dict[Node, Node]:
    """asin x, acos x and multiples of xⁱ (1 − x²)ᵉ by s where x = s/√(1 + s²)."""
    made, angle, square = dict[Node, Node](), apply(sympy.atan, s), add(constant(1), mul(s, s))
    for node in nodes:
        if _is_inverse(node) and node.args[0] is x:
            right = div(constant(sympy.pi), constant(2))
            made[node] = angle if node.op.head is sympy.asin else sub(right, angle)  # type: ignore[attr-defined]  # an Apply
        elif isinstance(node.op, (Mul, Pow)) and (found := _monomial(_expression(node, x))):
            k, power_of_x, e = found
            parts = [
                constant(k),
                power(s, constant(power_of_x)),
                power(square, constant(-power_of_x / 2 - e)),
            ]
            made[node] = mul(*parts)
    return made


def _in_s(nodes: Sequence[Node], x: Node, s: Node, circular: Sequence[Node], way: Way) -> dict[Node, Node]:
    """The input, and functions of it, by s."""
    one, square = constant(1), mul(s, s)
    if way is SINE:
        cosine = power(add(one, square), constant(Fraction(-1, 2)))
        return {x: mul(s, cosine), **_angles(nodes, x, s)}
    sine, cosine = (div(top, add(one, square)) for top in (mul(constant(2), s), sub(one, square)))
    rational = {sympy.sin: sine, sympy.cos: cosine, sympy.tan: div(mul(constant(2), s), sub(one, square))}
    known = {node: rational[node.op.head] for node in circular if isinstance(node.op, Apply)}
    return {x: mul(constant(2), apply(sympy.atan, s)), **known}


def _expression(node: Node, x: Node) -> sympy.Expr | None:
    """A node without conditions as a SymPy expression in S."""
    from symad.tracing.into_sympy.nodes import to_sympy

    if any(isinstance(n.op, Compare) for n in topological([node])):
        return None
    (s,) = rebuild([node], {x: input_node(S)})
    return sympy.expand(to_sympy(Graph(tuple(n for n in topological([s]) if isinstance(n.op, Input)), (s,))))


def _zeros(gap: sympy.Expr) -> set[sympy.Expr] | None:
    """All zeros of c x + d, c |x| + d or c x² + d, if it is one of these."""
    for term in (S, sympy.Abs(S), S**2):
        c, d = gap.coeff(term, 1), sympy.expand(gap - gap.coeff(term, 1) * term)
        if c.is_Rational and c != 0 and not d.has(S):
            z = -d / c
            if term is S:
                return {z}
            if z.is_positive is None:
                return None
            z = sympy.sqrt(z) if term == S**2 else z
            return {z, -z} if z.is_positive else set()
    return None


def _decided(condition: Node, known: Mapping[Node, sympy.Expr]) -> bool:
    """Whether a condition is known, or of conditions alone that are."""
    todo = [condition]
    while todo:
        node = todo.pop()
        if isinstance(node.op, Input):
            return False
        todo.extend(node.args if node not in known else ())
    return True


def _truths(known: Mapping[Node, sympy.Expr], place: sympy.Expr) -> dict[Node, Node]:
    """Conditions that are true or false at a place, which is no zero of any."""
    made = {}
    for node, gap in known.items():
        assert isinstance(node.op, Compare)
        below = bool(gap.subs(S, place).evalf(30) < 0)
        true = {"<": below, "<=": below, "==": False, "!=": True}[node.op.relation]
        made[node] = compare("<", constant(0), constant(1 if true else -1))
    return made

"""Numbers of few inputs by cases: signs of these, intervals between the ends of conditions, or whole parts.

An input is ±p with p > 0, so that signs and absolute values are known. On an interval, interval arithmetic
decides conditions and signs: cos x is positive for |x| < 1, so that √(1 − sin² x) is cos x there. An identity
that holds with these signs holds on the interval; the intervals cover the line, but for some points.

Whole parts of multiples of one input: x = L n + (j + t)/M with integers n, j and 0 < t < 1. For some L and M
each ⌊a x + b⌋ is a L n and a number, for j = 0, ..., L M − 1: with these every real x is reached, but for
multiples of 1/M. Whole parts of whole parts are the same again. Integers are L n + j. Then n and t stand for
real numbers, and an identity of analytic functions holds at integers too. What jumps must not depend on them:
n = 5 is a point, and ⌊x⌋ = 5 is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import reduce
from itertools import chain, product
from math import floor, lcm, prod
from typing import NamedTuple

import numpy as np
import sympy
from sympy import divisors

from symad.core.graph import Node, rebuild, topological
from symad.evaluation.intervals import ZERO, Interval, above, below, both
from symad.evaluation.value_ranges import promised
from symad.facts.functions import fact
from symad.ops.basic.arithmetic import Add, Mul, add, mul, neg, sub
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import Input, constant, input_node, inputs_in, symbol_of
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Compare, Select
from symad.verification.rewriting.restated.by_injective import Box
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.terms.discontinuities import SIGNS, jumps
from symad.verification.terms.linear_terms import linear_terms, number
from symad.verification.values.ranges import ranges

# ---- whole parts of multiples of one input, by cases ---------------------------------------------

MAX_CASES = 64
MAX_COMMON_MULTIPLE = 10_000
"""The maximum numbers of cases of one input, and of the least common multiple of numbers in whole parts."""


class Affine(NamedTuple):
    """``n`` times an integer, ``t`` times a number between 0 and 1, and ``rest``."""

    n: Fraction
    t: Fraction
    rest: Fraction

    def times(self, c: Fraction) -> Affine:
        """A multiple."""
        return Affine(self.n * c, self.t * c, self.rest * c)

    def plus(self, other: Affine) -> Affine:
        """A sum."""
        return Affine(self.n + other.n, self.t + other.t, self.rest + other.rest)

    def whole(self) -> Affine | None:
        """⌊n + t + rest⌋, if it is one number beside n for all t."""
        low = min(self.rest, self.rest + self.t)
        if self.n.denominator > 1 or (self.t and low + abs(self.t) > floor(low) + 1):
            return None
        return Affine(self.n, Fraction(0), Fraction(floor(low)))


ONE = Affine(Fraction(0), Fraction(0), Fraction(1))


def by_whole_parts(outputs: Sequence[Node]) -> list[tuple[Node, Node]]:
    """Two sides for each case of one input; none where whole parts are of something else."""
    sides = expand_definitions(outputs)
    nodes = topological(sides)
    steps = [n for n in nodes if _is_step(n)]
    below = topological(steps)
    inputs = [n for n in below if isinstance(n.op, Input)]
    if len(inputs) != 1 or inputs[0].shape:
        return []
    (x,) = inputs
    whole = getattr(symbol_of(x), "is_integer", False)
    for L, M in _choices(below, whole):
        starts = [Affine(Fraction(L), Fraction(0 if whole else 1, M), Fraction(j, M)) for j in range(L * M)]
        cases = [_written_out(below, {x: start}) for start in starts]
        known = [{step: case[step] for step in (x, *steps)} for case in cases if case is not None]
        if len(known) == len(cases):
            made = [_replaced(sides, case) for case in known]
            return made if not any(map(jumps, chain.from_iterable(made))) else []
    return []


def _is_step(node: Node) -> bool:
    return isinstance(node.op, Apply) and fact(node.op.head).kink in ("whole", "quotient") and not node.shape


def _choices(below: Sequence[Node], whole: bool) -> list[tuple[int, int]]:
    """L and M of x = L n + (t + j)/M, few cases first; M is 1 for a whole number."""
    numbers = [q for q in map(number, below) if q]
    scales = [q for n in below if not isinstance(n.op, Add) for q in map(number, n.args) if q]  # no summands
    unit = lcm(*[q.denominator for q in numbers], *[q.numerator for q in scales])
    if unit > MAX_COMMON_MULTIPLE:
        return []
    choices = [(L, M) for L in divisors(unit) for M in divisors(1 if whole else unit) if L * M <= MAX_CASES]
    return sorted(choices, key=prod)


def _replaced(sides: Sequence[Node], known: dict[Node, Affine]) -> tuple[Node, Node]:
    n, t = (input_node(sympy.Dummy(name, real=True)) for name in "nt")
    left, right = rebuild(sides, {node: _node(value, n, t) for node, value in known.items()})
    return left, right


def _written_out(nodes: Sequence[Node], known: dict[Node, Affine]) -> dict[Node, Affine] | None:
    """All nodes; None where one is not of this form."""
    for node in nodes:
        if node not in known:
            value = _affine(node, known)
            if value is None:
                return None
            known[node] = value
    return known


def _affine(node: Node, known: dict[Node, Affine]) -> Affine | None:
    exact = number(node)
    if exact is not None:
        return Affine(Fraction(0), Fraction(0), exact)
    args = [known[a] for a in node.args]
    match node.op:
        case Add():
            parts = [a.times(Fraction(s)) for s, a in zip(node.op.signs, args, strict=True)]
            return reduce(Affine.plus, parts)
        case Mul():
            return _product(node.op.powers, args)
        case Apply(head=sympy.floor):
            return args[0].whole()
        case Apply(head=sympy.ceiling):
            below = args[0].times(Fraction(-1)).whole()
            return None if below is None else below.times(Fraction(-1))
        case Apply(head=sympy.frac | sympy.Mod):
            return _remainder(*args)
    return None


def _product(powers: Sequence[int], args: Sequence[Affine]) -> Affine | None:
    """A product of numbers with one of another form at most, which is in no denominator."""
    total = ONE
    for power, a in zip(powers, args, strict=True):
        if power == 1 and not (total.n or total.t):
            total = a.times(total.rest)
        elif a.n or a.t or not a.rest:
            return None
        else:
            total = total.times(a.rest**power)
    return total


def _remainder(a: Affine, unit: Affine = ONE) -> Affine | None:
    """What is left of a beside a whole multiple of a number."""
    if unit.n or unit.t or not unit.rest:
        return None
    whole = a.times(1 / unit.rest).whole()
    return None if whole is None else a.plus(whole.times(-unit.rest))


def _node(value: Affine, n: Node, t: Node) -> Node:
    parts = [mul(constant(c), node) for c, node in ((value.n, n), (value.t, t)) if c]
    return add(*parts, constant(value.rest))


MAX_INPUTS = 3
"""The maximum number of inputs: with more there are too many cases of signs."""

MAX_CUTS = 6
"""The maximum number of points that cut the line of one input."""


class Case(NamedTuple):
    """Two sides on one interval: with another input, which is positive, and its bounds."""

    left: Node
    right: Node
    box: Box


def cases_of(outputs: Sequence[Node]) -> Iterator[list[Case]]:
    """The cases of two numbers, all of which must hold, in each way in which there are some."""
    yield [Case(a, b, {}) for a, b in by_whole_parts(outputs)]
    yield by_regions(outputs)


def by_regions(outputs: Sequence[Node]) -> list[Case]:
    """Two scalars for each choice of intervals of their inputs; none of arrays, or where these are many."""
    sides = expand_definitions(outputs)
    nodes = topological(sides)
    inputs = [n for n in nodes if isinstance(n.op, Input)]
    if len(inputs) > MAX_INPUTS or any(n.shape for n in (*sides, *inputs)):
        return []
    conditions = [n for n in nodes if isinstance(n.op, Compare)] if len(inputs) == 1 else []
    cuts = {cut for n in conditions for cut in _cuts(n, inputs[0])}
    pieces = [_pieces(x, cuts if len(cuts) <= MAX_CUTS else set()) for x in inputs]
    made = []
    for choice in product(*pieces):
        left, right = rebuild(sides, dict(zip(inputs, (piece for piece, _ in choice), strict=True)))
        box = {free: bounds for _, own in choice for free, bounds in own.items()}
        made.append(Case(*without_conditions([left, right], box), box))
    return made


def _pieces(x: Node, cuts: set[Fraction]) -> list[tuple[Node, Box]]:
    """An input by a positive one on each interval between cuts and 0, with its bounds; none of an integer.

    Without other cuts than 0 the sign says all.
    """
    symbol, ends = symbol_of(x), sorted(cuts | {Fraction(0)})
    made: list[tuple[Node, Box]] = []
    if getattr(symbol, "is_integer", False):
        return made
    for low, high in zip([None, *ends], [*ends, None], strict=True):
        positive = low is not None and low >= 0
        if getattr(symbol, "is_nonpositive" if positive else "is_nonnegative", None):
            continue
        free, bounds = input_node(sympy.Dummy(str(symbol), positive=True)), between(low, high)
        box = {free: bounds if positive else -bounds} if cuts else {}
        made.append((free if positive else neg(free), box))
    return made


def _cuts(condition: Node, x: Node) -> Iterator[Fraction]:
    """Where c x + d or c |x| + d, of which a condition asks the sign, is 0."""
    terms = {m: c for c, m in linear_terms(sub(*condition.args))}
    rest = sum((c for m, c in terms.items() if number(m) == 1), Fraction(0))
    others = [(m, c) for m, c in terms.items() if number(m) is None]
    if len(others) != 1:
        return
    ((m, c),) = others
    if m is x:
        yield -rest / c
    elif isinstance(m.op, Apply) and m.op.head is sympy.Abs and m.args[0] is x:
        yield from (-rest / c, rest / c)


def between(low: Fraction | None, high: Fraction | None) -> Interval:
    """The open interval of these ends; None for one that has none."""
    if low is None or high is None:
        return above(low, strict=True) if low is not None else below(high or Fraction(0), strict=True)
    return both(above(low, strict=True), below(high, strict=True))


def without_conditions(sides: Sequence[Node], box: Box) -> tuple[Node, Node]:
    """The sides without branches that are taken nowhere in a box."""
    known = ranges(sides, box) if box else {}

    def taken(node: Node, args: tuple[Node, ...]) -> Node:
        truth = known.get(node.args[0]) if isinstance(node.op, Select) else None
        if isinstance(truth, (bool, np.bool_)):
            return broadcast_to(args[1 if truth else 2], node.shape)
        return node.over(args)

    left, right = rebuild(sides, {}, taken)
    return left, right


def with_known_signs(nodes: Sequence[Node], box: Box) -> tuple[Node, ...]:
    """Nodes with numbers in place of signs that are the same at every point of a box."""
    inputs = inputs_in(nodes)
    known = ranges(nodes, {**promised(inputs), **box})

    def signed(node: Node, args: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Apply) and node.op.head in SIGNS:
            inside = known.get(node.args[0])
            if isinstance(inside, Interval) and (ZERO.below(inside) or inside.below(ZERO)):
                return constant(1 if ZERO.below(inside) else -1)
        return node.over(args)

    return rebuild(nodes, {}, signed)

"""Whole parts of multiples of one input, by cases: x = L n + (j + t)/M with integers n, j and 0 < t < 1.

For some L and M each ⌊a x + b⌋ is a L n and a number, for j = 0, ..., L M − 1: with these every real x is
reached, but for multiples of 1/M. Whole parts of whole parts are the same again. Integers are L n + j.

Then n and t stand for real numbers, and an identity of analytic functions holds at integers too. What jumps
must not depend on them: n = 5 is a point, and ⌊x⌋ = 5 is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from itertools import chain
from math import floor, lcm, prod
from typing import NamedTuple

import sympy
from sympy import divisors

from symad.core.graph import Node, rebuild, topological
from symad.facts.functions import fact
from symad.ops.basic.arithmetic import Add, Mul, add, mul
from symad.ops.basic.sources import Input, constant, input_node, symbol_of
from symad.ops.elementwise.apply import Apply
from symad.verification.rewriting.rewrite import expand_definitions
from symad.verification.terms.discontinuities import jumps
from symad.verification.terms.linear_terms import number

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

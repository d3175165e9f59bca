"""Branches in Coq: a selection is y + c (x − y) with c = 1 where its condition holds and 0 elsewhere.

Conditions are made of `less`, which is 1 or 0. Nothing is claimed where both of its sides are equal, and <
and ≤ differ only there. Derivatives, too, are claimed away from ties only: ∂max(x, y)/∂x is [y < x].
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from fractions import Fraction

from symad.core.graph import Node, rebuild, topological
from symad.ops.basic.arithmetic import Add, Mul, signed_product, signed_sum
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Logic, Select
from symad.sympy_functions.scalar_functions import stop_gradient
from symad.verification.coq.terms import CoqTerm, CoqTerms

EXTREMES = {"Max": "Maximum", "Min": "Minimum"}


# ---- terms ----------------------------------------------------------------------------------------


def less(terms: CoqTerms, a: CoqTerm, b: CoqTerm) -> CoqTerm:
    """1 where a < b, else 0."""
    return terms.app("Less", a, b)


def no(terms: CoqTerms, c: CoqTerm) -> CoqTerm:
    """1 − c: the negation of a condition."""
    return terms.sub(terms.integer(1), c)


def every(terms: CoqTerms, parts: Sequence[CoqTerm]) -> CoqTerm:
    """All of some conditions."""
    return terms.product(list(parts))


def some(terms: CoqTerms, parts: Sequence[CoqTerm]) -> CoqTerm:
    """At least one of some conditions."""
    return no(terms, every(terms, [no(terms, p) for p in parts]))


def choice(terms: CoqTerms, c: CoqTerm, x: CoqTerm, y: CoqTerm) -> CoqTerm:
    """The value x where c is 1, y where c is 0."""
    zero = terms.integer(0)
    first = c if x is terms.integer(1) else terms.mul(c, x)
    rest = no(terms, c) if y is terms.integer(1) else terms.mul(no(terms, c), y)
    if x is zero or y is zero:
        return rest if x is zero else first
    return terms.add(first, rest)


def extreme(terms: CoqTerms, kind: str, args: Sequence[CoqTerm]) -> CoqTerm:
    """The largest or smallest of some terms, from the left."""
    total = args[0]
    for term in args[1:]:
        total = terms.app(EXTREMES[kind], total, term)
    return total


def winner(terms: CoqTerms, kind: str, args: Sequence[CoqTerm], number: int) -> CoqTerm:
    """1 where an argument is the largest or smallest, else 0: the derivative of `extreme`."""
    found: list[CoqTerm] = []
    for k in range(len(args) - 1, max(number, 1) - 1, -1):
        before = extreme(terms, kind, args[:k])
        wins, loses = (args[k], before) if k == number else (before, args[k])
        found.append(less(terms, loses, wins) if kind == "Max" else less(terms, wins, loses))
    return terms.product(found)


# ---- graphs -----------------------------------------------------------------------------------------


def node_condition(terms: CoqTerms, node: Node, args: Sequence[CoqTerm]) -> CoqTerm | None:
    """1 where a comparison or logic of conditions holds, else 0; None if it cannot be written."""
    if isinstance(node.op, Compare) and node.op.relation in ("<", "<="):
        a, b = args
        return less(terms, a, b) if node.op.relation == "<" else no(terms, less(terms, b, a))
    if isinstance(node.op, Logic) and node.op.kind in ("and", "or", "not"):
        if node.op.kind == "not":
            return no(terms, args[0])
        return every(terms, args) if node.op.kind == "and" else some(terms, args)
    return None


def won(node: Node) -> tuple[Node, int] | None:
    """The maximum (or minimum) and k of a node [x_k = max(x_1, ..., x_n)]; None for other nodes."""
    if not isinstance(node.op, Select) or tuple(map(constant_value, node.args[1:])) != (1, 0):
        return None
    condition = node.args[0]
    if not isinstance(condition.op, Compare) or condition.op.relation != "==":
        return None
    argument, whole = condition.args
    known = kind_of(whole) and argument in whole.args
    return (whole, whole.args.index(argument)) if known else None


def kind_of(node: Node) -> str:
    """Max or Min; empty for other nodes."""
    name = node.op.head.__name__ if isinstance(node.op, Apply) else ""
    return name if name in EXTREMES else ""


def is_count_of_winners(node: Node) -> bool:
    """True if a sum counts the arguments that are the largest: the sum is 1 away from ties."""
    parts = [won(a) for a in _summands(node)]
    known = [p for p in parts if p is not None]
    if not isinstance(node.op, Add) or len(known) < len(parts) or len({whole for whole, _ in known}) != 1:
        return False
    return sorted(k for _, k in known) == list(range(len(known[0][0].args)))


def _summands(node: Node) -> list[Node]:
    if isinstance(node.op, Add) and set(node.op.signs) == {1}:
        return [part for a in node.args for part in _summands(a)]
    return [node]


def number_exponent(node: Node) -> Fraction | None:
    """The exponent of a power, if it is a number."""
    value = constant_value(node.args[1]) if isinstance(node.op, Pow) else None
    return Fraction(value) if isinstance(value, (int, float, Fraction)) and value - value == 0 else None


def away_from_zero(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """Scalar nodes without selections where the base of x^y or a root is 0: on the domain it is positive."""
    powers = [n for n in topological(tuple(outputs)) if isinstance(n.op, Pow)]
    positive = {n.args[0] for n in powers if number_exponent(n) is None}

    def taken(node: Node, args: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Select):
            condition, (_, holds, fails) = node.args[0], args
            denied = isinstance(condition.op, Logic) and condition.op.kind == "not"
            if _is_never(condition.args[0] if denied else condition, positive):
                return holds if denied else fails
        return node.over(args)

    return rebuild(outputs, {}, taken)


def unshifted(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """Scalar nodes with 0 for each shift m of exponents: log Σ c exp(L − m) + m does not depend on m."""

    def moved(node: Node, args: tuple[Node, ...]) -> Node:
        op = node.op
        if type(op) is Apply and op.head is stop_gradient:
            return constant(0)
        if args == node.args:
            return node
        if type(op) is Apply:
            return constant(op.head(0)) if constant_value(args[0]) == 0 else apply(op.head, *args)
        if type(op) is Add:
            return signed_sum(zip(op.signs, args, strict=True))
        return signed_product(zip(op.powers, args, strict=True)) if type(op) is Mul else node.over(args)

    return rebuild(outputs, {}, moved)


def _is_never(condition: Node, positive: Container[Node]) -> bool:
    """Whether a condition asks, alone or with others, for a root or a positive base that is 0."""
    if isinstance(condition.op, Logic) and condition.op.kind == "and":
        return any(_is_never(part, positive) for part in condition.args)
    if not isinstance(condition.op, Compare) or condition.op.relation != "==":
        return False
    left, right = condition.args
    root = isinstance(left.op, Pow) or (isinstance(left.op, Apply) and left.op.head.__name__ == "hypot")
    return (root or left in positive) and constant_value(right) == 0


def settled(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """Scalar nodes without selections that the condition of an enclosing branch decides."""

    def inside(node: Node, args: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Select) and any(isinstance(n.op, Select) for n in topological(args[1:])):
            condition = args[0]
            args = (condition, *(_under(b, _facts(condition, k == 0)) for k, b in enumerate(args[1:])))
        return node.over(args)

    return rebuild(outputs, {}, inside)


def _facts(condition: Node, holds: bool) -> dict[Node, bool]:
    """The truth values of conditions that are known where a condition holds, or where it does not."""
    if isinstance(condition.op, Logic):
        if condition.op.kind == "not":
            return {condition: holds, **_facts(condition.args[0], not holds)}
        if condition.op.kind == ("and" if holds else "or"):
            found = {condition: holds}
            for part in condition.args:
                found.update(_facts(part, holds))
            return found
    return {condition: holds}


def _under(branch: Node, facts: Mapping[Node, bool]) -> Node:
    """A branch in which the selections are made that the known conditions decide."""

    def decided(node: Node, args: tuple[Node, ...]) -> Node:
        if isinstance(node.op, Select) and node.args[0] in facts:
            return args[1] if facts[node.args[0]] else args[2]
        return node if args == node.args else _without_ones(node, args)

    (made,) = rebuild((branch,), {}, decided)
    return made


def _without_ones(node: Node, args: Sequence[Node]) -> Node:
    """A node with other arguments; a product without the factors that have become 1."""
    if isinstance(node.op, Mul):
        kept = [(p, a) for p, a in zip(node.op.powers, args, strict=True) if constant_value(a) != 1]
        if [p for p, _ in kept] in ([], [1]):
            return kept[0][1] if kept else constant(1)
        powers, args = zip(*kept, strict=True)
        return Node.of(Mul(tuple(powers)), tuple(args))
    return Node.of(node.op, tuple(args))

"""Values of nodes at 0, in exact and floating numbers, where conditions are decided and zeros leave.

A number is 0 there if it is smaller than the rounding of the sum that it is. A quotient by a number that is 0
has no value, and neither has a function of numbers that is not finite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isfinite, nan

import numpy as np
import sympy

from symad.core.graph import Node, Op, rebuild, topological
from symad.core.questions import Nodes, evaluate
from symad.facts.functions import fact
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul, add, mul, signed_product, signed_sum
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, broadcast_to
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Compare, Condition, Logic, Select, compare, equal, logic, select

ROUNDING = Fraction(1, 10**6)
"""A sum is taken to be 0 if it is smaller than this part of its terms; larger than rounding in float32."""

MAX_CASES = 4
"""Values that depend on more conditions stay as they are."""

SCALAR = (ElementwiseOp, Broadcast)
"""Ops that on numbers make a number."""


def at_zero(function: Node, *zeros: Node) -> Node | None:
    """The value of a function where some nodes are 0; None if it has none."""
    (value,) = decided([function], {node: zeros_like(node) for node in zeros})
    return value if has_values(value) else None


def by_cases(value: Node, depth: int = MAX_CASES) -> Node:
    """A number, or a selection of such by open conditions, where a value is made of them."""
    number = NumbersBelow()(value)
    if number is not None:
        return broadcast_to(constant(number), value.shape)
    conditions = [node.args[0] for node in topological([value]) if isinstance(node.op, Select)]
    if not depth or not conditions or conditions[0].shape not in ((), value.shape):
        return value
    known = [broadcast_to(constant(holds), conditions[0].shape) for holds in (True, False)]
    cases = [decided([value], {conditions[0]: holds})[0] for holds in known]
    return select(conditions[0], *[by_cases(case, depth - 1) for case in cases])


def zeros_like(node: Node) -> Node:
    """0 in the shape of a node."""
    return broadcast_to(constant(0), node.shape)


def near_zero(functions: Sequence[Node], zeros: Mapping[Node, Node], fixed: Mapping[Node, Node]) -> Nodes:
    """Functions with their conditions decided as they are where some nodes are 0; fixed nodes stay.

    Their values and derivatives there are the same: those of a selection are selected by its condition.
    """
    conditions = [node for node in topological(functions, fixed) if isinstance(node.op, Condition)]
    there = map(NumbersBelow(), decided(conditions, {**fixed, **zeros}))
    known = {c: holds for c, holds in zip(conditions, there, strict=True) if holds is not None}

    def made(node: Node, args: Nodes) -> Node:
        taken = known.get(node.args[0]) if isinstance(node.op, Select) else None
        return node.over(args) if taken is None else broadcast_to(args[1 if taken else 2], node.shape)

    return rebuild(functions, fixed, made) if known else tuple(functions)


def decided(nodes: Sequence[Node], replaced: Mapping[Node, Node]) -> Nodes:
    """The nodes with others replaced; conditions on numbers are decided."""
    numbers = NumbersBelow()

    def remade(old: Node, args: Nodes) -> Node:
        return broadcast_to(_decided(old.op, args, numbers), old.shape)

    return rebuild(nodes, replaced, remade)


def vanishes(node: Node) -> Node | None:
    """The condition that a value is 0, but for the rounding of a sum; None if it never is."""
    op = node.op
    if _is_never_zero(node):
        return None
    if isinstance(op, Add) and len(node.args) == 1:
        return vanishes(node.args[0])
    if isinstance(op, Add):
        size = add(*[apply(sympy.Abs, term) for term in node.args])
        return compare("<=", apply(sympy.Abs, node), mul(constant(ROUNDING), size))
    if isinstance(op, Mul):
        parts = [vanishes(a) for p, a in zip(op.powers, node.args, strict=True) if p == 1]
        known = [part for part in parts if part is not None]
        return logic("or", *known) if known else None
    return equal(node, constant(0))


def _is_never_zero(node: Node) -> bool:
    value = constant_value(node)
    if isinstance(value, (int, float, Fraction)):
        return value != 0
    return isinstance(node.op, Apply) and fact(node.op.head).never_zero


def _decided(op: Op, args: Nodes, number: NumbersBelow) -> Node:
    match op:
        case Add():
            return signed_sum(zip(op.signs, args, strict=True))
        case Mul():
            return _product(list(zip(op.powers, args, strict=True)), number)
        case Compare():
            made = compare(op.relation, *args)
            holds = number(made)
            return made if holds is None else constant(bool(holds))
        case Logic():
            return logic(op.kind, *args)
        case Select():
            taken = number(args[0])
            return select(*args) if taken is None else args[1 if taken else 2]
        case Pow() | Apply():
            numbers = [a.args[0] if a.op.repeats and not a.args[0].shape else a for a in args]
            made = Node.of(op, tuple(numbers))
            return constant(0) if number(made) == 0 else made
    return _of_zeros(op, args, number) or Node.of(op, args)


def _product(factors: list[tuple[int, Node]], number: NumbersBelow) -> Node:
    over_zero = any(sign == -1 and number(arg) == 0 for sign, arg in factors)
    return constant(nan) if over_zero else signed_product(factors)


def _of_zeros(op: Op, args: Nodes, number: NumbersBelow) -> Node | None:
    """0 for a contraction with an argument that is 0, and for a linear op of zeros."""
    zeros = [number(arg) == 0 for arg in args] if isinstance(op, Einsum) or op.linear else [False]
    return constant(0) if all(zeros) or (isinstance(op, Einsum) and any(zeros)) else None


def has_values(node: Node) -> bool:
    """False if a node uses a scalar function of numbers that has no finite value, such as x/0.

    What stands in a branch of an open condition is not looked at: limits of earlier derivatives are such
    branches, and the other one holds the product F'(r) · slope that they replace.
    """
    number, waiting, seen = NumbersBelow(), [node], set[Node]()
    while waiting:
        part = waiting.pop()
        if part in seen:
            continue
        seen.add(part)
        value = number(part)
        if value is not None and not isfinite(value):
            return False
        waiting += part.args[:1] if isinstance(part.op, Select) else part.args
    return True


class NumbersBelow(dict[Node, "float | None"]):
    """The values of nodes made of numbers; None for others."""

    def __call__(self, node: Node) -> float | None:
        """The value of a node, and of all below it."""
        waiting = [node]
        while waiting:
            part = waiting[-1]
            unknown = [] if part in self else [arg for arg in part.args if arg not in self]
            waiting += unknown
            if not unknown:
                self[waiting.pop()] = self[part] if part in self else self._value(part)
        return self[node]

    def _value(self, node: Node) -> float | None:
        args = [a for a in map(self.get, node.args) if a is not None]
        if constant_value(node) is None and not (isinstance(node.op, SCALAR) and len(args) == len(node.args)):
            return None
        if isinstance(node.op, Broadcast):
            return args[0]
        try:
            with np.errstate(all="ignore"):
                return float(evaluate(node.op, tuple(args)))
        except ArithmeticError:
            return nan

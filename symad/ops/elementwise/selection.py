"""Conditions and selection: comparisons, logic, and `Select`, the graph's Piecewise."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from fractions import Fraction

import sympy

from symad.core.dims import Shape, size
from symad.core.graph import ZERO, Node, shape
from symad.core.questions import (
    Array,
    Count,
    Nodes,
    Tangent,
    Tangents,
    Values,
    chosen,
    evaluate,
    flops,
    jvp,
)
from symad.numbers.number_domains import FLOATS, domain_of
from symad.numbers.number_domains import compare as compare_values
from symad.numbers.number_domains import logic as combined
from symad.numbers.number_domains import select as select_values
from symad.ops.basic.arithmetic import ElementwiseOp, common_shape
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import constant, constant_value

RELATIONS = {"<": sympy.Lt, "<=": sympy.Le, "==": sympy.Eq, "!=": sympy.Ne}
LOGIC = {"and": sympy.And, "or": sympy.Or, "xor": sympy.Xor, "not": sympy.Not}


@dataclass(frozen=True, eq=False)
class Condition(ElementwiseOp):
    """An op whose value is true or false: it has no derivative."""

    finite_slopes = kinked = True

    branches = True


@dataclass(frozen=True, eq=False)
class Compare(Condition):
    """``a relation b`` with the relation one of < <= == !=."""

    relation: str


@dataclass(frozen=True, eq=False)
class Logic(Condition):
    """and, or, xor, not of conditions."""

    kind: str


@dataclass(frozen=True, eq=False)
class Select(ElementwiseOp):
    """The value a where the condition holds, else b: select(c, a, b). Linear in (a, b)."""

    finite_slopes = kinked = True

    branches = True


HOLDS = {"<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne}


def compare(relation: str, a: Node, b: Node) -> Node:
    """``a relation b``; > and >= are reversed, and numbers are compared immediately."""
    if relation in (">", ">="):
        return compare("<" + relation[1:], b, a)
    numbers = constant_value(a), constant_value(b)
    if not a.shape and not b.shape and all(isinstance(n, (int, float, Fraction)) for n in numbers):
        return constant(bool(HOLDS[relation](*numbers)))
    return Node.of(Compare(relation), (a, b))


def equal(a: Node, b: Node) -> Node:
    """The condition a == b."""
    return compare("==", a, b)


def logic(kind: str, *conditions: Node) -> Node:
    """And, or, xor, not; known truth values are folded."""
    if kind in ("and", "or"):
        absorbing = kind == "or"
        kept: list[Node] = []
        for condition in conditions:
            value = constant_value(condition)
            if value is absorbing or any(_opposite(condition, other) for other in kept):
                return constant(absorbing)
            if value is None and condition not in kept:
                kept.append(condition)
        if not kept:
            return constant(not absorbing)
        return kept[0] if len(kept) == 1 else Node.of(Logic(kind), tuple(kept))
    if kind == "not":
        value = constant_value(conditions[0])
        if value is not None:
            return constant(not value)
        if isinstance(conditions[0].op, Logic) and conditions[0].op.kind == "not":
            return conditions[0].args[0]
    return Node.of(Logic(kind), conditions)


def _opposite(a: Node, b: Node) -> bool:
    """Whether one condition is the negation of the other."""
    return any(isinstance(c.op, Logic) and c.op.kind == "not" and c.args[0] is d for c, d in ((a, b), (b, a)))


def select(condition: Node, a: Node, b: Node) -> Node:
    """The value a where the condition holds, else b."""
    value = constant_value(condition)
    if value is not None:
        return broadcast_to(a if value else b, common_shape("a selection", (a, b)))
    if isinstance(a.op, Select) and a.args[0] is condition and a.args[1].shape == a.shape:
        a = a.args[1]
    if isinstance(b.op, Select) and b.args[0] is condition and b.args[2].shape == b.shape:
        b = b.args[2]
    if a is b:
        return broadcast_to(a, common_shape("a selection", (condition, a, b)))
    return Node.of(Select(), (condition, a, b))


def indicator(condition: Node) -> Node:
    """1 where the condition holds, else 0."""
    return select(condition, constant(1), constant(0))


@shape(Compare)
def compare_shape(op: Compare, args: Nodes) -> Shape:
    return common_shape(f"a comparison with {op.relation}", args)


@shape(Logic)
def logic_shape(op: Logic, args: Nodes) -> Shape:
    return common_shape(f"the condition '{op.kind}'", args)


@shape(Select)
def select_shape(op: Select, args: Nodes) -> Shape:
    return common_shape("a selection", args)


@jvp.dispatch
def condition_jvp(op: Condition, y: Node, tangents: Tangents) -> Tangent:
    return ZERO


@jvp.dispatch
def select_jvp(op: Select, y: Node, tangents: Tangents) -> Tangent:
    """y_dot = select(c, a_dot, b_dot)."""
    if all(t is ZERO for t in tangents[1:]):
        return ZERO
    a_dot, b_dot = (t if isinstance(t, Node) else constant(0) for t in tangents[1:])
    return broadcast_to(select(y.args[0], a_dot, b_dot), y.shape)


@chosen.dispatch
def condition_chosen(op: Condition, y: Node, k: int) -> Node | None:
    """Never: a truth value has no derivative."""
    return constant(False)


@chosen.dispatch
def select_chosen(op: Select, y: Node, k: int) -> Node | None:
    """c for a, not c for b; never for the condition itself."""
    return constant(False) if k == 0 else y.args[0] if k == 1 else logic("not", y.args[0])


@flops.dispatch
def condition_flops(op: Condition, y: Node) -> Count:
    return size(y.shape) * max(len(y.args) - 1, 1)


@flops.dispatch
def select_flops(op: Select, y: Node) -> Count:
    return size(y.shape)


@evaluate.dispatch
def compare_evaluate(op: Compare, values: Values) -> Array:
    return compare_values(op.relation, *values)


@evaluate.dispatch
def logic_evaluate(op: Logic, values: Values) -> Array:
    import numpy as np

    if any(isinstance(v, sympy.Basic) for v in values):
        return LOGIC[op.kind](*values)
    if domain_of(values) is not FLOATS:
        return combined(op.kind, values)
    if op.kind == "not":
        return np.logical_not(values[0])
    # np.logical_xor calls a method of that name on objects; ^ is the same on truth values
    combine = {"and": np.logical_and, "or": np.logical_or, "xor": np.bitwise_xor}[op.kind]
    result = values[0]
    for value in values[1:]:
        result = combine(result, value)
    return result


@evaluate.dispatch
def select_evaluate(op: Select, values: Values) -> Array:
    return select_values(*values)

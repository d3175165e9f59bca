"""Scalar nodes as numbers: evaluation on them builds graphs.

A graph of arrays evaluated on arrays of nodes is expanded element by element. Evaluated on
Dual(node, node) it applies the rules of Dual numbers, which are independent of the graph's own forward and
reverse mode, and the result is a graph again: a reference that every method of comparison can use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import sympy

from symad.core.arrays import Number
from symad.core.graph import Node
from symad.errors import EvaluationError
from symad.numbers.number_domains import DOMAINS, Domain, Truth, UndefinedValue
from symad.ops.basic.arithmetic import add, div, mul, neg, sub
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.ops.elementwise.selection import Select, compare, logic, select


@dataclass(frozen=True, eq=False)
class NodeNumber:
    """A node without axes, with the operators of a number."""

    node: Node

    def __add__(self, other: Number) -> NodeNumber:
        b = _node(other)
        return NotImplemented if b is None else NodeNumber(add(self.node, b))

    def __radd__(self, other: int) -> Number:
        b = _node(other)
        return NotImplemented if b is None else NodeNumber(add(b, self.node))

    def __sub__(self, other: Number) -> NodeNumber:
        b = _node(other)
        return NotImplemented if b is None else NodeNumber(sub(self.node, b))

    def __rsub__(self, other: NodeNumber | Fraction | int) -> NodeNumber:
        b = _node(other)
        return NotImplemented if b is None else NodeNumber(sub(b, self.node))

    def __mul__(self, other: Number) -> NodeNumber:
        b = _node(other)
        return NotImplemented if b is None else NodeNumber(mul(self.node, b))

    __rmul__ = __mul__

    def masked_product(self, slope: Number, product: Callable[[Number, Number], Number]) -> Number:
        """slope · tangent for the tangent ``self``: where a branch of one of them is 0, so is the product."""
        b = _node(slope)
        return product(slope, self) if b is None else NodeNumber(_masked_product(b, self.node))

    def __truediv__(self, other: NodeNumber | Fraction | int) -> NodeNumber:
        b = _node(other)
        return NotImplemented if b is None else NodeNumber(div(self.node, b))

    def __rtruediv__(self, other: NodeNumber | Fraction | int) -> NodeNumber:
        b = _node(other)
        return NotImplemented if b is None else NodeNumber(div(b, self.node))

    def __pow__(self, other: NodeNumber | Fraction | int) -> NodeNumber:
        b = _node(other)
        return NotImplemented if b is None else NodeNumber(power(self.node, b))

    def __neg__(self) -> NodeNumber:
        return NodeNumber(neg(self.node))

    def __eq__(self, other: object) -> bool:
        """True if both are the same node: pivots are chosen by this, it is not a condition of the graph."""
        return _node(other) is self.node

    def __int__(self) -> int:
        """The value of a constant, such as an index; an error for any other node."""
        value = constant_value(self.node)
        if value is None or value != int(value):
            raise EvaluationError("a number that is a node is not an index, unless it is a constant integer")
        return int(value)

    def __bool__(self) -> bool:
        value = constant_value(self.node)
        if value is None:
            raise EvaluationError("a number that is a node has no truth value")
        return bool(value)


def _node(value: Number) -> Node | None:
    """A number as a node; None if it cannot be one."""
    if isinstance(value, NodeNumber):
        return value.node
    if isinstance(value, (bool, int, float, Fraction, np.integer, np.floating)):
        return constant(value)
    return None


class NodeNumbers(Domain["NodeNumber | Fraction | int"]):
    """Numbers that are nodes."""

    rank = 5

    def number(self, value: Number) -> NodeNumber | Fraction | int:
        """A constant node."""
        return NodeNumber(constant(value))

    def apply(self, head: sympy.FunctionClass, *values: Any) -> Any:
        """A function node."""
        if any(isinstance(v, UndefinedValue) for v in values):
            return next(v for v in values if isinstance(v, UndefinedValue))
        return NodeNumber(apply(head, *[_as_node(v) for v in values]))

    def power(self, base: Number, exponent: Number) -> NodeNumber:
        """A power node."""
        return NodeNumber(power(_as_node(base), _as_node(exponent)))

    def divide(self, a: Number, b: Number) -> NodeNumber | Fraction | int:
        """A quotient node."""
        return NodeNumber(div(_as_node(a), _as_node(b)))

    def compare(self, relation: str, a: NodeNumber | Fraction | int, b: NodeNumber | Fraction | int) -> Truth:
        """A condition node."""
        return NodeNumber(compare(relation, _as_node(a), _as_node(b)))

    def logic(self, kind: str, *conditions: Truth) -> Truth:
        """A condition node."""
        return NodeNumber(logic(kind, *map(_as_node, conditions)))

    def select(
        self, condition: Truth, a: NodeNumber | Fraction | int, b: NodeNumber | Fraction | int
    ) -> NodeNumber | Fraction | int:
        """A selection node."""
        if isinstance(condition, (bool, np.bool_)):
            return a if condition else b
        return NodeNumber(select(_as_node(condition), _as_node(a), _as_node(b)))


def _masked_product(a: Node, b: Node) -> Node:
    """a · b, with the selections of zeros outside."""
    for x, y in ((b, a), (a, b)):
        if isinstance(x.op, Select):
            condition, *branches = x.args
            if any(constant_value(branch) == 0 for branch in branches):
                zeros = [constant_value(branch) == 0 for branch in branches]
                products = [b if z else _masked_product(b, y) for b, z in zip(branches, zeros, strict=True)]
                return select(condition, *products)
    return mul(a, b)


def _as_node(value: Number) -> Node:
    node = _node(value)
    if node is None:
        raise EvaluationError(f"{value!r} is not a number that can become a node")
    return node


def as_numbers(value: Number) -> Any:
    """A value whose numbers are all nodes: one of them, or an array.

    Raises:
        TraceError: a value is not a real number.
    """
    if not isinstance(value, np.ndarray):
        return value if isinstance(value, NodeNumber) else NodeNumber(constant(value))
    made = np.empty(value.size, dtype=object)
    made[:] = [v if isinstance(v, NodeNumber) else NodeNumber(constant(v)) for v in value.ravel().tolist()]
    return made.reshape(value.shape)


def as_nodes(value: Number) -> list[Node]:
    """The nodes of a value that `as_numbers` made, row by row."""
    return [number.node for number in np.asarray(value, dtype=object).ravel().tolist()]


DOMAINS.append(((NodeNumber,), NodeNumbers()))

"""Formulas of nodes in Python's notation: the rows of the tables are written in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import sympy

from symad.core.graph import Node
from symad.ops.basic.arithmetic import add, div, mul, neg, sub
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.ops.elementwise.selection import compare, logic, select
from symad.stable.normal_forms import rational

Head: TypeAlias = type[sympy.Basic]


@dataclass(frozen=True, eq=False)
class Formula:
    """A node with the operators of Python; numbers beside it are exact constants."""

    node: Node

    def __add__(self, other: Any) -> Formula:
        return Formula(add(self.node, node_of(other)))

    def __radd__(self, other: Any) -> Formula:
        return Formula(add(node_of(other), self.node))

    def __sub__(self, other: Any) -> Formula:
        return Formula(sub(self.node, node_of(other)))

    def __rsub__(self, other: Any) -> Formula:
        return Formula(sub(node_of(other), self.node))

    def __mul__(self, other: Any) -> Formula:
        return Formula(mul(self.node, node_of(other)))

    def __rmul__(self, other: Any) -> Formula:
        return Formula(mul(node_of(other), self.node))

    def __truediv__(self, other: Any) -> Formula:
        return Formula(div(self.node, node_of(other)))

    def __rtruediv__(self, other: Any) -> Formula:
        return Formula(div(node_of(other), self.node))

    def __pow__(self, other: Any) -> Formula:
        made, exponent = self.node, node_of(other)
        return Formula(made if rational(made) == 1 else power(made, exponent))

    def __neg__(self) -> Formula:
        return Formula(neg(self.node))

    def __abs__(self) -> Formula:
        value = rational(self.node)
        return Formula(apply(sympy.Abs, self.node) if value is None else constant(abs(value)))

    def __lt__(self, other: Any) -> Formula:
        return Formula(compare("<", self.node, node_of(other)))

    def __gt__(self, other: Any) -> Formula:
        return Formula(compare("<", node_of(other), self.node))

    def __ge__(self, other: Any) -> Formula:
        return Formula(compare("<=", node_of(other), self.node))

    def __and__(self, other: Formula) -> Formula:
        return Formula(logic("and", self.node, other.node))

    def __or__(self, other: Formula) -> Formula:
        return Formula(logic("or", self.node, other.node))


def node_of(value: Any) -> Node:
    """The node of a formula, of a node, or of an exact number."""
    if isinstance(value, Formula):
        return value.node
    return value if isinstance(value, Node) else constant(value)


def function(head: Head) -> Callable[..., Formula]:
    """A function of formulas."""
    return lambda *args: Formula(apply(head, *map(node_of, args)))


def where(condition: Formula, a: Any, b: Any) -> Formula:
    """The value a where the condition holds, else b."""
    return Formula(select(condition.node, node_of(a), node_of(b)))


def formulas(*nodes: Node) -> list[Formula]:
    """The nodes as formulas."""
    return list(map(Formula, nodes))

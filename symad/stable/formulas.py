"""Formulas of nodes in Python's notation: the rows of the tables are written in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import sympy

from symad.core.graph import Node
from symad.ops.basic.arithmetic import add, div, mul, neg, sub
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.powers import power
from symad.ops.elementwise.selection import compare, logic, select
from symad.stable.normal_forms import rational


def node_of(value: Any) -> Node:
    """The node of a formula, of a node, or of an exact number."""
    if isinstance(value, FormulaNode):
        return value.node
    return value if isinstance(value, Node) else constant(value)


def _of_two(make: Callable[[Node, Node], Node]) -> Callable[[Any, Any], FormulaNode]:
    return lambda a, b: FormulaNode(make(node_of(a), node_of(b)))


def _of_two_reversed(make: Callable[[Node, Node], Node]) -> Callable[[Any, Any], FormulaNode]:
    return lambda a, b: FormulaNode(make(node_of(b), node_of(a)))


@dataclass(frozen=True, eq=False)
class FormulaNode:
    """A node with the operators of Python; numbers beside it are exact constants."""

    node: Node

    __add__, __radd__ = _of_two(add), _of_two_reversed(add)
    __sub__, __rsub__ = _of_two(sub), _of_two_reversed(sub)
    __mul__, __rmul__ = _of_two(mul), _of_two_reversed(mul)
    __truediv__, __rtruediv__ = _of_two(div), _of_two_reversed(div)
    __pow__ = _of_two(lambda a, b: a if rational(a) == 1 else power(a, b))
    __lt__ = _of_two(partial(compare, "<"))
    __gt__ = _of_two_reversed(partial(compare, "<"))
    __le__ = _of_two(partial(compare, "<="))
    __ge__ = _of_two_reversed(partial(compare, "<="))
    __and__ = _of_two(partial(logic, "and"))

    def __neg__(self) -> FormulaNode:
        return FormulaNode(neg(self.node))

    def __abs__(self) -> FormulaNode:
        value = rational(self.node)
        return FormulaNode(apply(sympy.Abs, self.node) if value is None else constant(abs(value)))


def function(head: Any) -> Callable[..., FormulaNode]:
    """A function of formulas."""
    return lambda *args: FormulaNode(apply(head, *map(node_of, args)))


def where(condition: FormulaNode, a: Any, b: Any) -> FormulaNode:
    """The value a where the condition holds, else b."""
    return FormulaNode(select(condition.node, node_of(a), node_of(b)))


def formulas(*nodes: Node) -> list[FormulaNode]:
    """The nodes as formulas."""
    return list(map(FormulaNode, nodes))

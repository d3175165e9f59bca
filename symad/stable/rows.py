"""The rows of all tables on one node: what is asked before differentiation, and again of the result."""

from __future__ import annotations

import sympy

from symad.core.graph import Node
from symad.ops.basic.arithmetic import Add, Mul, signed_sum
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.stable.differences import Differences, difference_of_squares
from symad.stable.normal_forms import head_of
from symad.stable.products import PRODUCTS, better_product


class Rows:
    """The rows for the nodes of one graph; ``last``: whether it is not differentiated afterwards."""

    def __init__(self, last: bool) -> None:
        """Nothing is known."""
        self.last, self.differences = last, Differences(last)
        self.held: dict[Node, bool] = {}

    def better(self, node: Node) -> Node:
        """The sum, product or logarithm in its stable form; other nodes unchanged."""
        made: Node | None = None
        if type(node.op) is Add and len(node.args) == 1:
            inside = self.better(node.args[0])
            made = None if inside is node.args[0] else signed_sum([(node.op.signs[0], inside)])
        elif type(node.op) is Add:
            made = self.differences.better_sum(node.op, node.args)
            if made is None and self.last:
                made = difference_of_squares(node.op, node.args)
        elif self.last and head_of(node) is sympy.log:
            made = self.differences.logarithm(node.args[0])
        elif type(node.op) is Mul and self._holds(node):
            made = better_product(node, self.differences.forms, self.last)
        return node if made is None else made

    def _holds(self, node: Node) -> bool:
        """Whether a function that has rows is a factor; listing the factors costs more."""
        found = self.held.get(node)
        if found is None:
            op = node.op
            if type(op) is Apply:
                found = op.head in PRODUCTS
            else:
                inside = type(op) in (Mul, Pow) or (type(op) is Add and len(node.args) == 1)
                found = inside and any([self._holds(a) for a in node.args])
            self.held[node] = found
        return found


def complement(node: Node) -> Node | None:
    """A sum as a function by a row, such as 1 − σ(u) = σ(−u), also in layers of networks; else None."""
    if type(node.op) is not Add or len(node.args) < 2:
        return None
    made = Differences(last=False, in_layers=True).better_sum(node.op, node.args)
    return None if made is None or type(made.op) is Add else made

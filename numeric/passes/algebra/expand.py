"""Functions written out where a derivative computes their parts: x σ(x), x Φ(x); functions of constants."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

import sympy

from symad.core.graph import Graph, Node, op_of, rebuild, topological
from symad.core.questions import Nodes, evaluate
from symad.higher_order.scan import Scan
from symad.ops.basic.arithmetic import Add, Mul, div, mul, neg
from symad.ops.basic.sources import Constant, constant
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow, power
from symad.sympy_functions.scalar_functions import gelu, sigmoid, silu

if TYPE_CHECKING:
    from symad.core.graph import Op

ROOT = power(constant(2), constant(Fraction(1, 2)))
"""The square root of 2."""


def expand(graph: Graph) -> Graph:
    """The graph with every rule applied, also in the bodies of scans; the graph itself if no rule applies."""
    if not any(map(_may_change, graph.nodes)):
        return graph
    made = _expanded(graph.output_nodes)
    return Graph(graph.input_nodes, made, graph.structure, graph.name, graph.report)


def _expanded(outputs: Nodes) -> Nodes:
    known = cache(lambda: set(topological(outputs)))  # computed on use: few graphs need it
    bodies: dict[Graph, Graph] = {}

    def better(node: Node, args: Nodes) -> Node:
        op = node.op
        if isinstance(op, Scan):
            if op.body not in bodies:
                bodies[op.body] = Graph(op.body.input_nodes, _expanded(op.body.output_nodes))
            return Node.of(Scan(bodies[op.body], op.slices), args)
        head = op.head if isinstance(op, Apply) and node.shape else None
        if head is silu and apply(sigmoid, node.args[0]) in known():
            return mul(args[0], apply(sigmoid, args[0]))
        if head is gelu and _tail(node.args[0], ROOT) in known():
            return mul(constant(Fraction(1, 2)), args[0], _tail(args[0], constant(math.sqrt(2))))
        if isinstance(op, (Add, Mul, Pow, Apply)) and not node.shape:
            number = _number(op, args)
            if number is not None:
                return constant(number)
        return node if args == node.args else Node.of(op, args)

    return tuple(rebuild(outputs, {}, better))


def _may_change(node: Node) -> bool:
    """Whether a rule may replace the node, or the node that it becomes when its arguments are replaced."""
    op = node.op
    if isinstance(op, (Add, Mul, Pow, Apply)):
        if node.shape:
            return isinstance(op, Apply) and op.head in (silu, gelu)
        return all([type(a.op) is Constant for a in node.args])
    return isinstance(op, Scan)


def _tail(x: Node, root: Node) -> Node:
    """erfc(−x/√2), in the form in which the derivative of gelu contains it."""
    return apply(sympy.erfc, neg(div(x, root)))


def _number(op: Op, args: Nodes) -> float | None:
    """The value of a function of constants."""
    if not args or not all(isinstance(a.op, Constant) for a in args):
        return None
    values = tuple(op_of(a, Constant).value for a in args)
    if any(isinstance(v, bool) for v in values):
        return None
    try:
        value = float(evaluate(op, tuple(float(v) for v in values)))
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        return None
    return value if math.isfinite(value) else None

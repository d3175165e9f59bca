"""One function on several slices of an array becomes slices of the function on the array.

The gates of a recurrent cell are columns of one matrix: one pass over the matrix in memory order is
faster than one over each group of columns. Only functions that are defined everywhere, and only where
the slices are most of the array.
"""

from __future__ import annotations

from math import prod
from typing import Any

import sympy

from symad.core.graph import Graph, Node, rebuild, topological
from symad.core.questions import Nodes
from symad.library.scalar_functions import relu, sigmoid, silu, softplus
from symad.ops.arrays.shaping import Slice
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.loops.scan import Scan

TOTAL = (sympy.tanh, sympy.erf, sympy.sin, sympy.cos, sigmoid, relu, silu, softplus)
"""Functions that have a value everywhere."""

MOST = 0.7
"""The part of an array that its slices must be."""


def apply_before_slicing(graph: Graph) -> Graph:
    """The graph with functions of slices joined, in the bodies of scans too."""
    made = _joined(graph.output_nodes)
    return Graph(graph.input_nodes, made, graph.structure, graph.name, graph.report)


def _joined(outputs: Nodes) -> Nodes:
    order = topological(outputs)
    groups: dict[tuple[Any, Node], set[Node]] = {}
    for node in order:
        op = node.op
        if isinstance(op, Apply) and op.head in TOTAL and isinstance(node.args[0].op, Slice):
            groups.setdefault((op.head, node.args[0].args[0]), set()).add(node.args[0])
    chosen = {key for key, slices in groups.items() if len(slices) > 1 and _most(key[1], slices)}
    bodies: dict[Graph, Graph] = {}

    def better(node: Node, args: Nodes) -> Node:
        op = node.op
        if isinstance(op, Scan):
            if op.body not in bodies:
                bodies[op.body] = Graph(op.body.input_nodes, _joined(op.body.output_nodes))
            return Node.of(Scan(bodies[op.body], op.slices), args)
        if isinstance(op, Apply) and len(node.args) == 1 and (op.head, *node.args[0].args[:1]) in chosen:
            piece = args[0]
            if isinstance(piece.op, Slice):
                return Node.of(piece.op, (apply(op.head, piece.args[0]),))
        return node if args == node.args else Node.of(op, args)

    return tuple(rebuild(outputs, {}, better))


def _most(whole: Node, slices: set[Node]) -> bool:
    """Whether the slices, of known sizes, are most of the array."""
    shapes = [whole.shape, *(s.shape for s in slices)]
    if not all(isinstance(d, int) for shape in shapes for d in shape):
        return False
    return sum(prod(s) for s in shapes[1:]) >= MOST * prod(shapes[0])

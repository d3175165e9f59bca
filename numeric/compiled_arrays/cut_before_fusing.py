"""Elementwise work on an array of which only pieces are read is done on the pieces.

The gates of a recurrent cell are columns of one sum of products. If the operands are cut into pieces first,
the sum joins the chain of functions that reads them, and is never written to memory. The same is done for
arrays that are read without their axes of length one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from symad.core.graph import Node, Op, rebuild, topological
from symad.core.questions import Nodes
from symad.numeric.fusion.c_expressions import has_c_form
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.shaping import Reshape, Slice


def in_pieces(outputs: Sequence[Node]) -> Nodes:
    """The outputs, with pieces cut before elementwise functions wherever only pieces are read."""
    made = tuple(outputs)
    while parted := _parted(made):  # repeated, because a piece may itself be read in pieces
        made = _cut(made, parted)
    return made


def _cut(outputs: Nodes, parted: set[Node]) -> Nodes:
    """The outputs, with pieces of some nodes computed from pieces of their operands."""

    def better(node: Node, args: Nodes) -> Node:
        if _is_piece(node) and node.args[0] in parted:
            return cut(node.args[0], node.op)
        return node if args == node.args else Node.of(node.op, args)

    def cut(node: Node, piece: Op) -> Node:
        if node not in parted:
            return Node.of(piece, (node,)) if node.shape else node
        return Node.of(node.op, tuple(cut(a, piece) for a in node.args))

    return rebuild(outputs, {}, better)


def _parted(outputs: Sequence[Node]) -> set[Node]:
    """Elementwise nodes read only in pieces that are together no larger, or read only by such nodes."""
    order = topological(outputs)
    users: dict[Node, set[Node]] = {}
    for node in order:
        for arg in node.args:
            users.setdefault(arg, set()).add(node)
    found: set[Node] = set()
    for node in reversed(order):
        if not isinstance(node.op, ElementwiseOp) or not has_c_form(node) or node in outputs:
            continue
        pieces = [u for u in users[node] if _is_piece(u)]
        alike = all(a.shape in ((), node.shape) for a in node.args)
        if alike and users[node] - set(pieces) <= found and _fit(pieces, node):
            found.add(node)
    return found


def _is_piece(node: Node) -> bool:
    """Whether a node is a slice, or drops axes of length one and does nothing else."""
    if isinstance(node.op, Reshape):
        longer = [[d for d in n.shape if d != 1] for n in (node, node.args[0])]
        return longer[0] == longer[1] and len(node.shape) < len(node.args[0].shape)
    return isinstance(node.op, Slice)


def _fit(pieces: Sequence[Node], whole: Node) -> bool:
    """Whether pieces of known sizes have together no more elements than the array."""
    if not all(isinstance(d, int) for node in (*pieces, whole) for d in node.shape):
        return False
    shapes = [node.shape for node in (*pieces, whole)]
    return sum(prod(shape) for shape in shapes[:-1]) <= prod(shapes[-1])

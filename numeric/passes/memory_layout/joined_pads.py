"""Sums of padded arrays that lie side by side are concatenations; the transposes of slices are such sums.

pad(a) + pad(b) + pad(c) = [a b c]   where the three fill one axis without gaps or overlap.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.contents import in_bodies
from symad.core.dims import plus, same_dim
from symad.core.graph import Graph, Node, op_of
from symad.core.questions import Nodes
from symad.numeric.passes.rewriting import over, rewritten, with_results
from symad.ops.arrays.stacking import concatenate, stack
from symad.ops.basic.arithmetic import Add
from symad.ops.basic.shaping import Pad, broadcast_to, reshape
from symad.ops.basic.sources import constant


def join_pads(graph: Graph) -> Graph:
    """The graph with such sums as concatenations and without pads that add nothing, also in loops."""
    return with_results(graph, _joined(graph.output_nodes))


def _joined(outputs: Nodes) -> Nodes:
    return rewritten(rewritten(outputs, _join), _row_among_zeros)


def _join(node: Node, args: Nodes) -> Node:
    op = in_bodies(node.op, _joined)
    made = over(node, args) if op is node.op else Node.of(op, args)
    if isinstance(op, Pad) and not _moved_axes(made):
        return args[0]
    padded = len(args) > 1 and all(isinstance(a.op, Pad) for a in args)
    return side_by_side(args, made) if padded and isinstance(op, Add) and set(op.signs) == {1} else made


MAX_ROWS_AMONG_ZEROS = 4
"""At most this many rows, all but one of them zero, are written as a stack, which is easier to read.

Origin: it bounds the length of a line.
"""


def _row_among_zeros(node: Node, args: Nodes) -> Node:
    """One row padded by a few rows of zeros as a stack of rows; other nodes as they are."""
    made = over(node, args)
    axes = _moved_axes(made) if isinstance(made.op, Pad) else set()
    if len(axes) != 1 or len(made.shape) < 2:
        return made
    (axis,) = axes
    length, start = made.shape[axis], op_of(made, Pad).start[axis]
    if args[0].shape[axis] != 1 or not isinstance(length, int) or length > MAX_ROWS_AMONG_ZEROS:
        return made
    rest = (*made.shape[:axis], *made.shape[axis + 1 :])
    zeros = broadcast_to(constant(0), rest)
    return stack([reshape(args[0], rest) if k == start else zeros for k in range(length)], axis)


def side_by_side(pads: Sequence[Node], otherwise: Node) -> Node:
    """The padded arrays as one array if they fill one axis, else ``otherwise``."""
    axes = {axis for p in pads for axis in _moved_axes(p)}
    if len(axes) != 1:
        return otherwise
    (axis,) = axes
    waiting, filled = list(pads), []
    place = plus(0, 0)
    while waiting:
        found = next((p for p in waiting if same_dim(op_of(p, Pad).start[axis], place)), None)
        if found is None:
            return otherwise
        waiting.remove(found)
        filled.append(found.args[0])
        place = plus(place, found.args[0].shape[axis])
    if not same_dim(place, otherwise.shape[axis]):
        return otherwise
    if all(part.shape[axis] == 1 for part in filled):
        rest = (*otherwise.shape[:axis], *otherwise.shape[axis + 1 :])
        return stack([reshape(part, rest) for part in filled], axis)
    return concatenate(filled, axis)


def _moved_axes(pad: Node) -> set[int]:
    """The axes along which a pad adds zeros; all axes if it inserts zeros between elements."""
    op, (arg,) = pad.op, pad.args
    assert isinstance(op, Pad)
    if any(step != 1 for step in op.step):
        return set(range(len(pad.shape))) | {-1}
    return {k for k, (a, b) in enumerate(zip(arg.shape, pad.shape, strict=True)) if not same_dim(a, b)}

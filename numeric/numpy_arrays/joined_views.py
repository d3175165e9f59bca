"""A view of a slice as one index: ``h[T - 1]`` instead of ``h[T - 1:][0]``."""

from __future__ import annotations

from symad.core.graph import Node
from symad.numeric.expressions.views import compose, unit_axes
from symad.numeric.program.expressions import Interval, NewAxis, Place
from symad.ops.basic.shaping import Reshape, Slice


def view_of_slice(node: Node) -> tuple[Node, tuple[Place, ...]] | None:
    """The array and the index of a slice that is reshaped to drop axes of length 1; None for other nodes."""
    if not isinstance(node.op, Reshape) or not isinstance(node.args[0].op, Slice):
        return None
    (piece,) = node.args
    kept = unit_axes(piece.shape, node.shape)
    if kept is None or any(isinstance(place, NewAxis) for place in kept):
        return None
    op = node.args[0].op
    places = compose([Interval(*axis) for axis in zip(op.start, op.count, op.step, strict=True)], kept)
    return None if places is None else (piece.args[0], places)

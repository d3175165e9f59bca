"""A view of a slice as one index: ``h[T - 1]`` instead of ``h[T - 1:][0]``."""

from __future__ import annotations

from symad.core.graph import Node
from symad.numeric.program.expressions import Compute, Index, NewAxis, Place, Read, Value
from symad.numeric.program_passes.expressions.views import joined
from symad.ops.basic.shaping import Reshape, Slice


def view_of_slice(node: Node) -> tuple[Node, tuple[Place, ...]] | None:
    """The array and the index of a slice that is reshaped to drop axes of length 1; None for other nodes."""
    if not isinstance(node.op, Reshape) or not isinstance(node.args[0].op, Slice):
        return None
    (piece,) = node.args
    whole = Read(Value("", piece.args[0].shape))
    view = joined(Compute(node.op, (joined(Compute(piece.op, (whole,), piece.shape)),), node.shape))
    if not isinstance(view, Index) or view.array is not whole or NewAxis() in view.places:
        return None
    return piece.args[0], view.places

"""Results of CuPy modules: arrays with memory of their own, in the requested type."""

from __future__ import annotations

from symad.core.graph import Node
from symad.gpu.cupy_library import HALVES
from symad.gpu.printers.printing import CuPyWriter, Piece
from symad.gpu.settings import current
from symad.numeric.program_passes.memory.allocation import is_view
from symad.ops.basic.shaping import Broadcast, Slice
from symad.ops.basic.sources import ArrayConstant, Input

INTEGERS = {True: ("int64",), False: ()}
"""Integer types that results keep, in half precisions and in others."""


def result_text(node: Node, printer: CuPyWriter) -> str:
    """An output as an array with memory of its own; in half precisions integers stay integers."""
    kind, kept = printer.kernels.type_of(node), [printer.dtype, "bool", *INTEGERS[printer.dtype in HALVES]]
    kept += [printer.accumulator] * current().wide
    if kind not in kept and node not in printer.host:  # for example log-sum-exps
        return f"{printer.texts[node]}.astype({printer.type_text})"
    made, piece = _memory(node), _piece(node)
    others = printer.pieces.setdefault(made, [])
    shared = isinstance(made.op, (Input, ArrayConstant)) or (
        node.shape and any(not _apart(piece, other) for other in others)
    )
    others.append(piece)
    if node not in printer.host and (shared or _repeats(node)):
        return f"{printer.texts[node]}.copy()"
    return printer.array_text(node)


def _memory(node: Node) -> Node:
    """The node whose memory an array shows."""
    while is_view(node):
        node = node.args[0]
    return node


def _repeats(node: Node) -> bool:
    """Whether a view repeats elements."""
    while is_view(node):
        if isinstance(node.op, Broadcast):
            return True
        node = node.args[0]
    return False


def _piece(node: Node) -> Piece:
    """The part of its memory that a view shows; see `Piece`."""
    found: Piece = None
    while is_view(node):
        if isinstance(node.op, Slice):
            single = tuple(k for k, count in enumerate(node.op.count) if count == 1)
            found = single, tuple(node.op.start[k] for k in single)
        (node,) = node.args
    return found


def _apart(first: Piece, second: Piece) -> bool:
    """Whether two parts of an array have no common element."""
    if first is None or second is None or first[0] != second[0]:
        return False
    numbers = all(isinstance(k, int) for k in (*first[1], *second[1]))
    return numbers and first[1] != second[1]

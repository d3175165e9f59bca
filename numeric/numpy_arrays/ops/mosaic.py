"""Blocks and diagonals in NumPy, written into views of their array."""

from __future__ import annotations

from symad.core.graph import Node
from symad.numeric.backends import ArrayLibrary
from symad.numeric.numpy_arrays.ops.all_ops import Printing, Text, Texts, emit
from symad.numeric.passes.algebra.add_diagonal import AddDiagonal
from symad.numeric.passes.algebra.block_matrices import Mosaic

FILLED = '''def _filled(shape, dtype, blocks):
    """An array of blocks: the first row and column, the rows and columns, and the elements of each."""
    result = np.empty(shape, dtype)
    for (i, j), (m, n), block in blocks:
        result[i:i + m, j:j + n].reshape(block.shape)[...] = block
    return result
'''

PLUS_DIAGONAL = '''def _plus_diagonal(x, spec, d):
    """x + d on the diagonal of x that the subscripts show; x itself is changed."""
    view = np.einsum(spec, x)
    view += d
    return x
'''


@emit.dispatch
def mosaic_emit(op: Mosaic, library: ArrayLibrary, node: Node, args: Texts, printer: Printing) -> Text:
    """One call. A block of another shape is copied once, into a reshaped view of its place."""
    helper = printer.helper("_filled", FILLED)
    blocks = ", ".join(f"({a}, {b}, {c})" for a, b, c in zip(op.starts, op.shapes, args, strict=True))
    return f"{helper}({printer.dims(op.shape)}, {printer.type_text}, [{blocks}])"


@emit.dispatch
def add_diagonal_emit(
    op: AddDiagonal, library: ArrayLibrary, node: Node, args: Texts, printer: Printing
) -> Text:
    """The array with the part added on its diagonal: in place if it is not read again, else in a copy."""
    whole, part = args
    helper = printer.helper("_plus_diagonal", PLUS_DIAGONAL)
    ends = getattr(printer, "ends", None)
    kept = whole if ends is not None and ends(node.args[0], node) else f"{whole}.copy()"
    return f'{helper}({kept}, "{op.spec}", {"" if op.sign == 1 else "-"}{part})'

"""Strided views of flat arrays."""

from __future__ import annotations

from symad.core.graph import Node
from symad.numeric.backends import NumPy
from symad.numeric.numpy_arrays.ops.all_ops import Printing, Text, Texts, emit
from symad.numeric.passes.memory_layout.memory_spans import Spread

SPREAD = '''def _spread(flat, shape, strides):
    """A view of a flat array; strides count elements."""
    size = flat.itemsize
    return np.ndarray(shape, flat.dtype, flat, 0, [s*size for s in strides])
'''


@emit.dispatch
def spread_emit(op: Spread, library: NumPy, node: Node, args: Texts, printer: Printing) -> Text:
    return f"{printer.helper('_spread', SPREAD)}({args[0]}, {printer.dims(op.shape)}, {op.strides})"

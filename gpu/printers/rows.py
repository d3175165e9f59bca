"""Softmax and related functions on the device: one warp per row, one kernel instead of seven.

A row is read several times and stays in the cache in between. Rows that are known to be long, and axes that
are not the last ones, use CuPy's reductions.
"""

from __future__ import annotations

from collections.abc import Callable

from symad.core.arrays import Array
from symad.core.graph import Node
from symad.gpu.printers.printing import CuPyWriter, Text, Texts, emit
from symad.gpu.printers.row_groups import rows_text
from symad.numeric.fusion.softmax_nests import softmax_nest
from symad.numeric.targets.arrays import ALONG_AXES
from symad.ops.arrays.softmax import ExponentialOp

MAX_ROW = 16384
"""Rows longer than this use CuPy's reductions, which assign many warps to one row.

Origin: not measured on a device.
"""


def by_library(
    function: Callable[..., Array], args: Texts, axes: tuple[int, ...], printer: CuPyWriter
) -> str:
    """The call of a helper that uses CuPy's reductions, in float32 for the half precisions."""
    half = printer.accumulator != printer.dtype
    wide = [f"{a}.astype(cp.float32)" for a in args] if half else args
    call = f"{printer.helper(function)}({', '.join(wide)}, {axes})"
    return f"{call}.astype({printer.type_text})" if half else call


@emit.dispatch
def exponential_cupy(op: ExponentialOp, node: Node, args: Texts, printer: CuPyWriter) -> Text:
    """The call of a row kernel where the axes are the last ones, else of the library's reductions."""
    full, axes = node.args[0].shape, op.axes
    last = axes == tuple(range(len(full) - len(axes), len(full)))
    if not last or any(isinstance(full[k], int) and (full[k] > MAX_ROW or not full[k]) for k in axes):
        return by_library(ALONG_AXES[type(op)], args, axes, printer)
    return f"{rows_text(softmax_nest(type(op), full, axes), node.args, args, printer)}[0]"

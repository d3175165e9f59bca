"""Sparse matrices of fixed pattern in CuPy code: the entries in one array, gathered into their places."""

from __future__ import annotations

import numpy as np

from symad.core.graph import Graph, Node
from symad.core.questions import definition
from symad.errors import LoweringError
from symad.gpu.cupy_library import HALVES
from symad.gpu.passes.fusion import fuse
from symad.gpu.printers.printing import CuPyWriter, Text, Texts, emit
from symad.numeric.passes import prepare
from symad.ops.sparse.csr import CompressedRows
from symad.ops.sparse.sparse_solve import SparseSolve


@emit.dispatch
def compressed_rows_cupy(
    op: CompressedRows, node: Node, args: Texts, printer: CuPyWriter
) -> Text:
    """A ``cupyx.scipy.sparse.csr_matrix``, which has 32-bit indices and float32 or float64 entries."""
    if printer.dtype in HALVES:
        raise LoweringError(f"sparse matrices on a GPU hold float32 or float64, not {printer.dtype}")
    pieces, source = _pieces(op, node, printer)
    values, entries = printer.value_name("values"), printer.value_name("entries")
    if pieces:
        printer.before.append(f"{values} = cp.concatenate([{', '.join(pieces)}])")
        printer.before.append(f"{entries} = {values}[{printer.constant(source)}]")
    else:
        printer.before.append(f"{entries} = cp.zeros(0, dtype={printer.type_text})")
    for (places, _, adds), arg in zip(op.writes, node.args, strict=True):
        if adds:
            text = printer.array_text(arg)
            value = f"cp.ravel({text})" if len(arg.shape) > 1 else text
            printer.before.append(f"{entries}[{printer.constant(places)}] += {value}")
    columns, rows = (printer.constant(index) for index in (op.columns, op.rows))
    printer.imports.add("import cupyx.scipy.sparse")
    shape = printer.dims(op.shape)
    return f"cupyx.scipy.sparse.csr_matrix(({entries}, {columns}, {rows}), shape={shape})"


def _pieces(op: CompressedRows, node: Node, printer: CuPyWriter) -> tuple[list[str], np.ndarray]:
    """Flat arrays, and for each entry the position of its first value in them."""
    source = np.zeros(len(op.columns), np.int64)
    pieces: list[str] = []
    total = 0
    zero = -1
    for (places, gaps, adds), arg in zip(op.writes, node.args, strict=True):
        if adds:
            if len(gaps) and zero < 0:
                pieces.append(f"cp.zeros(1, dtype={printer.type_text})")
                zero, total = total, total + 1
            source[gaps] = zero
            continue
        text, count = printer.array_text(arg), len(places) if arg.shape else 1
        pieces.append(text if len(arg.shape) == 1 else f"cp.reshape({text}, ({count},))")
        source[places] = total + (np.arange(count) if arg.shape else 0)
        total += count
    return pieces, source


@emit.dispatch
def sparse_solve_cupy(op: SparseSolve, node: Node, args: Texts, printer: CuPyWriter) -> Text:
    """The solution of the dense system that defines the op."""
    (dense,) = fuse(prepare(Graph(node.args, (definition(op, node),)))).output_nodes
    return printer.defined_by(dense, node)

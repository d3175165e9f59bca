"""How sparse matrices of fixed pattern are written: entries assigned in place, index arrays shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symad.graph import Node
from symad.numeric.backends import NumPy
from symad.numeric.printers.arrays import emit
from symad.ops.sparse import CompressedRows

if TYPE_CHECKING:
    Text = str
    Texts = tuple[str, ...]
else:
    Text = Texts = Any


@emit.dispatch
def compressed_rows_emit(op: CompressedRows, library: NumPy, node: Node, args: Texts, printer: Any) -> Text:
    """A scipy ``csr_array``; its index arrays are read-only, as all results share them."""
    entries = printer.value_name("entries")
    printer.before.append(
        f"{entries} = {printer.np}.empty({len(op.columns)}, dtype={printer.np}.{printer.dtype})"
    )
    for where, arg, text in zip(op.positions, node.args, args, strict=True):
        value = text if len(arg.shape) == 1 else f"{printer.np}.ravel({text})"
        printer.before.append(f"{entries}[{_index(where, printer)}] = {value}")
    columns, rows = (_fixed(index, printer) for index in (op.columns, op.rows))
    printer.imports.add("from scipy.sparse import csr_array")
    return f"csr_array(({entries}, {columns}, {rows}), shape={printer.dims(op.shape)})"


def _index(where: Any, printer: Any) -> str:
    if not isinstance(where, slice):
        return _fixed(where, printer)
    step = f":{where.step}" if where.step != 1 else ""
    return f"{where.start}:{where.stop}{step}"


def _fixed(index: Any, printer: Any) -> str:
    name: str = printer.constant_array(index)
    printer.constants.append(f"{name}.flags.writeable = False")
    return name

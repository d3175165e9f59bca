"""How sparse matrices of fixed pattern are written: entries assigned in place, index arrays shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symad.graph import Node
from symad.numeric.backends import NumPy
from symad.numeric.printers.arrays import emit
from symad.ops.sparse import CompressedRows, as_slice

if TYPE_CHECKING:
    Text = str
    Texts = tuple[str, ...]
else:
    Text = Texts = Any


@emit.dispatch
def compressed_rows_emit(op: CompressedRows, library: NumPy, node: Node, args: Texts, printer: Any) -> Text:
    """A scipy ``csr_array``; its index arrays are read-only, as all results share them."""
    np_ = printer.np
    entries = printer.value_name("entries")
    printer.before.append(f"{entries} = {np_}.empty({len(op.columns)}, dtype={np_}.{printer.dtype})")
    for (places, gaps, adds), arg, text in zip(op.writes, node.args, args, strict=True):
        if len(gaps):
            printer.before.append(f"{entries}[{_index(gaps, (), printer)}] = 0")
        index = _index(places, arg.shape, printer)
        flat = len(arg.shape) > 1 and isinstance(as_slice(places), slice)
        value = f"{np_}.ravel({text})" if flat else text
        printer.before.append(f"{entries}[{index}] {'+=' if adds else '='} {value}")
    columns, rows = (shared(index, printer) for index in (op.columns, op.rows))
    printer.imports.add("from scipy.sparse import csr_array")
    return f"csr_array(({entries}, {columns}, {rows}), shape={printer.dims(op.shape)})"


def _index(places: Any, shape: Any, printer: Any) -> str:
    """A slice, or an index array in the shape of the values, of the type that NumPy indexes with."""
    where = as_slice(places)
    if not isinstance(where, slice):
        whole = places.astype(np.int64)
        return str(printer.constant_array(whole.reshape(shape) if len(shape) > 1 else whole))
    if where.stop - where.start == 1 and not shape:
        return str(where.start)
    step = f":{where.step}" if where.step != 1 else ""
    return f"{where.start or ''}:{where.stop}{step}"


def shared(index: Any, printer: Any) -> str:
    """A constant that results share, and so must not change."""
    name: str = printer.constant_array(index)
    printer.constants.append(f"{name}.flags.writeable = False")
    return name

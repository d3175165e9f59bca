"""How sparse matrices of fixed pattern are written: entries assigned in place, index arrays shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from symad.graph import Node
from symad.numeric.backends import NumPy
from symad.numeric.printers.arrays import emit
from symad.ops.sparse import CompressedRows, as_slice

if TYPE_CHECKING:
    Text = str
    Texts = tuple[str, ...]
else:
    Text = Texts = Any


FILLED = '''def _filled(structure, entries):
    """The matrix of a fixed structure with these entries; the index arrays are shared."""
    matrix = copy.copy(structure)
    matrix.data = entries
    return matrix
'''


@emit.dispatch
def compressed_rows_emit(op: CompressedRows, library: NumPy, node: Node, args: Texts, printer: Any) -> Text:
    """A scipy ``csr_array``; its index arrays are read-only, as all results share them."""
    np_ = printer.np
    entries = printer.value_name("entries")
    printer.before.append(f"{entries} = {np_}.empty({len(op.columns)}, dtype={np_}.{printer.dtype})")
    flat: dict[Node, str] = {}
    for (places, gaps, adds), arg, text in zip(op.writes, node.args, args, strict=True):
        if len(gaps):
            printer.before.append(f"{entries}[{_index(gaps, False, printer)}] = 0")
        if len(arg.shape) > 1 and arg not in flat:
            flat[arg] = printer.value_name()
            printer.before.append(f"{flat[arg]} = {np_}.ravel({text})")
        index = _index(places, bool(arg.shape), printer)
        printer.before.append(f"{entries}[{index}] {'+=' if adds else '='} {flat.get(arg, text)}")
    structure = sparse_structure(op, printer)
    return f"{printer.helper('_filled', FILLED)}({structure}, {entries})"


def sparse_structure(op: CompressedRows, printer: Any) -> str:
    """A module-level matrix of zeros that has the structure of the results; its name."""
    printer.imports |= {"import copy", "from scipy.sparse import csr_array"}
    columns, rows = (shared(index, printer) for index in (op.columns, op.rows))
    name: str = printer.names.unique("structure")
    entries = f"{printer.np}.zeros({len(op.columns)}, dtype={printer.np}.{printer.dtype})"
    printer.constants.append(f"{name} = csr_array(({entries}, {columns}, {rows}), shape={tuple(op.shape)})")
    printer.constants.append(f"{name}.has_canonical_format = True")
    return name


def _index(places: Any, several: bool, printer: Any) -> str:
    """A slice or a position, or an index array of the type that NumPy indexes with."""
    where = as_slice(places)
    if not isinstance(where, slice):
        return str(printer.constant_array(places))
    if where.stop - where.start == 1 and not several:
        return str(where.start)
    step = f":{where.step}" if where.step != 1 else ""
    return f"{where.start or ''}:{where.stop}{step}"


def shared(index: Any, printer: Any) -> str:
    """A constant that results share, and so must not change."""
    name: str = printer.constant_array(index)
    printer.constants.append(f"{name}.flags.writeable = False")
    return name

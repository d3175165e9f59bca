"""How sparse matrices of fixed pattern are written: entries assigned in place, index arrays shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symad.graph import Node
from symad.numeric.backends import NumPy
from symad.numeric.printers.arrays import emit
from symad.ops.shaping import Gather
from symad.ops.sources import Constant
from symad.ops.sparse import CompressedRows, as_slice

if TYPE_CHECKING:
    Text = str
    Texts = tuple[str, ...]
else:
    Text = Texts = Any


MANY = 4
"""If one of so many entries is a number, all entries are copied before the others are computed."""

FILLED = '''def _filled(structure, entries):
    """The matrix of a fixed structure with these entries; the index arrays are shared."""
    matrix = copy.copy(structure)
    matrix.data = entries
    return matrix
'''


@emit.dispatch
def compressed_rows_emit(op: CompressedRows, library: NumPy, node: Node, args: Texts, printer: Any) -> Text:
    """A scipy ``csr_array``; its index arrays are read-only, as all results share them."""
    structure = sparse_structure(op, printer)
    if _is_ready(op, node):
        entries = args[0]
    elif _scattered(op, node):
        entries = _gathered(op, node, args, printer)
    else:
        entries = _assigned(op, node, args, structure, printer)
    return f"{printer.helper('_filled', FILLED)}({structure}, {entries})"


def _is_ready(op: CompressedRows, node: Node) -> bool:
    """Whether a gather has just put all entries in order, into an array of their own."""
    whole = len(node.args) == 1 and as_slice(op.places_of[0]) == slice(0, len(op.columns), 1)
    return whole and isinstance(node.args[0].op, Gather) and len(node.args[0].shape) == 1


def _scattered(op: CompressedRows, node: Node) -> bool:
    """Whether most entries stand at places that are not evenly spaced, and none is a sum or a number."""
    writes = zip(op.writes, node.args, strict=True)
    if any(adds or isinstance(arg.op, Constant) for (*_, adds), arg in writes):
        return False
    loose = sum(len(places) for places in op.places_of if not isinstance(as_slice(places), slice))
    return len(node.args) > 1 and 2 * loose > len(op.columns)


def _gathered(op: CompressedRows, node: Node, args: Texts, printer: Any) -> str:
    """All values side by side, and from there each entry: scattered reads are faster than writes."""
    np_ = printer.np
    first: dict[Node, int] = {}
    pieces = []
    source = np.zeros(len(op.columns), np.int64)
    total = 0
    for places, arg, text in zip(op.places_of, node.args, args, strict=True):
        if arg not in first:
            first[arg] = total
            total += len(places) if arg.shape else 1
            pieces.append(f"{np_}.ravel({text})" if len(arg.shape) != 1 else text)
        source[places] = first[arg] + (np.arange(len(places)) if arg.shape else 0)
    values, entries = printer.value_name("values"), printer.value_name("entries")
    printer.before.append(f"{values} = {np_}.concatenate([{', '.join(pieces)}])")
    printer.before.append(f"{entries} = {values}[{printer.constant_array(source)}]")
    return str(entries)


def _assigned(op: CompressedRows, node: Node, args: Texts, structure: str, printer: Any) -> str:
    """Part after part written to its places.

    Where many entries are numbers, they stand in the structure that results are copied from.
    """
    np_ = printer.np
    parts = list(zip(op.writes, node.args, args, strict=True))
    fixed = [part for part in parts if isinstance(part[1].op, Constant) and not part[0][2]]
    if sum(len(places) for (places, *_), *_ in fixed) * MANY < len(op.columns):
        fixed = []
    entries: str = printer.value_name("entries")
    if fixed:
        printer.before.append(f"{entries} = {structure}.data.copy()")
    else:
        printer.before.append(f"{entries} = {np_}.empty({len(op.columns)}, dtype={np_}.{printer.dtype})")
    flat: dict[Node, str] = {}
    for (places, gaps, adds), arg, text in parts:
        index = _index(places, bool(arg.shape), printer)
        if fixed and isinstance(arg.op, Constant) and not adds:
            printer.constants.append(f"{structure}.data[{index}] = {text}")
            continue
        if len(gaps):
            printer.before.append(f"{entries}[{_index(gaps, False, printer)}] = 0")
        if len(arg.shape) > 1 and arg not in flat:
            flat[arg] = printer.value_name()
            printer.before.append(f"{flat[arg]} = {np_}.ravel({text})")
        printer.before.append(f"{entries}[{index}] {'+=' if adds else '='} {flat.get(arg, text)}")
    return entries


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

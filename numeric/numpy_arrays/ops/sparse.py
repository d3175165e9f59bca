"""Sparse matrices of fixed pattern: entries are assigned in place, and results share index arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symad.core.graph import Node, op_of
from symad.numeric.backends import NumPy
from symad.numeric.numpy_arrays.memory_reuse import allocation
from symad.numeric.numpy_arrays.ops.all_ops import Printing, Text, Texts, emit
from symad.numeric.program.expressions import Compute, Read, Value
from symad.numeric.program.statements import Allocate, Assign, Scatter
from symad.numeric.program_passes.memory.recycling import is_large
from symad.ops.arrays.gathering import Gather
from symad.ops.basic.sources import ArrayConstant, Constant
from symad.ops.sparse.csr import CompressedRows, as_slice

if TYPE_CHECKING:
    from symad.numeric.numpy_arrays.printing import InPlacePrinting
else:  # plum dispatches on the op and the library
    InPlacePrinting = Any

MATRIX = '''def _matrix(structure, entries):
    """The matrix of a fixed structure with these entries; the index arrays are shared."""
    matrix = object.__new__(csr_array)
    vars(matrix).update(vars(structure), data=entries)
    return matrix
'''


@emit.dispatch
def compressed_rows_emit(
    op: CompressedRows, library: NumPy, node: Node, args: Texts, printer: InPlacePrinting
) -> Text:
    """A scipy ``csr_array``. Its index arrays are read-only, since all results share them."""
    structure = sparse_structure(op, printer)
    entries = args[0] if _is_ready(op, node, printer) else _assigned(op, node, args, printer)
    return _matrix_text(structure, entries, printer)


def _matrix_text(structure: str, entries: str, printer: InPlacePrinting) -> str:
    return f"{printer.helper('_matrix', MATRIX)}({structure}, {entries})"


def _is_ready(op: CompressedRows, node: Node, printer: InPlacePrinting) -> bool:
    """Whether the entries are a gathered array in order that no other node reads."""
    whole = len(node.args) == 1 and as_slice(op.places_of[0]) == slice(0, len(op.columns), 1)
    alone = whole and printer.users[node.args[0]] == [node]
    return alone and isinstance(node.args[0].op, Gather) and len(node.args[0].shape) == 1


def matrix_lines(node: Node, printer: InPlacePrinting) -> list[str] | None:
    """The statement of a matrix whose entries the program computed in one array; None for others."""
    (made,) = printer.placed.steps[node]
    assert isinstance(made.expression, Compute)
    entries = made.expression.args[0] if len(made.expression.args) == 1 else None
    if not isinstance(entries, Read) or entries.value in printer.placed.nodes:
        return None
    structure = sparse_structure(op_of(node, CompressedRows), printer)
    text = _matrix_text(structure, printer.text_of(entries), printer)
    printer.text[node] = printer.value_name()
    return [f"{printer.text[node]} = {text}"]


def gathered_lines(made: Assign, printer: InPlacePrinting) -> list[str]:
    """The statements that gather elements of an array; scattered reads are faster than scattered writes."""
    assert isinstance(made.expression, Compute)
    table, index = made.expression.args
    assert isinstance(index, Compute)
    assert isinstance(index.op, ArrayConstant)
    if isinstance(table, Compute):
        values = f"{printer.np}.ravel({printer.text_of(table.args[0])})"
    else:
        values = printer.text_of(table)
    name = printer.placed.texts[made.value] = printer.value_name(made.value.stem)
    opened = f"{name} = {allocation(Allocate(made.value, kept=made.kept), printer)}"
    return [opened, printer.taken_line(values, index.op.array, name)]


def scatter_line(statement: Scatter, printer: InPlacePrinting) -> str:
    """The statement that assigns to elements of an array, or adds to them."""
    made, places = statement.expression, statement.places.op
    assert isinstance(places, ArrayConstant)
    number = isinstance(made, Compute) and isinstance(made.op, Constant)
    text = str(printer.writer.text(made)) if number else printer.text_of(made)
    if len(made.shape) > 1:
        text = f"{printer.np}.ravel({text})"
    place = f"{printer.placed.texts[statement.array]}[{_index(places.array, bool(made.shape), printer)}]"
    return f"{place} {'+=' if statement.adds else '='} {text}"


def _new(size: int, printer: InPlacePrinting) -> str:
    """The call that allocates an array with one axis."""
    made = Allocate(Value("", (size,)), kept=is_large((size,), printer.itemsize, {}))
    return allocation(made, printer)


def _assigned(op: CompressedRows, node: Node, args: Texts, printer: InPlacePrinting) -> str:
    """The name of an array of entries, to which each part is assigned."""
    entries: str = printer.value_name("entries")
    printer.before.append(f"{entries} = {_new(len(op.columns), printer)}")
    flat: dict[Node, str] = {}
    for (places, gaps, adds), arg, text in zip(op.writes, node.args, args, strict=True):
        index = _index(places, bool(arg.shape), printer)
        if len(gaps):
            printer.before.append(f"{entries}[{_index(gaps, False, printer)}] = 0")
        if len(arg.shape) > 1 and arg not in flat:
            flat[arg] = printer.value_name()
            printer.before.append(f"{flat[arg]} = {printer.np}.ravel({text})")
        printer.before.append(f"{entries}[{index}] {'+=' if adds else '='} {flat.get(arg, text)}")
    return entries


def sparse_structure(op: CompressedRows, printer: Printing) -> str:
    """Add a matrix of zeros with the structure of the results to the module. Returns its name."""
    printer.imports.add("from scipy.sparse import csr_array")
    columns, rows = (shared(index, printer) for index in (op.columns, op.rows))
    name: str = printer.names.unique("structure")
    entries = f"{printer.np}.zeros({len(op.columns)}, dtype={printer.type_text})"
    printer.settings.append(f"{name} = csr_array(({entries}, {columns}, {rows}), shape={tuple(op.shape)})")
    printer.settings.append(f"{name}.has_canonical_format = True")
    return name


def _index(places: NDArray[np.int64], several: bool, printer: Printing) -> str:
    """The index of some places: a slice or a position if evenly spaced, else an index array."""
    where = as_slice(places)
    if not isinstance(where, slice):
        return str(printer.constant_array(places))
    if where.stop - where.start == 1 and not several:
        return str(where.start)
    step = f":{where.step}" if where.step != 1 else ""
    return f"{where.start or ''}:{where.stop}{step}"


def shared(index: np.ndarray, printer: Printing) -> str:
    """The name of a read-only constant that results share."""
    name: str = printer.constant_array(index)
    printer.settings.append(f"{name}.flags.writeable = False")
    return name

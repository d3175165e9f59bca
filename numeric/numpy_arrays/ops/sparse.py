"""How sparse matrices of fixed pattern are written: entries assigned in place, index arrays shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symad.core.graph import Node, op_of
from symad.numeric.backends import NumPy
from symad.numeric.numpy_arrays.memory_reuse import new_text
from symad.numeric.numpy_arrays.ops.all_ops import ArrayPrinter, Text, Texts, emit
from symad.numeric.numpy_arrays.sparse_gather_plan import MANY, SideBySide, Sum
from symad.numeric.numpy_arrays.texts import Name, assigned
from symad.numeric.program_passes.recycling import SMALLEST
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.sources import Constant
from symad.ops.sparse.csr import CompressedRows, as_slice

if TYPE_CHECKING:
    from symad.numeric.numpy_arrays.in_place_printer import InPlacePrinter
else:  # plum sees Any
    InPlacePrinter = Any

MATRIX = '''def _matrix(structure, entries):
    """The matrix of a fixed structure with these entries; the index arrays are shared."""
    matrix = object.__new__(csr_array)
    vars(matrix).update(vars(structure), data=entries)
    return matrix
'''


@emit.dispatch
def compressed_rows_emit(
    op: CompressedRows, library: NumPy, node: Node, args: Texts, printer: InPlacePrinter
) -> Text:
    """A scipy ``csr_array``; its index arrays are read-only, as all results share them."""
    structure = sparse_structure(op, printer)
    entries = args[0] if _is_ready(op, node) else _assigned(op, node, args, structure, printer)
    return _matrix_text(structure, entries, printer)


def _matrix_text(structure: str, entries: str, printer: InPlacePrinter) -> str:
    return f"{printer.helper('_matrix', MATRIX)}({structure}, {entries})"


def _is_ready(op: CompressedRows, node: Node) -> bool:
    """Whether a gather has just put all entries in order, into an array of their own."""
    whole = len(node.args) == 1 and as_slice(op.places_of[0]) == slice(0, len(op.columns), 1)
    return whole and isinstance(node.args[0].op, Gather) and len(node.args[0].shape) == 1


def values_array(found: SideBySide, values: str | None, printer: InPlacePrinter) -> tuple[str, list[str]]:
    """The name of the array of parts side by side, and the statement that makes it if there is none yet."""
    if values is not None or not found.total:
        return values or "", []
    values = printer.value_name("values")
    return values, [f"{values} = {_new(found.total, printer)}"]


def gathered_lines(node: Node, found: SideBySide, printer: InPlacePrinter) -> list[str]:
    """A matrix whose parts stand side by side: scattered reads are faster than scattered writes.

    Parts that could not be computed there are copied; parts that are added meet there, where arithmetic is
    on whole arrays.
    """
    op = op_of(node, CompressedRows)
    structure = sparse_structure(op, printer)
    alone = next(iter(found.starts)) if len(found.starts) == 1 and not found.sums else None
    if alone is not None and alone.shape and alone not in printer.parts.places:
        lines: list[str] = []
        values = f"{printer.np}.ravel({printer.text[alone]})"
    else:
        values, lines = _values_lines(node, found, printer)
    entries, made = _entries(node, printer)
    lines += made
    if found.index is not None:
        lines.append(printer.taken_line(values, found.index, entries))
    else:
        lines += _assignments(node, found, values, entries, printer)
    printer.text[node] = printer.value_name()
    return [*lines, f"{printer.text[node]} = {_matrix_text(structure, entries, printer)}"]


def _values_lines(node: Node, found: SideBySide, printer: InPlacePrinter) -> tuple[str, list[str]]:
    """The name of the array of parts side by side, and the statements that complete it."""
    values, lines = values_array(found, printer.buffers.pop(node, None), printer)
    for source in found.starts:
        if printer.parts.names.get(printer.text[source]) is not node:
            lines.append(assigned(found.place(source, values, printer), printer.text[source]))
    for each in found.sums:
        lines += _sum_lines(each, found, values, printer)
    return values, lines


def _entries(node: Node, printer: InPlacePrinter) -> tuple[Name, list[str]]:
    """The name of the entries of a matrix, and the statement that makes the array if there is none yet."""
    if node in printer.parts.places:
        return printer.parts.places[node], []
    op = op_of(node, CompressedRows)
    name: Name = printer.value_name("entries")
    printer.parts.places[node] = name
    return name, [f"{name} = {_new(len(op.columns), printer)}"]


def direct_place(
    part: Node, whole: Node, found: SideBySide, printer: InPlacePrinter
) -> tuple[list[str], Name]:
    """The name of the evenly spaced places of a part, and the statements that make it."""
    entries, lines = _entries(whole, printer)
    op = op_of(whole, CompressedRows)
    place = f"{entries}[{_index(op.places_of[found.direct[part]], True, printer)}]"
    shape = f".reshape({printer.dims(part.shape)})" if len(part.shape) > 1 else ""
    name: Name = printer.value_name()
    printer.parts.places[part] = name
    return [*lines, f"{name} = {place}{shape}"], name


def _assignments(
    node: Node, found: SideBySide, values: str, entries: str, printer: InPlacePrinter
) -> list[str]:
    """Sums and parts that are not there yet written to their places, which are evenly spaced."""
    op = op_of(node, CompressedRows)
    lines = []
    for each in found.sums:
        block = f"{values}[{each.start or ''}:{each.start + each.size}]"
        lines.append(f"{entries}[{_index(each.places, True, printer)}] = {block}")
    for k in found.single:
        arg, places = node.args[k], op.places_of[k]
        if found.direct.get(arg) != k or printer.parts.places.get(arg) != printer.text[arg]:
            lines.append(f"{entries}[{_index(places, bool(arg.shape), printer)}] = {_flat(arg, printer)}")
    return lines


def _sum_lines(each: Sum, found: SideBySide, values: str, printer: InPlacePrinter) -> list[str]:
    """The statements that add some parts up; the first may stand there already."""
    lines: list[str] = []
    filled = np.zeros(each.size, bool)
    for term, where in zip(each.terms, each.where, strict=True):
        place = f"{values}[{_index(each.start + where, bool(term.shape), printer)}]"
        if not filled.any():
            filled[where] = True
            gaps = each.start + np.flatnonzero(~filled)
            if term not in found.starts:
                lines.append(f"{place} = {_flat(term, printer)}")
            if len(gaps):
                lines.append(f"{values}[{_index(gaps, False, printer)}] = 0")
        else:
            lines.append(f"{place} += {_flat(term, printer)}")
    return lines


def _flat(node: Node, printer: InPlacePrinter) -> str:
    text: str = printer.text[node]
    return f"{printer.np}.ravel({text})" if len(node.shape) > 1 else text


def _new(size: int, printer: InPlacePrinter) -> str:
    """The call that makes an array with one axis, in memory that is used again if it is large."""
    if size * np.dtype(printer.dtype).itemsize >= SMALLEST:
        return new_text((size,), printer)
    return f"{printer.np}.empty({size}, dtype={printer.type_text})"


def _assigned(op: CompressedRows, node: Node, args: Texts, structure: str, printer: InPlacePrinter) -> str:
    """Part after part written to its places.

    Where many entries are numbers, they stand in the structure that results are copied from.
    """
    parts = list(zip(op.writes, node.args, args, strict=True))
    fixed = [part for part in parts if isinstance(part[1].op, Constant) and not part[0][2]]
    if sum(len(places) for (places, *_), *_ in fixed) * MANY < len(op.columns):
        fixed = []
    entries: str = printer.value_name("entries")
    made = f"{structure}.data.copy()" if fixed else _new(len(op.columns), printer)
    printer.before.append(f"{entries} = {made}")
    flat: dict[Node, str] = {}
    for (places, gaps, adds), arg, text in parts:
        index = _index(places, bool(arg.shape), printer)
        if fixed and isinstance(arg.op, Constant) and not adds:
            printer.settings.append(f"{structure}.data[{index}] = {text}")
            continue
        if len(gaps):
            printer.before.append(f"{entries}[{_index(gaps, False, printer)}] = 0")
        if len(arg.shape) > 1 and arg not in flat:
            flat[arg] = printer.value_name()
            printer.before.append(f"{flat[arg]} = {printer.np}.ravel({text})")
        printer.before.append(f"{entries}[{index}] {'+=' if adds else '='} {flat.get(arg, text)}")
    return entries


def sparse_structure(op: CompressedRows, printer: ArrayPrinter) -> str:
    """A module-level matrix of zeros that has the structure of the results; its name."""
    printer.imports.add("from scipy.sparse import csr_array")
    columns, rows = (shared(index, printer) for index in (op.columns, op.rows))
    name: str = printer.names.unique("structure")
    entries = f"{printer.np}.zeros({len(op.columns)}, dtype={printer.type_text})"
    printer.settings.append(f"{name} = csr_array(({entries}, {columns}, {rows}), shape={tuple(op.shape)})")
    printer.settings.append(f"{name}.has_canonical_format = True")
    return name


def _index(places: Any, several: bool, printer: ArrayPrinter) -> str:
    """A slice or a position, or an index array of the type that NumPy indexes with."""
    where = as_slice(places)
    if not isinstance(where, slice):
        return str(printer.constant_array(places))
    if where.stop - where.start == 1 and not several:
        return str(where.start)
    step = f":{where.step}" if where.step != 1 else ""
    return f"{where.start or ''}:{where.stop}{step}"


def shared(index: Any, printer: ArrayPrinter) -> str:
    """A constant that results share, and so must not change."""
    name: str = printer.constant_array(index)
    printer.settings.append(f"{name}.flags.writeable = False")
    return name

"""Row blocks as NumPy loops: views of the rows, the body in place, results joined or summed."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from symad.core.graph import Node, op_of, topological
from symad.numeric.fusion.chains import Fused
from symad.numeric.numpy_arrays.memory_reuse import new_text
from symad.numeric.numpy_arrays.texts import Name
from symad.numeric.passes.blocking.block_loop import COLUMNS, ROWS, RowBlocks
from symad.numeric.passes.blocking.row_blocks import BLOCK
from symad.numeric.passes.memory_layout.memory_spans import Cleared, Spread
from symad.numeric.program_passes.memory import is_fresh
from symad.numeric.program_passes.recycling import is_large
from symad.ops.arrays.shaping import Broadcast, Pad, Reshape, Slice
from symad.ops.arrays.sources import Source
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.elementwise.arithmetic import ElementwiseOp

if TYPE_CHECKING:
    from symad.numeric.numpy_arrays.in_place_printer import InPlacePrinter

CHAIN = 2**15
"""The number of elements of a block of a chain of elementwise operations."""


CHEAP = (ElementwiseOp, Fused, Broadcast, Source, Slice, Pad, Reshape, Stack, Concatenate, Spread, Cleared)


def block_lines(node: Node, printer: InPlacePrinter) -> list[str]:
    """The statements that fill all values of a loop over blocks of rows."""
    op = op_of(node, RowBlocks)
    np_, local, results = printer.np, op.body.input_nodes, op.body.output_nodes
    every = range(len(results))
    same = (op.body, op.axes, op.joined, op.length)
    values = [Node.of(RowBlocks(*same, k, op.columns, op.ends), node.args) for k in every]
    columns = op.columns or [None] * len(local)
    ends = op.ends or [None] * len(results)
    names = {value: printer.name_for(value) for value in values}
    start, part = printer.value_name("start"), printer.value_name("part")
    outer, inputs, length = printer.text, {}, printer.bare(op.length)
    lines, inner = [], []
    stop = printer.symbols[COLUMNS] = printer.value_name("stop")
    axes = [*op.axes, *[None] * (len(local) - len(op.axes))]
    for position, arg, axis, column in zip(local, node.args, axes, columns, strict=True):
        inputs[position] = outer[arg]
        if axis is not None or column is not None:
            inputs[position] = printer.value_name()
            inner.append(f"{inputs[position]} = {outer[arg]}[{_index(part, axis, stop, column)}]")
    into: list[Name | None] = []
    made: list[Node] = []
    for value, result, axis, end in zip(values, results, op.joined, ends, strict=True):
        shape, name = printer.dims(value.shape), names[value]
        if axis is None:
            zero = f"{np_}.zeros({shape}, dtype={printer.type_text})" if value.shape else "0"
            lines.append(f"{name} = {zero}")
            into.append(None)
            made.append(result)
            continue
        if end is None and (is_large(value.shape, printer.itemsize, {}) or not isinstance(op.length, int)):
            lines.append(f"{name} = {new_text(value.shape, printer)}")
        else:
            make = "empty" if end is None else "zeros"
            lines.append(f"{name} = {np_}.{make}({shape}, dtype={printer.type_text})")
        into.append(new := printer.value_name("new"))
        rows_of = f"{name}[{_index(part, axis, stop, end)}]"
        flat = axis == 0 and end is None and _is_laid_flat(result)  # computed in the flat form
        made.append(result.args[0] if flat else result)
        inner.append(f"{new} = {rows_of}{'.reshape(-1)' if flat else ''}")
    rows = printer.symbols[ROWS] = printer.value_name("rows")
    printer.bounds = {ROWS: _height(op)} | ({COLUMNS: op.length} if isinstance(op.length, int) else {})
    sizes, printer.sizes = printer.sizes, set()
    with printer.inside(inputs):
        body = printer.statements(made, into)
        texts = [printer.text[result] for result in made]
        kept = printer.names_inside(part.number)
    if not printer.nesting:
        printer.rows += [*filter(None, into), *kept]
    reads_rows = ROWS in printer.sizes
    printer.sizes |= sizes
    printer.bounds = {}
    printer.text |= names
    if reads_rows:
        inner.insert(0, f"{rows} = min({_height(op)}, {length} - {start})")
    if any(x is not None for x in (*columns, *ends)):
        inner.insert(0, f"{stop} = min({start} + {_height(op)}, {length})")
    for value, place, text, end in zip(values, into, texts, ends, strict=True):
        if place is None:
            seen = "" if end is None else f"[{_index(part, None, stop, end)}]"
            body.append(f"{names[value]}{seen} += {text}")
    return [
        *lines,
        f"for {start} in range(0, {length}, {_height(op)}):",
        f"    {part} = slice({start}, {start} + {_height(op)})",
        *(f"    {line}" for line in [*inner, *body]),
    ]


def _is_laid_flat(node: Node) -> bool:
    """Whether a result is a new array of one axis in another shape."""
    return isinstance(node.op, Reshape) and len(node.args[0].shape) == 1 and is_fresh(node.args[0])


def _index(part: str, axis: int | None, stop: str, column: int | None) -> str:
    """The index of the rows of a block along one axis, and of the columns that they see along another."""
    last = max(a for a in (axis, column) if a is not None)
    return ", ".join(part if k == axis else f":{stop}" if k == column else ":" for k in range(last + 1))


def _height(op: RowBlocks) -> int:
    """The rows of a block: so many that the largest array of known size in the body stays in the cache."""
    order = topological(op.body.output_nodes)
    sizes = [
        prod(op.length if d == COLUMNS else d for d in n.shape if d != ROWS) for n in order if ROWS in n.shape
    ]
    widest = max(size for size in sizes if isinstance(size, int))
    chain = all(isinstance(n.op, CHEAP) or len(n.shape) < 2 for n in order)  # of many equal arrays
    rows = max((CHAIN if chain else BLOCK) // widest, 8)
    return min(rows // 8 * 8, op.length) if isinstance(op.length, int) else rows // 8 * 8

"""Calls of compiled loops: memory for their results, and the arrays they read."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from symad.core.dims import Shape, plus
from symad.core.graph import Node
from symad.numeric.compiled_arrays.c.c_body import NAME
from symad.numeric.compiled_arrays.c.loop_text import loop_source
from symad.numeric.compiled_arrays.strided_arrays import contiguous
from symad.numeric.numpy_arrays.memory_reuse import new_text
from symad.numeric.numpy_arrays.ops.loops import (
    in_order_of_time,
    previous,
    recurrence_comment,
    value_stems,
    with_first,
)
from symad.numeric.passes.loops.loop import Loop
from symad.ops.arrays.contraction import Einsum
from symad.ops.arrays.stacking import Stack
from symad.ops.loops.scan import Scan, backwards

if TYPE_CHECKING:
    from symad.numeric.numpy_arrays.in_place_printer import InPlacePrinter


def loop_call(node: Node, op: Scan | Loop, printer: Any) -> list[str] | None:
    """The statements that fill all values of a loop; None if the loop stays in Python."""
    if any(printer.type_of(a) != printer.dtype for a in node.args):
        return None
    values = [node]
    if isinstance(op, Loop):
        count = len(op.body.output_nodes)
        values = [Node.of(Loop(op.body, op.slices, k), node.args) for k in range(count)]
    before = previous(values[0], node, printer) if values[0].shape[1:] else []
    passing = not printer.users.get(values[0])
    rows = {0: plus(node.shape[0], 1)} if before else {0: 2} if passing else {}
    shapes = [(rows.get(k, v.shape[0]), *v.shape[1:]) for k, v in enumerate(values)]
    apart = {k for k, v in enumerate(values) if k and _is_read_apart(v, printer)}
    apart |= {0} if before and _has_parts(op.body.output_nodes[0], shapes[0]) else set()
    strides = {k: (prod(shapes[k][:1] + shapes[k][2:]), *contiguous(shapes[k][2:])) for k in apart}
    found = loop_source(NAME, op, printer.dtype, strides)
    if found is None:
        return None
    source, text = found
    name = printer.loop(text, source)
    lines: list[str] = []
    stems = value_stems(node, values, printer)
    for k, (value, shape) in enumerate(zip(values, shapes, strict=True)):
        made = printer.text[value] = printer.called(stems[k])
        turn = ""
        if k in apart:
            shape, turn = (shape[1], shape[0], *shape[2:]), ".swapaxes(0, 1)"
        if k == 0 and before:
            longer = printer.own_name(f"{stems[k]}_all")
            lines.append(f"{longer} = {new_text(shape, printer)}{turn}")
            lines += with_first(value, before, longer, made, node, printer)
        else:
            lines.append(f"{made} = {new_text(shape, printer)}{turn}")
    places = [in_order_of_time(value, printer.text[value], printer) for value in values]
    initial, *others = (printer.text[a] for a in node.args)
    moving, fixed = others[: op.slices], others[op.slices :]
    arrays = ", ".join(f"[{', '.join(side)}]" for side in (moving, fixed, places))
    start = "None" if before else initial
    call = f'run_loop({name}, "{printer.dtype}", {printer.dim(node.shape[0])}, {start}, {arrays})'
    names = [printer.text[value] for value in values]
    return [*recurrence_comment(node, names, printer), *lines, call]


def _has_parts(state: Node, shape: Shape) -> bool:
    """Whether a state of known size is assembled from parts, so that all steps of a part are contiguous."""
    known = all(isinstance(d, int) for d in shape)
    return known and isinstance(state.op, Stack) and state.op.axis == 0


def _is_read_apart(value: Node, printer: InPlacePrinter) -> bool:
    """Whether an array over all steps is only read with its second axis first, and so stored that way."""
    users = printer.users.get(value, [])
    if users and all(u.shape and u is not value and backwards(u) is value for u in users):
        users = [u for turned in users for u in printer.users.get(turned, [])]
    rank = len(value.shape)
    known = rank > 1 and all(isinstance(d, int) for d in value.shape)
    return known and bool(users) and all(u is not value and _turns(u, rank) for u in users)


def _turns(node: Node, rank: int) -> bool:
    """Whether a node only exchanges the first two axes of its argument."""
    op = node.op
    if not isinstance(op, Einsum) or len(node.args) != 1 or len(op.output) != rank:
        return False
    return [op.inputs[0].index(label) for label in op.output] == [1, 0, *range(2, rank)]

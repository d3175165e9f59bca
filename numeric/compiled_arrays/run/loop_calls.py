"""Calls of compiled loops: memory for their results, and the arrays they read."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from symad.core.dims import Shape, plus
from symad.core.graph import Node
from symad.numeric.compiled_arrays.c.c_body import NAME
from symad.numeric.compiled_arrays.c.loop_text import loop_source
from symad.numeric.compiled_arrays.strided_arrays import contiguous
from symad.numeric.numpy_arrays.memory_reuse import new_text
from symad.numeric.numpy_arrays.ops.loops import recurrence_comment
from symad.numeric.passes.loops.loop import Loop, pieces
from symad.ops.arrays.contraction import Einsum
from symad.ops.arrays.shaping import Slice, reshape
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.loops.scan import Scan, backwards

if TYPE_CHECKING:
    from symad.numeric.compiled_arrays.printer import NativePrinter


@dataclass(frozen=True)
class CompiledLoop:
    """A loop as a function in C, and how its values are laid out.

    Attributes:
        name: the name of the function in the module.
        values: all values of the loop.
        before: the arrays of the states before all steps.
        shapes: the shapes of the arrays of the values.
        apart: the values whose second axis comes first in memory.
    """

    name: str
    values: list[Node]
    before: list[Node]
    shapes: list[Shape]
    apart: set[int]


def compiled_loop(node: Node, op: Scan | Loop, printer: NativePrinter) -> CompiledLoop | None:
    """The function that computes all values of a loop; None if the loop stays in Python."""
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
    return CompiledLoop(printer.loop(text, source), values, before, shapes, apart)


def loop_call(made: CompiledLoop, node: Node, op: Scan | Loop, printer: NativePrinter) -> list[str]:
    """The statements that fill all values of a loop."""
    lines: list[str] = []
    for k, (value, shape) in enumerate(zip(made.values, made.shapes, strict=True)):
        name = printer.text[value] = printer.called(printer.label(value))
        turn = ""
        if k in made.apart:
            shape, turn = (shape[1], shape[0], *shape[2:]), ".swapaxes(0, 1)"
        if k == 0 and made.before:
            stem = name.stem or str(name)
            longer = printer.own_name(f"{stem}_all")
            lines.append(f"{longer} = {new_text(shape, printer)}{turn}")
            shifted = printer.called(f"{stem}_before")
            printer.text |= {n: shifted for joined in made.before for n in (joined, joined.args[1])}
            lines += [
                f"{longer}[0] = {printer.text[node.args[0]]}",
                f"{name} = {longer}[1:]",
                f"{shifted} = {longer}[:{printer.bare(value.shape[0])}]",
            ]
        else:
            lines.append(f"{name} = {new_text(shape, printer)}{turn}")
    places = [in_order_of_time(value, printer.text[value], printer) for value in made.values]
    initial, *others = (printer.text[a] for a in node.args)
    moving, fixed = others[: op.slices], others[op.slices :]
    arrays = ", ".join(f"[{', '.join(side)}]" for side in (moving, fixed, places))
    start = "None" if made.before else initial
    call = f'run_loop({made.name}, "{printer.dtype}", {printer.dim(node.shape[0])}, {start}, {arrays})'
    turned = any(x.args and backwards(x) is x.args[0] for x in pieces(op, node.args)[1])
    stems = [printer.stem_of_text(x) for x in pieces(op, node.args)[1]]
    comment = recurrence_comment([printer.text[made.values[0]]], stems, node.shape[0], turned, printer)
    return [*comment, *lines, call]


def _has_parts(state: Node, shape: Shape) -> bool:
    """Whether a state of known size is assembled from parts, so that all steps of a part are contiguous."""
    known = all(isinstance(d, int) for d in shape)
    return known and isinstance(state.op, Stack) and state.op.axis == 0


def _is_read_apart(value: Node, printer: NativePrinter) -> bool:
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


def previous(value: Node, node: Node, printer: NativePrinter) -> list[Node]:
    """The arrays of the states before all steps: the first state, and all but the last."""
    initial = node.args[0]
    start = reshape(initial, (1, *initial.shape))
    found = []
    for user in printer.users.get(value, []):
        op = user.op
        if not isinstance(op, Slice) or len(printer.users.get(user, [])) != 1:
            continue
        (joined,) = printer.users[user]
        all_but_one = (plus(value.shape[0], -1), *value.shape[1:])
        first = isinstance(joined.op, Concatenate) and joined.op.axis == 0 and len(joined.args) == 2
        first = first and joined not in printer.lasting  # results have memory of their own
        first = first and joined.args == (start, user)
        if first and op.count == all_but_one and not any(op.start) and set(op.step) == {1}:
            found.append(joined)
    return found


def in_order_of_time(value: Node, name: str, printer: NativePrinter) -> str:
    """The text of an array in the order of its steps; reversed if all its readers reverse it."""
    users = printer.users.get(value, [])
    if not users or not all(u.shape and u is not value and backwards(u) is value for u in users):
        return name
    printer.text.update(dict.fromkeys(users, name))
    return f"{name}[::-1]"

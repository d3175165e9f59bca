"""Rows that stand below a state at every step of a loop: one array holds both, and nothing is copied.

An array of steps + 1 blocks of rows is filled with what does not depend on the state; every step writes its
state into the next block, whose rows then are what the next step multiplies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from symad.core.dims import plus
from symad.core.graph import Node, op_of, topological
from symad.numeric.numpy_arrays.memory_reuse import new_text
from symad.numeric.passes.loops.loop import Loop, loop_of, pieces, values
from symad.ops.arrays.stacking import Concatenate

if TYPE_CHECKING:
    from symad.numeric.numpy_arrays.printer import ArrayPrinter


@dataclass(frozen=True)
class Beside:
    """A value of a loop that is a state with other rows before or below it."""

    rows: Node
    """The value in the body."""
    value: Node
    """The value at all steps."""
    states: Node
    """The states at all steps."""
    blocks: tuple[tuple[Node, str], ...]
    """The argument of the loop for each block of rows, and its index."""
    place: str
    """The index of the rows of the state."""


def besides(node: Node, printer: ArrayPrinter) -> list[Beside]:
    """The values of a loop that can be laid out so; results have memory of their own."""
    op = loop_of(node)
    states, moving, fixed = pieces(op, op.body.input_nodes)
    outer = dict(zip(op.body.input_nodes, node.args, strict=True))
    made = values(node)
    found: list[Beside] = []
    for value, rows in zip(made[len(states) :], op.body.output_nodes[len(states) :], strict=True):
        own = [a for a in rows.args if a in states]
        plain = isinstance(rows.op, Concatenate) and rows.op.axis == 0 and rows not in op.body.input_nodes
        known = all(isinstance(a.shape[0], int) for a in rows.args if a.shape)
        if not plain or len(own) != 1 or not known or not set(rows.args) <= {*own, *moving, *fixed}:
            continue
        if is_result(value, printer):
            continue
        blocks, start, place = [], 0, ""
        for arg in rows.args:
            stop = start + arg.shape[0]
            index = f"{start or ''}:{stop if stop != rows.shape[0] else ''}"
            blocks.append((outer[arg], index))
            place = index if arg is own[0] else place
            start = stop
        state = made[states.index(own[0])]
        if all(b.states is not state for b in found):
            found.append(Beside(rows, value, state, tuple(blocks), place))
    return found


def is_result(array: Node, printer: Any) -> bool:
    """Whether an array, or a view of it, is returned."""
    return array in printer.lasting


def read_otherwise(node: Node, found: list[Beside]) -> set[Node]:
    """The inputs of a body that are read as they are."""
    op = loop_of(node)
    inside = {b.rows for b in found}
    order = topological(op.body.output_nodes)
    return {*op.body.output_nodes, *(a for n in order if n not in inside for a in n.args)}


def beside_lines(one: Beside, names: dict[Node, str], before: list[Node], printer: Any) -> list[str]:
    """The statements that make the array, fill all but the later states, and name its parts."""
    whole = printer.own_name()
    steps, *rest = one.value.shape
    count = printer.bare(steps)
    first = one.states.args[op_of(one.states, Loop).k]
    lines = [f"{whole} = {new_text((plus(steps, 1), *rest), printer)}"]
    for array, index in one.blocks:
        at = "0" if array is first and index == one.place else f":{count}"
        lines.append(f"{whole}[{at}, {index}] = {printer.text[array]}")
    lines.append(f"{names[one.value]} = {whole}[:{count}]")
    lines.append(f"{names[one.states]} = {whole}[1:, {one.place}]")
    if before:
        shifted = printer.value_name()
        lines.append(f"{shifted} = {whole}[:{count}, {one.place}]")
        printer.text |= {n: shifted for user in before for n in (user, user.args[1])}
    return lines

"""How overlays are written: the first part in an array of zeros, the others added to it."""

from __future__ import annotations

from typing import Any

from symad.core.graph import Node
from symad.numeric.numpy_arrays.box_sums import BoxIndex
from symad.numeric.numpy_arrays.memory_reuse import is_recycled, new_text
from symad.numeric.numpy_arrays.texts import Name, Part, assigned


def overlay_index(node: Node, k: int, printer: Any) -> BoxIndex:
    """The index of part ``k``."""
    op: Any = node.op
    start, (count,) = op.start[k], node.args[k].shape
    stop = start + count
    return (f"{'' if start == 0 else printer.bare(start)}:{'' if stop == op.size else printer.bare(stop)}",)


def overlay_room(node: Node, printer: Any) -> tuple[Name, list[str]]:
    """The name of the array, and the statements that make it, with zeros where the first part is not."""
    op: Any = node.op
    lines = []
    name = printer.slots.get(node)
    if not isinstance(name, Name):
        name = printer.name_for(node)
        kind = printer.type_text
        plain = f"{printer.np}.empty({printer.dims(node.shape)}, dtype={kind})"
        made = new_text(node.shape, printer) if is_recycled(node, printer) else plain
        lines.append(f"{name} = {made}")
    start, (count,) = op.start[0], node.args[0].shape
    if start != 0:
        lines.append(f"{name}[:{printer.bare(start)}] = 0")
    if start + count != op.size:
        lines.append(f"{name}[{printer.bare(start + count)}:] = 0")
    return name, lines


def overlay_lines(node: Node, printer: Any) -> list[str]:
    """The statements that put an overlay together; its first part may stand there already."""
    op: Any = node.op
    first, *rest = node.args
    lines: list[str] = []
    if node in printer.buffers:
        name = printer.buffers.pop(node)
    elif printer.ends(first, node) and node not in printer.slots:
        name = printer.text[first]
    else:
        name, made = overlay_room(node, printer)
        lines += [*made, assigned(Part(name, *overlay_index(node, 0, printer)), printer.text[first])]
    for k, arg in enumerate(rest, 1):
        symbol = "+=" if op.signs[k] == 1 else "-="
        lines.append(f"{Part(name, *overlay_index(node, k, printer))} {symbol} {printer.text[arg]}")
    slot = printer.slots.get(node)
    if slot is not None and slot != name:
        lines.append(assigned(slot, name))
        name = slot
    printer.text[node] = name
    return lines

"""`Scan` as a loop that writes its states to an array allocated before it."""

from __future__ import annotations

from symad.core.graph import Node
from symad.numeric.backends import ArrayLibrary
from symad.numeric.numpy_arrays.printing import Printing
from symad.numeric.numpy_arrays.texts import Name, Part
from symad.numeric.passes.loops.loop import loop_of, pieces
from symad.ops.loops.scan import Scan, backwards, parts


def state_stem(node: Node, printer: Printing) -> str:
    """The name stem of the states of a recurrence: h, or h_bar if it runs backwards."""
    op = loop_of(node)
    _, xs, _ = pieces(op, node.args)
    turned = any(x.args and backwards(x) is x.args[0] for x in xs)
    return printer.label(node) or ("h_bar" if turned else "h")


def scan_lines(op: Scan, library: ArrayLibrary, node: Node, name: Name, printer: Printing) -> list[str]:
    """The statements that allocate the array ``name`` and write all states to it."""
    initial, xs, constants = parts(op, node.args)
    np_, local = printer.np, op.body.input_nodes
    step, state = printer.called("t"), printer.called(f"{name.stem or name}_t")
    outer = printer.text
    inputs = dict(zip(local[1 + op.slices :], (outer[c] for c in constants), strict=True))
    lines = [f"{np_}.empty({printer.dims(node.shape)}, dtype={printer.type_text})"]
    lines[0] = f"{name} = {lines[0]}"
    lines += [f"{state} = {outer[initial]}", f"for {step} in range({printer.bare(node.shape[0])}):"]
    inputs[local[0]] = state
    inner: list[str] = []
    for x, row in zip(xs, local[1 : 1 + op.slices], strict=True):
        inputs[row] = printer.called(row_stem(x, printer))
        inner.append(f"{inputs[row]} = {outer[x]}[{step}]")
    (result,) = op.body.output_nodes
    place = Part(name, step)
    printer.places[result] = place
    with printer.inside(inputs):
        inner += printer.statements((result,))
        if printer.text[result] != place:
            inner.append(f"{place} = {printer.text[result]}")
        inner.append(f"{state} = {place}")
        kept = printer.names_inside(step.number)
    del printer.places[result]
    if not printer.nesting:
        printer.rows += [state, *kept]
    return [*lines, *(f"    {line}" for line in inner)]


def row_stem(x: Node, printer: Printing) -> str:
    """The name stem of the row of an array in a step."""
    stem = printer.stem_of_text(x)
    return f"{stem}_t" if stem else ""

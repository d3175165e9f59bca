"""Loops over blocks of rows as lines of Python."""

from __future__ import annotations

from symad.core.graph import Node
from symad.numeric.numpy_arrays.printing import InPlacePrinting
from symad.numeric.numpy_arrays.texts import Name
from symad.numeric.program.expressions import Expression, Read, Value
from symad.numeric.program.loops import Blocks


def block_lines(statement: Blocks, printer: InPlacePrinting) -> list[str]:
    """The lines of a loop over blocks of rows."""
    given = (*(part.value for part in statement.parts), *(fixed.value for fixed in statement.fixed))
    plan = next(printer.steps[value] for value in given if value in printer.steps)
    nodes, height, length = plan.block.nodes, statement.height, printer.bare(statement.length)
    start, part = printer.value_name("start"), printer.value_name("part")
    stop = printer.symbols[statement.stop] = printer.value_name("stop")
    inputs: dict[Node, str] = {
        nodes[fixed.value]: printer.text_of(fixed.expression)
        for fixed in statement.fixed
        if fixed.value in nodes
    }
    sums = [printer.text_of(Read(added.value)) for added in statement.added]
    rooms: dict[Value, Name] = {}
    first: list[str] = []
    for one in statement.parts:
        seen = f"{printer.text_of(one.array)}[{_index(part, one.axis, stop, one.column)}]"
        if one.value in nodes:
            name = inputs[nodes[one.value]] = printer.value_name()
        else:
            name = rooms[one.value] = printer.value_name("new")
        first.append(f"{name} = {seen}{'.reshape(-1)' if one.flat else ''}")
    rows = printer.symbols[statement.rows] = printer.value_name("rows")
    around = printer.sizes, printer.bounds
    printer.sizes, printer.bounds = set(), {statement.rows: height}
    if isinstance(statement.length, int):
        printer.bounds = {**printer.bounds, statement.stop: statement.length}

    def result(expression: Expression) -> str:
        node = nodes.get(expression.value) if isinstance(expression, Read) else None
        return printer.text_of(expression) if node is None else printer.text[node]

    with printer.inside(inputs):
        body = printer.lines_of(plan, rooms)
        texts = [result(added.expression) for added in statement.added]
        kept = printer.names_inside(part.number)
    if not printer.nesting:
        printer.rows += [*rooms.values(), *kept]
    reads_rows = statement.rows in printer.sizes
    printer.sizes, printer.bounds = printer.sizes | around[0], around[1]
    if reads_rows:
        first.insert(0, f"{rows} = min({height}, {length} - {start})")
    columns = [*(one.column for one in statement.parts), *(added.column for added in statement.added)]
    if any(column is not None for column in columns):
        first.insert(0, f"{stop} = min({start} + {height}, {length})")
    for added, total, text in zip(statement.added, sums, texts, strict=True):
        seen = "" if added.column is None else f"[{_index(part, None, stop, added.column)}]"
        body.append(f"{total}{seen} += {text}")
    return [
        f"for {start} in range(0, {length}, {height}):",
        f"    {part} = slice({start}, {start} + {height})",
        *(f"    {line}" for line in [*first, *body]),
    ]


def _index(part: str, axis: int | None, stop: str, column: int | None) -> str:
    """The index of a block: its rows along one axis, the elements before ``stop`` along another."""
    last = max(a for a in (axis, column) if a is not None)
    return ", ".join(part if k == axis else f":{stop}" if k == column else ":" for k in range(last + 1))

"""`Loop` statements as lines of Python: a ``for`` over the rows that a step reads and those that it writes.

If a step multiplies by the transpose of a matrix that does not change, the transpose is copied to contiguous
memory before the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from symad.core.dims import plus
from symad.higher_order.scan import backwards
from symad.numeric.numpy_arrays.statements import inside
from symad.numeric.numpy_arrays.writer import ArrayWriter
from symad.numeric.program.expressions import Expression, Index, Read
from symad.numeric.program.loops import Carried, Loop
from symad.numeric.program.statements import Store
from symad.numeric.targets.statements import Lines, indented, lines, lines_of

Names: TypeAlias = Sequence[str]
Head: TypeAlias = Callable[[Loop, ArrayWriter, Names, Names, str], tuple[list[str], list[str]]]
"""The names that a ``for`` assigns, and its lines, from the arrays, the names of rows and of the index."""


@lines.dispatch
def loop_of_rows(statement: Loop, writer: ArrayWriter) -> Lines:
    """The comment, the preparation, the first states, and the ``for`` with its body."""
    return loop_lines(statement, writer, _zipped)


def loop_lines(statement: Loop, writer: ArrayWriter, head: Head) -> list[str]:
    """The lines of a loop; ``head`` writes the ``for``."""
    comment = loop_comment(statement, writer)
    arrays = [writer.operand(row.array) for row in statement.rows]
    initial = [writer.text(carried.initial).text for carried in statement.carried]
    fixed = [writer.operand(f.expression) for f in statement.fixed]
    turned = [text for text in dict.fromkeys(fixed) if writer.is_name(text) and text not in writer.fixed]
    writer.fixed |= dict.fromkeys(turned, "")
    states = _given(statement, writer)
    rows = [writer.named[row.value] for row in statement.rows]
    index = writer.named[statement.index] = writer.fresh(statement.index.stem)
    places = {row.value: name for row, name in zip(statement.rows, rows, strict=True) if row.filled}
    writer.whole |= {*places.values()}
    given = [one.value for part in (statement.carried, statement.rows, statement.fixed) for one in part]
    with inside(writer, given) as kept:
        body = lines_of(statement.body, writer)
        next_ = [places[c.place] if c.place else writer.text(c.next).text for c in statement.carried]
    body += [f"{', '.join(states)} = {', '.join(next_)}"] if next_ else []
    made = ((text, writer.fixed.pop(text)) for text in turned)
    before = [f"{laid} = {writer.np}.ascontiguousarray({text}.T)" for text, laid in made if laid]
    targets, begun = head(statement, writer, arrays, rows, index)
    if not writer.nesting:  # these names keep arrays alive
        writer.rows += [name for name in (*targets, *states, *kept) if name != "_"]
    first = (f"{state} = {start}" for state, start in zip(states, initial, strict=True))
    return [*comment, *before, *first, *begun, *indented(body)]


def _zipped(
    loop: Loop, writer: ArrayWriter, arrays: Sequence[str], rows: Sequence[str], index: str
) -> tuple[list[str], list[str]]:
    """The names that a ``for`` over rows assigns, and its line."""
    stores = any(isinstance(s, Store) for s in loop.body)
    targets, columns = [*rows], []
    for row, array in zip(loop.rows, arrays, strict=True):
        columns.append(f"itertools.cycle({array})" if row.alternates else array)
    if stores or all(row.alternates for row in loop.rows):
        columns.append(f"range({writer.dim(loop.count)})")
        targets.append(index if stores else "_")
    if any(row.alternates for row in loop.rows):
        writer.imports.add("import itertools")
    return targets, [f"for {', '.join(targets)}{',' * (len(targets) == 1)} in zip({', '.join(columns)}):"]


def _given(loop: Loop, writer: ArrayWriter) -> list[str]:
    """Name what the steps are given. Returns the names of the states."""
    for carried in loop.carried:
        writer.named[carried.value] = writer.fresh(carried.value.stem)
        writer.stems[carried.value] = carried.value.stem
        writer.kinds[carried.value] = writer.kind(carried.initial)
    for row in loop.rows:
        stem = writer.stems.get(row.array.value, "") if isinstance(row.array, Read) and not row.filled else ""
        writer.stems[row.value] = row.value.stem or (f"{stem}_t" if stem else "")
        writer.named[row.value] = writer.fresh(writer.stems[row.value])
        writer.kinds[row.value] = writer.kind(row.array)
    for fixed in loop.fixed:
        writer.named[fixed.value] = writer.operand(fixed.expression)
        writer.kinds[fixed.value] = writer.kind(fixed.expression)
        if isinstance(fixed.expression, Read):
            writer.stems[fixed.value] = writer.stems.get(fixed.expression.value, "")
    return [writer.named[carried.value] for carried in loop.carried]


def loop_comment(loop: Loop, writer: ArrayWriter) -> list[str]:
    """The comment h_t = f(h_{t-1}, x_t), from the names of states and of arrays whose rows a step reads.

    A loop that runs backwards computes h_t from h_{t+1}. An ellipsis stands for arrays without a name.
    """
    if writer.nesting:
        return []
    states = [_state_name(carried, loop, writer) for carried in loop.carried]
    read = [row for row in loop.rows if not row.filled]
    turned = any(_is_turned(row.array, writer) for row in read)
    rows = [writer.stems.get(r.array.value, "") if isinstance(r.array, Read) else "" for r in read]
    last = writer.dim(plus(loop.count, -1))
    steps = f"{last} … 0" if turned else f"0 … {last}"
    given = [f"{s}_{{t{'+' if turned else '-'}1}}" for s in states] + [f"{r}_t" for r in rows if r]
    more = [] if all(rows) else ["…"]
    return ["", f"# {', '.join(f'{s}_t' for s in states)} = f({', '.join([*given, *more])}),   t = {steps}"]


def _is_turned(array: Expression, writer: ArrayWriter) -> bool:
    """Whether an array is another array reversed."""
    node = writer.plans.nodes.get(array.value) if isinstance(array, Read) else None
    return node is not None and bool(node.args) and backwards(node) is node.args[0]


def _state_name(carried: Carried, loop: Loop, writer: ArrayWriter) -> str:
    """The name of the array of a state."""
    for row in loop.rows:
        if row.value is carried.place:
            return writer.operand(row.array.array if isinstance(row.array, Index) else row.array)
    stored = (s for s in loop.body if isinstance(s, Store) and s.expression == carried.next)
    return next((writer.name(s.array) for s in stored), carried.value.stem)

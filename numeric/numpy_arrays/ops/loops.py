"""`Loop` statements as lines of Python: a ``for`` over the rows that a step reads and those that it writes.

If a step multiplies by the transpose of a matrix that does not change, the transpose is copied to contiguous
memory before the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symad.core.dims import plus
from symad.core.graph import Node
from symad.higher_order.scan import backwards
from symad.numeric.numpy_arrays.printing import Printing
from symad.numeric.numpy_arrays.texts import Name, Part, Turned, assigned, is_name
from symad.numeric.program.expressions import Expression, Read, Value
from symad.numeric.program.loops import Carried, Loop, Row
from symad.numeric.program.statements import Store


def loop_lines(statement: Loop, printer: Printing) -> list[str]:
    """The lines of a loop, and the lines that prepare it."""
    return _LoopLines(statement, printer).written()


def loop_comment(
    loop: Loop, arrays: Sequence[str], numbers: Mapping[Value, str], printer: Printing
) -> list[str]:
    """The comment h_t = f(h_{t-1}, x_t), from the names of states and of arrays whose rows a step reads.

    A loop that runs backwards computes h_t from h_{t+1}. An ellipsis stands for arrays without a name.

    Args:
        loop: the loop.
        arrays: the texts of the arrays of its rows.
        numbers: the texts of arrays of numbers, which a step stores.
        printer: the printer of the module.
    """
    if printer.nesting:
        return []
    states = [_state_name(carried, loop, arrays, numbers) for carried in loop.carried]
    read = [(row, array) for row, array in zip(loop.rows, arrays, strict=True) if not row.filled]
    turned = any(_is_turned(row.array, printer) for row, _ in read)
    rows = [array.stem if isinstance(array, Name) else "" for _, array in read]
    last = printer.bare(plus(loop.count, -1))
    steps = f"{last} … 0" if turned else f"0 … {last}"
    given = [f"{s}_{{t{'+' if turned else '-'}1}}" for s in states] + [f"{r}_t" for r in rows if r]
    more = [] if all(rows) else ["…"]
    return ["", f"# {', '.join(f'{s}_t' for s in states)} = f({', '.join([*given, *more])}),   t = {steps}"]


def _is_turned(array: Expression, printer: Printing) -> bool:
    """Whether an array is another array reversed."""
    node = printer.block.nodes.get(array.value) if isinstance(array, Read) else None
    return node is not None and bool(node.args) and backwards(node) is node.args[0]


def _state_name(carried: Carried, loop: Loop, arrays: Sequence[str], numbers: Mapping[Value, str]) -> str:
    """The name of the array of a state."""
    for row, array in zip(loop.rows, arrays, strict=True):
        if row.value is carried.place:
            return array.base if isinstance(array, Part) else array
    stored = (s for s in loop.body if isinstance(s, Store) and s.expression == carried.next)
    return next((numbers[s.array] for s in stored if s.array in numbers), carried.value.stem)


class _LoopLines:
    """The names and texts that the lines of one loop are built from."""

    def __init__(self, statement: Loop, printer: Printing) -> None:
        self.loop = statement
        self.printer = printer
        inside = [*(c.value for c in statement.carried), *(r.value for r in statement.rows)]
        inside += [fixed.value for fixed in statement.fixed]
        self.plan = next(printer.steps[value] for value in inside if value in printer.steps)
        self.nodes = self.plan.block.nodes
        self.first = printer.serial
        self.arrays = [printer.text_of(row.array) for row in statement.rows]
        self.initial = [printer.text_of(carried.initial) for carried in statement.carried]
        self.outer = [printer.text_of(fixed.expression) for fixed in statement.fixed]
        self.numbers = {s.array: printer.text_of(Read(s.array)) for s in self._stores()}
        self.turned = {
            text: Turned(text) for text in self.outer if is_name(text) and text not in printer.fixed
        }
        self.states = [printer.called(carried.value.stem) for carried in statement.carried]
        self.rows = [printer.called(self._row_stem(k, row)) for k, row in enumerate(statement.rows)]
        self.index = printer.called(statement.index.stem)
        printer.writer.named[statement.index] = self.index

    def written(self) -> list[str]:
        """The comment, the preparation, the first states, and the ``for`` with its body."""
        loop, printer = self.loop, self.printer
        comment = loop_comment(loop, self.arrays, self.numbers, printer)
        printer.fixed |= self.turned
        body, kept = self._body()
        before = [
            f"{laid} = {printer.np}.ascontiguousarray({turned})"
            for laid, turned in ((printer.fixed.pop(text), turned) for text, turned in self.turned.items())
            if isinstance(laid, Name)
        ]
        targets, head = self._head() if printer.in_rows else self._head_with_index()
        if not printer.nesting:  # these names keep arrays alive
            printer.rows += [name for name in (*targets, *self.states, *kept) if name != "_"]
        return [
            *comment,
            *before,
            *(f"{state} = {start}" for state, start in zip(self.states, self.initial, strict=True)),
            *head,
            *(f"    {line}" for line in body),
        ]

    def _head(self) -> tuple[list[Name], list[str]]:
        """The names that the ``for`` over rows assigns, and its line."""
        loop, printer = self.loop, self.printer
        targets, columns = list(self.rows), []
        for row, array in zip(loop.rows, self.arrays, strict=True):
            columns.append(f"itertools.cycle({array})" if row.alternates else array)
        if self.numbers or all(row.alternates for row in loop.rows):
            columns.append(f"range({printer.bare(loop.count)})")
            targets.append(self.index if self.numbers else Name("_"))
        if any(row.alternates for row in loop.rows):
            printer.imports.add("import itertools")
        comma = "," * (len(targets) == 1)
        return targets, [f"for {', '.join(targets)}{comma} in zip({', '.join(columns)}):"]

    def _head_with_index(self) -> tuple[list[Name], list[str]]:
        """The names of rows, and the lines of the ``for`` over the numbers of the steps."""
        rows = zip(self.rows, self.loop.rows, self.arrays, strict=True)
        named = [f"{name} = {array}[{self.index}{' % 2' * row.alternates}]" for name, row, array in rows]
        head = f"for {self.index} in range({self.printer.bare(self.loop.count)}):"
        return list(self.rows), [head, *(f"    {line}" for line in named)]

    def _body(self) -> tuple[list[str], list[Name]]:
        """The lines of a step, and the names that they assign."""
        loop, printer = self.loop, self.printer
        rows = list(zip(loop.rows, self.rows, strict=True))
        rooms = {row.value: name for row, name in rows if row.filled}
        given = [
            *zip((c.value for c in loop.carried), self.states, strict=True),
            *((row.value, name) for row, name in rows if not row.filled),
            *zip((f.value for f in loop.fixed), self.outer, strict=True),
        ]
        inputs = {self.nodes[value]: text for value, text in given if value in self.nodes}
        printer.whole |= {*rooms.values()}
        with printer.knowing(self._given()), printer.inside(inputs):
            lines = printer.lines_of(self.plan, rooms)
            for store in self._stores():
                place = Part(self.numbers[store.array], self.index)
                lines.append(assigned(place, self._result(store.expression)))
            new = [rooms[c.place] if c.place else self._result(c.next) for c in loop.carried]
            kept = [*printer.names_inside(self.first), *printer.views]
        ending = [f"{', '.join(self.states)} = {', '.join(new)}"] if new else []
        return [*lines, *ending], kept

    def _result(self, expression: Expression) -> str:
        """The text of a result of a step."""
        if isinstance(expression, Read):
            return self.printer.text[self.nodes[expression.value]]
        return self.printer.text_of(expression)

    def _stores(self) -> list[Store]:
        """The stores of numbers into arrays; arrays are computed in their rows and need no store."""
        count = len(self.plan.program.statements)
        return [s for s in self.loop.body[count:] if isinstance(s, Store)]

    def _given(self) -> dict[Node, Node]:
        """The nodes outside for inputs of the body; not for inputs that are views."""
        loop = self.loop
        given = [
            *((c.value, c.initial) for c in loop.carried),
            *((r.value, r.array) for r in loop.rows),
            *((f.value, f.expression) for f in loop.fixed),
        ]
        found: dict[Node, Node] = {}
        for value, outer in given:
            node = self.printer.node_of(outer)
            if value in self.nodes and node is not None:
                found[self.nodes[value]] = node
        return found

    # ---- names -----------------------------------------------------------------------------------

    def _row_stem(self, k: int, row: Row) -> str:
        """The name stem of a row, after the name of its array."""
        text = self.arrays[k]
        stem = text.stem if isinstance(text, Name) and not row.filled else ""
        return row.value.stem or (f"{stem}_t" if stem else "")

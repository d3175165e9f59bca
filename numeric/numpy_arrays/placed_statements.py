"""What a program says beside the statements of nodes: places, parts of arrays, steps on the way to a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from symad.core.graph import Node
from symad.numeric.numpy_arrays.elementwise_statements import Step, call_of
from symad.numeric.numpy_arrays.memory_reuse import array_text
from symad.numeric.numpy_arrays.ops.loops import loop_lines
from symad.numeric.numpy_arrays.ops.row_blocks import block_lines
from symad.numeric.numpy_arrays.ops.sparse import gathered_lines, scatter_line
from symad.numeric.numpy_arrays.texts import Name, Part, assigned
from symad.numeric.program.expressions import Compute, Expression, Index, Read, Value, parts, values_read
from symad.numeric.program.loops import Blocks, Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Scatter, Statement, Store, assignments
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.shaping import Broadcast, Reshape

if TYPE_CHECKING:
    from symad.numeric.numpy_arrays.in_place_printer import InPlacePrinter
    from symad.numeric.numpy_arrays.printer import ArrayPrinter


class Placed:
    """The statements of a program by the nodes that they make, and the texts of its other values."""

    def __init__(self, program: Program, nodes: Mapping[Value, Node], rooms: Mapping[Value, Name]) -> None:
        """``nodes``: which values of the program are nodes; ``rooms``: the arrays that results go into."""
        every = [made for statement in program.statements for made in assignments(statement)]
        later = {made.over for made in every}
        read = Counter(v for s in program.statements for e in s.expressions for v in values_read(e))
        self.nodes = nodes
        self.texts: dict[Value, str] = {**rooms}
        """The texts of values that no node stands for."""
        self.steps: dict[Node, list[Assign]] = {}
        """The statements that make a node, the last its value."""
        self.over: dict[Node, Node] = {}
        """The operand that a node is written over."""
        self.filled: dict[Value, Node] = {}
        """The nodes that arrays become that are filled part by part."""
        self.parts = {*rooms, *(made.value for made in every if part_of(made.expression) is not None)}
        """Arrays, and parts of arrays, in which something is written."""
        self.copied_to = {made.over for made in every if not parts(made.expression)}
        """Of these, those that something is copied to."""
        self.used_again = {
            made.over
            for made in every
            if made.value in later or read[made.value] > (made.over in self.copied_to)
        }
        """Of these, those in which more is written afterwards, or that are read."""
        waiting: list[Assign] = []
        for made in every:
            node = nodes.get(made.value)
            placed = made.value in self.parts or made.over in self.parts
            if node is None and (placed or is_alias(made) or is_gathered(made)):
                continue  # a statement of its own
            waiting.append(made)
            if node is not None:
                self.steps[node], over = waiting, waiting[0].over
                if isinstance(made.expression, Read):
                    self.filled[made.expression.value] = node
                if over is not None and over in nodes:
                    self.over[node] = nodes[over]
                waiting = []

    def kept(self, node: Node) -> bool:
        """Whether the memory of a node is kept from call to call; not that of results which nothing reads."""
        return node in self.steps and self.steps[node][0].kept

    def text_of(self, expression: Expression, printer: ArrayPrinter) -> str:
        """The text of a value, or of a constant that stands where it is read."""
        if isinstance(expression, Read):
            return self.text_of_value(expression.value, printer)
        if isinstance(expression, Index):
            array, places = self.text_of(expression.array, printer), printer.writer.places(expression)
            return array if places == [":"] else Part(array, *places)
        assert isinstance(expression, Compute)
        if isinstance(expression.op, Broadcast):  # a number for all elements, or an array for all rows
            arg = expression.args[0]
            return self.text_of(arg, printer) if arg.shape else str(printer.writer.text(arg))
        return str(printer.text[Node.of(expression.op, ())])

    def text_of_value(self, value: Value, printer: ArrayPrinter) -> str:
        """The text of a value."""
        node = self.nodes.get(value)
        text: str = self.texts[value] if node is None else printer.text[node]
        return text

    def opened(self, statement: Statement, printer: Any) -> list[str]:
        """The lines of a statement that no node stands for; note where nodes go."""
        if isinstance(statement, Allocate):
            return self._allocated(statement, printer)
        if isinstance(statement, Scatter):
            return [scatter_line(statement, printer)]
        if isinstance(statement, Store):
            array = self.text_of_value(statement.array, printer)
            at = str(printer.writer.position(statement.position))
            return [assigned(Part(array, at), self.text_of(statement.expression, printer))]
        if isinstance(statement, Loop):
            return loop_lines(statement, printer)
        if isinstance(statement, Blocks):
            return block_lines(statement, printer)
        lines: list[str] = []
        for made in assignments(statement):
            node = self.nodes.get(made.value)
            if node is None and made.value in self.parts:
                lines += self._part(made.value, made.expression, printer)
            elif node is None and is_alias(made):
                self.texts[made.value] = self.text_of(made.expression, printer)
            elif node is None and is_gathered(made):
                lines += gathered_lines(made, printer)
            elif made.over in self.parts:
                place = self.texts[made.over]
                if node is not None:
                    printer.slots[node] = place
                    continue
                self.texts[made.value] = place
                call = call_of(made.expression, printer)
                copy = assigned(place, self.text_of(made.expression, printer)) if call is None else ""
                lines.append(copy if call is None else Step(*call, place).line(place, printer.np))
        return lines

    def closed(self, statement: Statement, printer: InPlacePrinter) -> list[str]:
        """What could not be computed in its place is copied there."""
        lines = []
        for made in assignments(statement):
            node = self.nodes.get(made.value)
            if node is not None and made.over in self.parts:
                place = self.texts[made.over]
                printer.slots.pop(node, None)
                if printer.text[node] != place:
                    lines.append(assigned(place, printer.text[node]))
                    printer.text[node] = place
                printer.floats.add(node)
        return lines

    def _allocated(self, statement: Allocate, printer: InPlacePrinter) -> list[str]:
        """A new array for the parts of a node, unless the node has a place."""
        array = statement.value
        made, node = self.nodes.get(array), self.filled.get(array)
        if made is not None:
            name = printer.text[made] = printer.name_for(made)
        else:
            name = printer.called(array.stem) if node is None else printer.name_for(node)
            self.texts[array] = name
        return [f"{name} = {array_text(array.shape, statement.kept, printer, statement.zeros)}"]

    def _part(self, value: Value, expression: Expression, printer: InPlacePrinter) -> list[str]:
        """A part of an array: it has a name if several statements say it, or if it is an operand and long."""
        part = part_of(expression)
        assert part is not None
        place = self.text_of(part, printer)
        if part is not expression:
            place = f"{place}.reshape({printer.dims(expression.shape)})"
        self.texts[value] = place
        if value.named:
            self.texts[value] = name = printer.called(value.stem)
            return [f"{name} = {place}"]
        if value not in self.used_again and (part is expression or value in self.copied_to):
            return []
        name = self.texts[value] = printer.value_name()
        printer.views.append(name)
        return [f"{name} = {place}"]


def part_of(expression: Expression) -> Index | None:
    """The part of an array that an expression shows, perhaps under another shape."""
    reshaped = isinstance(expression, Compute) and isinstance(expression.op, Reshape)
    shown = expression.args[0] if isinstance(expression, Compute) and reshaped else expression
    return shown if isinstance(shown, Index) else None


def is_gathered(made: Assign) -> bool:
    """Whether a value is made of the elements of an array at some places."""
    return isinstance(made.expression, Compute) and isinstance(made.expression.op, Gather)


def is_alias(made: Assign) -> bool:
    """Whether a value is another name of one that is there."""
    return isinstance(made.expression, Read) and made.over is None

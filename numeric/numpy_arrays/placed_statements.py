"""What a program says beside the statements of nodes: places, parts of arrays, steps on the way to a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from symad.core.graph import Node
from symad.numeric.numpy_arrays.elementwise_statements import Step, call_of
from symad.numeric.numpy_arrays.memory_reuse import new_text
from symad.numeric.numpy_arrays.texts import Name, Part, assigned
from symad.numeric.program.expressions import Compute, Expression, Index, Read, Value
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Statement, assignments
from symad.ops.arrays.shaping import Broadcast

if TYPE_CHECKING:
    from symad.numeric.numpy_arrays.in_place_printer import InPlacePrinter


class Placed:
    """The statements of a program by the nodes that they make, and the texts of its other values."""

    def __init__(self, program: Program, nodes: Mapping[Value, Node], rooms: Mapping[Value, Name]) -> None:
        """``nodes``: which values of the program are nodes; ``rooms``: the arrays that results go into."""
        every = [made for statement in program.statements for made in assignments(statement)]
        later = {made.over for made in every}
        self.nodes = nodes
        self.texts: dict[Value, str] = {**rooms}
        """The texts of values that no node stands for."""
        self.steps: dict[Node, list[Assign]] = {}
        """The statements that make a node, the last its value."""
        self.over: dict[Node, Node] = {}
        """The operand that a node is written over."""
        self.filled: dict[Value, Node] = {}
        """The nodes that arrays become that are filled part by part."""
        self.parts = {*rooms, *(made.value for made in every if isinstance(made.expression, Index))}
        """Arrays, and parts of arrays, in which something is written."""
        self.written_again = {made.over for made in every if made.value in later}
        """Of these, those in which more is written afterwards."""
        waiting: list[Assign] = []
        for made in every:
            node = nodes.get(made.value)
            if node is None and (made.value in self.parts or made.over in self.parts or is_alias(made)):
                continue
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

    def text_of(self, expression: Expression, printer: Any) -> str:
        """The text of a value, or of a constant that stands where it is read."""
        if isinstance(expression, Read):
            node = self.nodes.get(expression.value)
            text: str = self.texts[expression.value] if node is None else printer.text[node]
            return text
        assert isinstance(expression, Compute)
        if isinstance(expression.op, Broadcast):  # a number for all elements
            return str(printer.writer.text(expression.args[0]))
        return str(printer.text[Node.of(expression.op, ())])

    def opened(self, statement: Statement, printer: Any) -> list[str]:
        """The lines of a statement that no node stands for; note where nodes go."""
        if isinstance(statement, Allocate):
            return self._allocated(statement, printer)
        lines: list[str] = []
        for made in assignments(statement):
            node = self.nodes.get(made.value)
            if node is None and isinstance(made.expression, Index):
                lines += self._part(made.value, made.expression, printer)
            elif node is None and is_alias(made):
                self.texts[made.value] = self.text_of(made.expression, printer)
            elif made.over in self.parts:
                place = self.texts[made.over]
                if node is not None:
                    printer.slots[node] = place
                    continue
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
        node = self.filled[statement.value]
        name = self.texts[statement.value] = printer.name_for(node)
        if statement.kept:
            return [f"{name} = {new_text(node.shape, printer)}"]
        function = f"{printer.np}.{'zeros' if statement.zeros else 'empty'}"
        return [f"{name} = {function}({printer.dims(node.shape)}, dtype={printer.type_text})"]

    def _part(self, value: Value, expression: Index, printer: InPlacePrinter) -> list[str]:
        """A part of an array: it has a name if several operations write there."""
        assert isinstance(expression.array, Read)
        place = Part(self.text_of(expression.array, printer), *printer.writer.places(expression))
        self.texts[value] = place
        if value not in self.written_again:
            return []
        name = self.texts[value] = printer.value_name()
        printer.views.append(name)
        return [f"{name} = {place}"]


def is_alias(made: Assign) -> bool:
    """Whether a value is another name of one that is there."""
    return isinstance(made.expression, Read) and made.over is None

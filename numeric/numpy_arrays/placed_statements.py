"""Statements of a program beside those of nodes: allocations, views, stores, and steps of a node's value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from symad.core.graph import Node
from symad.numeric.numpy_arrays.elementwise_statements import Step, call_of
from symad.numeric.numpy_arrays.memory_reuse import allocation
from symad.numeric.numpy_arrays.ops.loops import loop_lines
from symad.numeric.numpy_arrays.ops.nested import function_lines
from symad.numeric.numpy_arrays.ops.row_blocks import block_lines
from symad.numeric.numpy_arrays.ops.sparse import gathered_lines, scatter_line
from symad.numeric.numpy_arrays.printing import Printing
from symad.numeric.numpy_arrays.texts import Name, Part, assigned
from symad.numeric.program.expressions import Compute, Expression, Index, Read, Value, parts, values_read
from symad.numeric.program.functions import Function
from symad.numeric.program.loops import Blocks, Loop
from symad.numeric.program.program import Program
from symad.numeric.program.statements import Allocate, Assign, Scatter, Statement, Store, assignments
from symad.ops.arrays.gathering import Gather
from symad.ops.basic.shaping import Broadcast, Reshape


class Placed:
    """The statements of a program by the nodes that they compute, and the texts of its other values.

    A place is an array, or a view of one, that a value is written to.
    """

    def __init__(self, program: Program, nodes: Mapping[Value, Node], rooms: Mapping[Value, Name]) -> None:
        """The statements of ``program``.

        Args:
            program: a program after all passes.
            nodes: the nodes of its values; other values are steps of these.
            rooms: the names of the arrays that results are written to.
        """
        later = {made.over for made in program.assigned}
        read = Counter(v for s in program.statements for e in s.expressions for v in values_read(e))
        self.nodes = nodes
        self.texts: dict[Value, str] = {**rooms}
        """The texts of values without a node."""
        self.steps: dict[Node, list[Assign]] = {}
        """The statements that compute a node; the last one computes its value."""
        self.over: dict[Node, Node] = {}
        """For a node, the operand that it overwrites."""
        self.filled: dict[Value, Node] = {}
        """For an allocated array that is filled part by part, the node whose value it is."""
        self.parts = {*rooms, *(m.value for m in program.assigned if part_of(m.expression) is not None)}
        """The places: given arrays, and views that are written to."""
        self.copied_to = {made.over for made in program.assigned if not parts(made.expression)}
        """The places that another value or a constant is copied to."""
        self.used_again = {
            made.over
            for made in program.assigned
            if made.value in later or read[made.value] > (made.over in self.copied_to)
        }
        """The places that are written again or read afterwards."""
        copies = (m.expression for m in program.assigned if m.over in self.parts and m.value not in nodes)
        self.copied = {nodes[v] for e in copies for v in values_read(e) if v in nodes}
        """The nodes whose values are copied to places."""
        waiting: list[Assign] = []
        for made in program.assigned:
            node = nodes.get(made.value)
            placed = made.value in self.parts or made.over in self.parts
            if node is None and (placed or is_alias(made) or is_gathered(made)):
                continue  # `opened` prints it
            waiting.append(made)
            if node is not None:
                self.steps[node], over = waiting, waiting[0].over
                if isinstance(made.expression, Read):
                    self.filled[made.expression.value] = node
                if over is not None and over in nodes:
                    self.over[node] = nodes[over]
                waiting = []

    def kept(self, node: Node) -> bool:
        """Whether the memory of a node is kept from call to call."""
        return node in self.steps and self.steps[node][0].kept

    def written_over(self, node: Node) -> Iterator[Node]:
        """A node, and the nodes that it has overwritten; they may have other names."""
        while True:
            yield node
            if node not in self.over:
                return
            node = self.over[node]

    def text_of(self, expression: Expression, printer: Printing) -> str:
        """The text of a value or of a constant."""
        if isinstance(expression, Read):
            return self.text_of_value(expression.value, printer)
        if isinstance(expression, Index):
            array, places = self.text_of(expression.array, printer), printer.writer.places(expression)
            return array if places == [":"] else Part(array, *places)
        assert isinstance(expression, Compute)
        if isinstance(expression.op, Broadcast):  # one number for all elements, or one array for all rows
            arg = expression.args[0]
            return self.text_of(arg, printer) if arg.shape else str(printer.writer.text(arg))
        return str(printer.text[Node.of(expression.op, ())])

    def text_of_value(self, value: Value, printer: Printing) -> str:
        """The text of a value."""
        node = self.nodes.get(value)
        text: str = self.texts[value] if node is None else printer.text[node]
        return text

    def viewed(self, node: Node, printer: Printing) -> list[str] | None:
        """The lines of a node that is another value, or a view of one; None for other nodes."""
        expression = self.steps[node][-1].expression
        if isinstance(expression, Read):
            printer.text[node] = self.text_of(expression, printer)
            return []
        if isinstance(expression, Index):
            name = printer.text[node] = printer.name_for(node)
            return [f"{name} = {self.text_of(expression, printer)}"]
        return None

    def opened(self, statement: Statement, printer: Any) -> list[str]:
        """The lines of a statement without a node. Places of nodes go to ``printer.slots``."""
        lines: list[str] = []
        made = assignments(statement)
        for one in made:
            node = self.nodes.get(one.value)
            if node is None:
                lines += self._without_node(one, printer)
            elif one.over in self.parts:
                printer.slots[node] = self.texts[one.over]
        return lines if made else self._unassigned(statement, printer)

    def _unassigned(self, statement: Statement, printer: Any) -> list[str]:
        """The lines of a statement that is no assignment."""
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
        return function_lines(statement, printer) if isinstance(statement, Function) else []

    def _without_node(self, made: Assign, printer: Any) -> list[str]:
        """The lines of the assignment of a value that is no node's."""
        if made.value in self.parts:
            return self._part(made.value, made.expression, printer)
        if is_alias(made):
            self.texts[made.value] = self.text_of(made.expression, printer)
        elif is_gathered(made):
            return gathered_lines(made, printer)
        elif made.over in self.parts:
            place = self.texts[made.value] = self.texts[made.over]
            call = call_of(made.expression, printer)
            copy = assigned(place, self.text_of(made.expression, printer)) if call is None else ""
            return [copy if call is None else Step(*call, place).line(place, printer.np)]
        return []

    def closed(self, statement: Statement, printer: Printing) -> list[str]:
        """The lines that copy nodes to their places if they were not computed there."""
        lines = []
        for made in assignments(statement) if self.parts else ():
            node = self.nodes.get(made.value)
            if node is not None and made.over in self.parts:
                place = self.texts[made.over]
                printer.slots.pop(node, None)
                if printer.text[node] != place:
                    lines.append(assigned(place, printer.text[node]))
                    printer.text[node] = place
                printer.floats.add(node)
        return lines

    def _allocated(self, statement: Allocate, printer: Printing) -> list[str]:
        """The line that allocates an array."""
        array = statement.value
        made, node = self.nodes.get(array), self.filled.get(array)
        if made is not None:
            name = printer.text[made] = printer.name_for(made)
        else:
            name = printer.called(array.stem) if node is None else printer.name_for(node)
            self.texts[array] = name
        return [f"{name} = {allocation(statement, printer)}"]

    def _part(self, value: Value, expression: Expression, printer: Printing) -> list[str]:
        """The line that names a view; a view whose text is written only once has no name."""
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
    """The index of an expression that is a view, perhaps a reshaped one; None for others."""
    reshaped = isinstance(expression, Compute) and isinstance(expression.op, Reshape)
    shown = expression.args[0] if isinstance(expression, Compute) and reshaped else expression
    return shown if isinstance(shown, Index) else None


def is_gathered(made: Assign) -> bool:
    """Whether a value is gathered from the elements of an array."""
    return isinstance(made.expression, Compute) and isinstance(made.expression.op, Gather)


def is_alias(made: Assign) -> bool:
    """Whether a value is only another name of a value."""
    return isinstance(made.expression, Read) and made.over is None

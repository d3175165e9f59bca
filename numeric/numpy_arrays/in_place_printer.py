"""NumPy modules with in-place arithmetic: an operation writes over an operand that is not read again.

`program_passes/memory/places.py` decides which operand an operation writes over, before printing. NumPy's
broadcasting repeats smaller arrays along axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from symad.core.contents import holds
from symad.core.graph import Graph, Node
from symad.cost import schedule
from symad.higher_order.scan import Scan
from symad.numeric.expressions.numbers import literal
from symad.numeric.numpy_arrays import owners
from symad.numeric.numpy_arrays.elementwise_statements import step_lines
from symad.numeric.numpy_arrays.joined_views import view_of_slice
from symad.numeric.numpy_arrays.matmul_statements import product_line
from symad.numeric.numpy_arrays.ops.sparse import matrix_lines
from symad.numeric.numpy_arrays.owners import owner
from symad.numeric.numpy_arrays.printer import ArrayPrinter
from symad.numeric.numpy_arrays.sums_by_products import sum_as_product
from symad.numeric.numpy_arrays.texts import Name, Turned, assigned
from symad.numeric.passes.loop import Loop
from symad.numeric.passes.memory_layout.memory_spans import works_in_gaps
from symad.numeric.pipelines import ProgramPass, in_place, keeps_memory
from symad.numeric.program.expressions import Compute, Expression, Index, Value, op_in
from symad.numeric.program_passes.memory.allocation import is_fresh
from symad.numeric.scheduling.roles import stem_of
from symad.numeric.targets.target import MatrixProduct
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Slice
from symad.ops.basic.sources import ArrayConstant, Constant, Input, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select
from symad.ops.sparse.csr import CompressedRows, IntArray

if TYPE_CHECKING:
    from symad.numeric.backends import ArrayLibrary


class InPlacePrinter(ArrayPrinter):
    """Prints one NumPy module from programs that say which arrays are overwritten and when they end."""

    gathers = False
    """Sparse matrices gather their entries even where strided assignments could write them."""

    def __init__(self, graph: Graph, library: ArrayLibrary, dtype: str) -> None:
        """See `ArrayPrinter`."""
        super().__init__(graph, library, dtype)
        self.numbers: dict[str, str] = {}
        """The names of constants that replace numbers in loops, by the texts of the numbers."""

    @contextmanager
    def knowing(self, given: Mapping[Node, Node]) -> Iterator[None]:
        """See `ArrayPrinter.knowing`: inputs whose arrays have the module's dtype."""
        outer, self.floats = self.floats, {node for node, other in given.items() if self.holds_floats(other)}
        yield
        self.floats = outer

    def passes(self, places: Sequence[Value | None]) -> tuple[ProgramPass, ...]:
        """See `ArrayPrinter.passes`."""
        kept = keeps_memory(self.itemsize, self.bounds)
        made = in_place(self.dtype, bool(self.depth), places, self.gathers, self.step, self.compiles)
        return (*made, kept, *super().passes(places))

    def compiles(self, value: Value) -> bool:
        """Whether the loop that computes a value is one compiled function."""
        return False

    @property
    def itemsize(self) -> int:
        """The bytes of an element of the module's arrays."""
        return np.dtype(self.dtype).itemsize

    def stem(self, node: Node) -> str:
        """See `ArrayPrinter.stem`; a value that is overwritten has the name stem of the final value."""
        end = node
        if isinstance(node.op, (Scan, Loop)):
            return super().stem(node)
        while (heir := self._heir(end)) is not None:
            end = heir
        if end is node:
            return super().stem(node)
        return self.label(end) or stem_of(end, ("",) * len(end.args))

    def _heir(self, node: Node) -> Node | None:
        """The node that overwrites the array of a node, if it is the only one that reads it."""
        readers = {*self.users.get(node, ())}
        heir = readers.pop() if len(readers) == 1 else node
        return heir if heir is not node and self.over.get(heir) is node else None

    def order(self, outputs: Sequence[Node]) -> list[Node]:
        """The order of the nodes, chosen to keep the largest number of live bytes small."""
        return schedule(Graph((), tuple(outputs)))

    def decorators(self, graph: Graph) -> list[str]:
        """The decorator that turns off NumPy's warnings where the values that cause them are not used."""
        order = graph.nodes
        if holds(graph, Select) and any(isinstance(n.op, Select) and not _is_indicator(n) for n in order):
            return [f'@{self.np}.errstate(all="ignore")  # of branches that are not taken']
        if works_in_gaps(graph):
            return [f'@{self.np}.errstate(all="ignore")  # of elements between those that are read']
        overflows = "_sigmoid" in self.helpers  # exp overflows where the sigmoid is 0
        return [f'@{self.np}.errstate(over="ignore")'] if overflows else []

    def least_freed(self) -> int:
        """See `ArrayPrinter.least_freed`."""
        return owners.MIN_FREED_ELEMENTS

    def assignment(self, node: Node, expression: str) -> str:
        """See `ArrayPrinter.assignment`; a node with a slot is written there."""
        slot = self.slots.get(node)
        if slot is None:
            return super().assignment(node, expression)
        self.text[node] = slot
        return assigned(slot, expression)

    def transposed(self, matrix: str) -> str:
        """See `ArrayPrinter.transposed`. If no loop changes the matrix, the transpose is copied before."""
        turned = self.fixed.get(matrix)
        if isinstance(turned, Turned):
            stem = matrix.stem if isinstance(matrix, Name) else ""
            turned = self.fixed[matrix] = self.called(f"{stem}_T" if stem else "")
        return turned or super().transposed(matrix)

    def taken_line(self, values: str, index: IntArray, entries: str) -> str:
        """The statement that gathers entries from an array.

        All positions are in range, so that ``mode="wrap"`` changes none. In the default mode, NumPy would
        write to a buffer first.
        """
        places = self.constant_array(index)
        return f'{values}.take({places}, out={entries}, mode="wrap")'

    def statement(self, node: Node) -> list[str]:
        """The statements of one node."""
        made = self.placed.steps[node][-1].expression
        if isinstance(made, Compute) and node.args and not made.args:
            self.text[node] = self.name_for(node)  # the initial value of a sum over blocks
            return [f"{self.text[node]} = {self.writer.text(made)}"]
        if isinstance(op_in(made), CompressedRows):
            return matrix_lines(node, self) or super().statement(node)
        if self._written_later(node):
            return []
        view = view_of_slice(node)
        if view is not None and node.args[0] not in self.text:
            whole, places = view
            text = self.writer.index_text(Index(self.writer.argument(whole), places))
            self.text[node] = self.value_name()
            return [f"{self.text[node]} = {text}"]
        if node.shape and _is_indicator(node):
            self.text[node] = self.value_name()
            return [f"{self.text[node]} = {self.text[node.args[0]]}.astype({self.type_text})"]
        lines = step_lines(node, self) if node.shape else None
        if lines is not None:
            return lines
        if isinstance(node.op, Einsum):
            line = product_line(node, self)
            if line is not None:
                return [line]
        return super().statement(node)

    def _written_later(self, node: Node) -> bool:
        """Whether every reader of a slice includes it in an index of its own."""
        users = self.users.get(node, []) if isinstance(node.op, Slice) else []
        read = node in self.placed.copied
        return not read and bool(users) and all(view_of_slice(u) and u in self.placed.steps for u in users)

    def product_text(self, product: MatrixProduct) -> str:
        """A matrix product as an expression."""
        return product.text().text

    def multiplication(self) -> str:
        """The name of the function that multiplies matrices."""
        return f"{self.np}.matmul"

    def product_into(self, product: MatrixProduct, place: str) -> str:
        """The statement that writes the product of two named matrices into an array."""
        return f"{self.np}.matmul({product.left}, {product.right}, {place})"

    def holds_floats(self, node: Node) -> bool:
        """Whether an array is known to have the module's dtype."""
        made = owner(node)
        if isinstance(made.op, ArrayConstant):
            return bool(made.op.array.dtype.kind == "f")
        return isinstance(made.op, (Input, Constant)) or made in self.floats or is_fresh(made)

    def expression(self, node: Node) -> str:
        """See `ArrayPrinter.expression`. NumPy's functions of Python's numbers return double precision."""
        text = super().expression(node)
        return f"{self.np}.float32({text})" if self.dtype == "float32" and _is_number(node) else text

    def sum_as_product(self, arg: Node, axes: tuple[int, ...]) -> MatrixProduct | None:
        """See `ArrayPrinter.sum_as_product`."""
        return sum_as_product(arg, axes, self)

    # ---- operands --------------------------------------------------------------------------------

    def ends(self, arg: Node, node: Node) -> bool:
        """Whether ``node`` overwrites ``arg``."""
        return self.over.get(node) is arg

    def number(self, text: str, made: Expression | None = None) -> str:
        """The text of a number that is combined with arrays.

        In loops, a constant is an array of the module: to convert a Python number takes NumPy as long as
        to add a thousand elements.

        Args:
            text: the number as text.
            made: the expression of the number; None for a constant.
        """
        if not self.depth or (made is not None and not _is_constant(made)):
            return text
        if text not in self.numbers:
            self.numbers[text] = self.constant_text(f"{self.np}.array({text}, dtype={self.type_text})")
        return self.numbers[text]


def _is_number(node: Node) -> bool:
    """Whether a node is an operation on constants that no pass has evaluated."""
    plain = isinstance(node.op, (Add, Mul, Pow, Apply)) and not node.shape
    return plain and all(isinstance(a.op, Constant) for a in node.args)


def _is_indicator(node: Node) -> bool:
    """Whether a node is 1 where a condition holds and 0 elsewhere."""
    return isinstance(node.op, Select) and [constant_value(a) for a in node.args[1:]] == [1, 0]


def _is_constant(number: Expression) -> bool:
    """Whether a number is computed from constants alone."""
    return literal(number) is not None or (
        isinstance(number, Compute) and bool(number.args) and all(map(_is_constant, number.args))
    )

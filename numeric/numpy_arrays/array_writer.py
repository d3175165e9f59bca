"""Expressions of array code, written by the rules of the targets and by what the printer knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from symad.core.graph import Node, Op
from symad.core.questions import definition
from symad.errors import LoweringError
from symad.numeric.numpy_arrays.printing import Printing
from symad.numeric.program.expressions import Compute, Expression, Read, Value
from symad.numeric.targets import arrays, linear_algebra  # noqa: F401  (register answers)
from symad.numeric.targets.contractions import contraction
from symad.numeric.targets.pasting import pasted, pasted_into
from symad.numeric.targets.target import MatrixProduct, Text, numpy_as
from symad.numeric.targets.writer import Writer
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.sources import Constant, Dimension

if TYPE_CHECKING:
    import sympy



class ArrayWriter(Writer):
    """Writes the nodes of a graph with the names, helpers and constants of the module's printer."""

    reads_well = False

    def __init__(self, printer: Printing) -> None:
        """A writer for the module that ``printer`` prints."""
        super().__init__(numpy_as(printer.library.name, printer.np), printer.dtype, printer.names)
        self.printer = printer
        self.imports = printer.imports
        self.helpers = printer.helpers
        self.node: Node | None = None
        """The node that is being written."""

    def expression(self, node: Node) -> Text:
        """The text of a node, from the texts of its arguments."""
        return self.text(self.compute(node))

    def product(self, node: Node) -> MatrixProduct | None:
        """The matrix product that a contraction is; None for other contractions."""
        found = self.compute(node)
        assert isinstance(found.op, Einsum)
        made = contraction(found.op, found, tuple([self.text(a) for a in found.args]), self)
        return made if isinstance(made, MatrixProduct) else None

    def compute(self, node: Node) -> Compute:
        """A node as an expression."""
        self.node = node
        return Compute(node.op, tuple([self.argument(a) for a in node.args]), node.shape)

    def argument(self, node: Node) -> Expression:
        """A constant or a dimension as itself; any other argument as a value with a known text."""
        if isinstance(node.op, (Constant, Dimension)):
            return Compute(node.op, (), node.shape)
        value = Value("", node.shape)
        self.named[value] = self.printer.text[node]
        return Read(value)

    def without_rule(self, op: Op) -> Text:
        """The text of an op without a rule in the target: that of its definition by other ops.

        Raises:
            LoweringError: the op has no definition.
        """
        assert self.node is not None
        stands_for = definition(op, self.node)
        if not isinstance(stands_for, Node):
            raise LoweringError(f"the op {type(op).__name__} has no form for backend {self.target.name!r}")
        needed, result = self.printer.in_place_of(stands_for)
        self.printer.before.extend(needed)
        return Text(result)

    def turned(self, matrix: str) -> str:
        """The transpose of a matrix; a loop may have copied it to contiguous memory before its steps."""
        made: str = self.printer.transposed(matrix)
        return made

    def sum_over(self, node: Compute, arg: Text, axes: tuple[int, ...]) -> Text | MatrixProduct:
        """See `Writer.sum_over`; a product with a vector of ones where that is faster."""
        assert self.node is not None
        made: MatrixProduct | None = self.printer.sum_as_product(self.node.args[0], axes)
        return made or super().sum_over(node, arg, axes)

    def dim_name(self, symbol: sympy.Symbol) -> str:
        """The name of a dimension; it counts as read by the statements from now on."""
        name: str = self.printer.dim_name(symbol)
        return name

    @property
    def type_text(self) -> str:
        """The element type, as the printer's library spells it."""
        text: str = self.printer.type_text
        return text

    def float_type(self) -> str:
        """The dtype argument. It is always given, since entries may be Python's numbers."""
        return f", {self.type_text}"

    def helper(self, function: Callable[..., Any]) -> str:
        """The name of a helper function; the printer may replace its source."""
        found = pasted_into(self.module, self.pasted, pasted(function, np=self.np))
        self.imports.update(line for line in found.imports if line != Writer.library)
        for name, source in found.functions:
            self.printer.helper(name, source)
        return found.functions[-1][0]

    def constant(self, array: np.ndarray) -> str:
        """The name of a constant array of the module."""
        name: str = self.printer.constant_array(array)
        return name

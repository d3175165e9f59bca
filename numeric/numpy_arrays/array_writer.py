"""Expressions of array code: the rules of the targets, with what the printer of its statements knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from symad.core.graph import Node, Op
from symad.core.questions import definition
from symad.errors import LoweringError
from symad.numeric.program.expressions import Compute, Expression, Read, Value
from symad.numeric.targets import arrays, linear_algebra  # noqa: F401  (register answers)
from symad.numeric.targets.contractions import MatrixProduct, contraction
from symad.numeric.targets.pasting import pasted, pasted_into
from symad.numeric.targets.target import Text, numpy_as
from symad.numeric.targets.writer import Writer
from symad.ops.arrays.contraction import Einsum
from symad.ops.arrays.sources import Constant, Dimension

if TYPE_CHECKING:
    import sympy

    from symad.numeric.numpy_arrays.printer import ArrayPrinter


class ArrayWriter(Writer):
    """Writes the nodes of a graph; names, helpers and constants are those of the printer of its module."""

    reads_well = False

    def __init__(self, printer: ArrayPrinter) -> None:
        """``printer``: an `ArrayPrinter`."""
        super().__init__(numpy_as(printer.library.name, printer.np), printer.dtype, printer.names)
        self.printer = printer
        self.imports = printer.imports
        self.helpers = printer.helpers
        self.node: Node | None = None
        """The node that is being written."""

    def expression(self, node: Node) -> Text:
        """A node as an expression of the texts that its arguments have."""
        return self.text(self.compute(node))

    def product(self, node: Node) -> MatrixProduct | None:
        """A contraction that is a product of matrices; None for others."""
        found = self.compute(node)
        assert isinstance(found.op, Einsum)
        made = contraction(found.op, found, tuple([self.text(a) for a in found.args]), self)
        return made if isinstance(made, MatrixProduct) else None

    def compute(self, node: Node) -> Compute:
        """A node as an expression."""
        self.node = node
        return Compute(node.op, tuple([self.argument(a) for a in node.args]), node.shape)

    def argument(self, node: Node) -> Expression:
        """A number that stands where it is read, or a value by its text."""
        if isinstance(node.op, (Constant, Dimension)):
            return Compute(node.op, (), node.shape)
        value = Value("", node.shape)
        self.named[value] = self.printer.text[node]
        return Read(value)

    def without_rule(self, op: Op) -> Text:
        """An op that the target has no rule for is written as what it stands for.

        Raises:
            LoweringError: it stands for nothing.
        """
        assert self.node is not None
        stands_for = definition(op, self.node)
        if not isinstance(stands_for, Node):
            raise LoweringError(f"the op {type(op).__name__} has no form for backend {self.target.name!r}")
        needed, result = self.printer.in_place_of(stands_for)
        self.printer.before.extend(needed)
        return Text(result)

    def turned(self, matrix: str) -> str:
        """The transpose, which may have been laid out before."""
        made: str = self.printer.transposed(matrix)
        return made

    def sum_over(self, node: Compute, arg: Text, axes: tuple[int, ...]) -> Text | MatrixProduct:
        """See `Writer.sum_over`; perhaps as a product with ones."""
        assert self.node is not None
        made: MatrixProduct | None = self.printer.sum_as_product(self.node.args[0], axes)
        return made or super().sum_over(node, arg, axes)

    def dim_name(self, symbol: sympy.Symbol) -> str:
        """The name of a dimension, which the statements then read."""
        name: str = self.printer.dim_name(symbol)
        return name

    def float_type(self) -> str:
        """Always said: Python's numbers may be among the entries."""
        return f", {self.printer.type_text}"

    def helper(self, function: Callable[..., Any]) -> str:
        """The name of a helper function, which the printer may have in a version of its own."""
        found = pasted_into(self.module, self.pasted, pasted(function, np=self.np))
        self.imports.update(line for line in found.imports if line != Writer.library)
        for name, source in found.functions:
            self.printer.helper(name, source)
        return found.functions[-1][0]

    def constant(self, array: np.ndarray) -> str:
        """An array of the module."""
        name: str = self.printer.constant_array(array)
        return name

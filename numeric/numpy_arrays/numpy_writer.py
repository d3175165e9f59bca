"""The writer of NumPy modules."""

from __future__ import annotations

from symad.core.graph import Graph, Op
from symad.numeric.numpy_arrays.expressions import by_definition
from symad.numeric.numpy_arrays.module import warnings_off
from symad.numeric.numpy_arrays.sums_by_products import sum_as_product
from symad.numeric.numpy_arrays.writer import ArrayWriter
from symad.numeric.program.expressions import Compute
from symad.numeric.targets.target import MatrixProduct, Text


class NumPyWriter(ArrayWriter):
    """Writes NumPy modules, in which some sums are matrix products."""

    def decorators(self, graph: Graph) -> list[str]:
        """The decorator that turns off warnings, where it is needed."""
        return warnings_off(graph, self)

    def without_rule(self, op: Op) -> Text:
        """See `Writer.without_rule`; the op is written by its definition."""
        return by_definition(op, self)

    def sum_over(self, node: Compute, arg: Text, axes: tuple[int, ...]) -> Text | MatrixProduct:
        """See `Writer.sum_over`; a product with a vector of ones where that is faster."""
        return sum_as_product(node.args[0], arg, axes, self) or super().sum_over(node, arg, axes)

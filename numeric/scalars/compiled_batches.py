"""Batches of scalar code: interpreted runs, or compiled array code for large batches with slow functions.

Both read and write memory once, and stay in the first-level cache in between. Runs call the C library once
per value for functions that are not in `PACKED`; array code computes several values of most of them at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy

from symad.core.graph import Graph, Node
from symad.core.structures import TupleOf
from symad.derivatives.vmap import vmap
from symad.numeric.compiled_arrays import lower as lower_arrays
from symad.numeric.kernel import Kernel
from symad.numeric.numpy_arrays.memory_reuse import new_array
from symad.numeric.numpy_arrays.scalars.level_runs import SHORT_POWERS
from symad.numeric.passes.memory_layout.packed_entries import output_scalars
from symad.numeric.scalars.lower_runs import Scalars, scalars
from symad.numeric.scalars.quick_calls import NEVER
from symad.numeric.targets.c_functions import PACKED
from symad.ops.basic.sources import constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow

WORTH_COMPILING = 4_000_000
"""Operations times points of a call from which array code is compiled: runs then take 5 ms or more, and array
code takes a fifth to a half of that. The decision depends on the call alone, never on earlier calls, so that
equal calls give equal bits."""

MAX_COMPILED = 2_000
"""The most operations of a function that is compiled; compiling then takes about a second.

Origin: it bounds the time of compilation.
"""

AS_FAST = {
    *PACKED, sympy.Abs, sympy.sign, sympy.floor, sympy.ceiling, sympy.Max, sympy.Min, sympy.Mod,
    sympy.Heaviside, sympy.erf, sympy.loggamma,
}  # fmt: skip
"""Functions for which runs are as fast as array code or faster: the packed ones, those that take a few
instructions, and two that array code also calls value by value."""


@dataclass(frozen=True)
class Batches:
    """A prepared graph of scalars, evaluated at many points.

    Raises:
        NotCompiled: by every method, if no C compiler works.
    """

    graph: Graph

    @cached_property
    def runs(self) -> Scalars:
        """The runs, planned for the first batch."""
        return scalars(self.graph)

    @cached_property
    def arrays(self) -> Kernel:
        """The compiled array code; each input and each result is one array (points,)."""
        outputs = output_scalars(self.graph)
        flat = Graph(self.graph.input_nodes, outputs, TupleOf((None,) * len(outputs)), self.graph.name)
        return lower_arrays.lower(vmap(flat), "float64")

    def at_points(self, columns: Sequence[np.ndarray]) -> np.ndarray:
        """Results (results, points) of contiguous inputs, each with the values at all points."""
        points = columns[0].size
        if not self._is_large(points):
            return self.runs.at_points(columns)
        rows = self.arrays.function(*(column.reshape(points) for column in columns))
        if not any(output.shape for output in self.graph.output_nodes):
            return rows
        joined = new_array()((len(rows), points), np.float64)
        return np.stack(rows, out=joined)

    @cached_property
    def most(self) -> int:
        """The largest number of points for which runs are as fast."""
        operations = len(self.graph.nodes)
        if operations > MAX_COMPILED or not any(map(_is_slow, self.graph.nodes)):
            return NEVER
        return (WORTH_COMPILING - 1) // max(operations, 1)

    def _is_large(self, points: int) -> bool:
        return points > self.most


def _is_slow(node: Node) -> bool:
    """Whether runs call the C library for a node, value by value."""
    if isinstance(node.op, Pow):
        exponent = constant_value(node.args[1])
        return isinstance(exponent, float) or exponent not in SHORT_POWERS
    return isinstance(node.op, Apply) and node.op.head not in AS_FAST

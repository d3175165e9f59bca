"""An array graph as a scalar graph: it is evaluated on arrays of nodes, whose entries are the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from symad.core.arrays import Array
from symad.core.dims import Dim, size
from symad.core.graph import Graph, Node, topological
from symad.core.identifiers import short_name
from symad.core.questions import evaluate, flops
from symad.errors import LoweringError, SymadError
from symad.evaluation.node_numbers import NodeNumber, as_nodes, as_numbers
from symad.higher_order.scan import Scan
from symad.numeric.box import share_side
from symad.numeric.entries import elimination  # noqa: F401  (registers answers)
from symad.numeric.entries.rules import PYTHON, entries
from symad.numeric.pipelines import ENTRY_GRAPH, PassReport, run_graph_passes
from symad.ops.arrays.stacking import pack_scalars
from symad.ops.basic.sources import Source, input_node, symbol_of
from symad.ops.sparse.csr import CompressedRows, compressed_rows
from symad.transforms.jacobians import total_size

MAX_OPERATIONS = 100_000
"""The most operations of a function that is written out. At -O2, gcc 12 takes a second for 1,500 operations,
at -O0 for 15,000.

Origin: it bounds the time of compilation, not that of calls.
"""

HEADROOM = 4
"""Operations are first counted including those on zeros and ones, which are not written out: with unit seeds
and masks these are up to about three quarters. Up to this many times the limit is allowed in that count."""


@dataclass
class WritingOut:
    """Evaluates nodes entry by entry, up to a limit of operations."""

    limit: int
    count: int = 0

    def values(self, outputs: Sequence[Node], point: Mapping[Node, Array]) -> list[Array]:
        """The values of some nodes as arrays of `NodeNumber`, given those of the nodes in ``point``.

        Raises:
            LoweringError: an op cannot be written in scalars, or there are more operations than the limit.
        """
        found = dict(point)
        for node in topological(outputs):
            if node not in found:
                found[node] = self._value(node, [found[a] for a in node.args])
        return [found[node] for node in outputs]

    def add(self, operations: Dim) -> None:
        """Count operations, or the entries of an array that are only moved.

        Raises:
            LoweringError: there are more operations than the limit.
        """
        self.count += int(operations)
        if self.count > HEADROOM * self.limit:
            raise too_large(f"more than {HEADROOM * self.limit:,}", self.limit)

    def _value(self, node: Node, args: list[Any]) -> Any:
        if not isinstance(node.op, Scan):  # the steps of a scan are counted one by one
            self.add(max(flops(node.op, node), size(node.shape)))
        try:
            if isinstance(node.op, Source):
                return as_numbers(evaluate(node.op, ()))
            return as_numbers(entries(node.op, node, tuple(args), self))
        except LoweringError:
            raise
        except (SymadError, TypeError, ValueError, AttributeError) as error:
            raise LoweringError(
                f"the op {type(node.op).__name__} cannot be written out in scalars: {error}; {PYTHON} has it"
            ) from error


class TooManyOperations(LoweringError):
    """Written out, a function has more operations than the limit."""


def too_large(count: str, limit: int) -> TooManyOperations:
    """The error for functions with more operations than the limit."""
    return TooManyOperations(
        f"written out in scalars it has {count} operations, and the limit is {limit:,}; give smaller sizes, "
        f"or a larger limit by c_file(f, limit=...) or --limit; or take {PYTHON}, which keeps loops"
    )


def in_scalars(graph: Graph, limit: int = MAX_OPERATIONS, report: list[PassReport] | None = None) -> Graph:
    """A scalar graph whose inputs and outputs are the entries of the graph's, in row-major order.

    Args:
        graph: a graph whose sizes are all numbers.
        limit: the most scalar operations that the result may have.
        report: a line for each pass is appended to it.

    Raises:
        LoweringError: an op cannot be written in scalars, or there are more operations than the limit.
    """
    prepared = run_graph_passes(graph, ENTRY_GRAPH, report)
    inside = WritingOut(limit)
    inside.add(total_size(graph.input_nodes))
    point = {node: as_numbers(_entries_of_input(node)) for node in graph.input_nodes}
    wanted = [node for output in prepared.output_nodes for node in _computed(output)]
    values = iter(inside.values(wanted, point))
    outputs = tuple([_packed(output, values) for output in prepared.output_nodes])
    inputs = tuple(node for value in point.values() for node in as_nodes(value))
    made = Graph(inputs, outputs, graph.structure, graph.name)
    if report is not None:
        report.append(PassReport("scalars", "nodes", len(prepared.nodes), len(made.nodes), True))
    operations = sum(1 for node in made.nodes if node.args and not node.shape)
    if operations > limit:
        raise too_large(f"{operations:,}", limit)
    return made


def _entries_of_input(node: Node) -> Any:
    """A new input for each entry; a scalar stays itself, with the assumptions on it."""
    if not node.shape:
        return NodeNumber(node)
    title = short_name(symbol_of(node))
    made = np.empty(node.shape, dtype=object)
    for place in np.ndindex(made.shape):
        symbol = sympy.Dummy(f"{title}[{', '.join(map(str, place))}]", real=True)
        made[place] = NodeNumber(input_node(symbol))
    share_side(node, [entry.node for entry in made.ravel()])
    return made


def _computed(output: Node) -> tuple[Node, ...]:
    """The nodes that an output is computed from: the parts of a sparse matrix, else the output itself."""
    return output.args if isinstance(output.op, CompressedRows) else (output,)


def _packed(output: Node, values: Iterator[Array]) -> Node:
    """An output made of scalars, which are taken in order from the values of `_computed`."""
    op = output.op
    if not isinstance(op, CompressedRows):
        entries_ = as_nodes(next(values))
        return pack_scalars(entries_, output.shape) if output.shape else entries_[0]
    data = as_numbers(np.zeros(len(op.columns), dtype=int))
    for (places, _, adds), _arg in zip(op.writes, output.args, strict=True):
        part = next(values)
        flat = part.ravel() if isinstance(part, np.ndarray) else part
        data[places] = data[places] + flat if adds else flat
    stored = pack_scalars(as_nodes(data), (len(data),))
    rows, columns = map(int, op.shape)
    return compressed_rows((rows, columns), op.rows, op.columns, [(stored, np.arange(len(data)))])

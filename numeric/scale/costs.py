"""The cost of a distributed computation before it runs: chunks, operations, memory, traffic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import symad
from symad.core.arguments import bind as bind_arguments
from symad.core.arguments import flat_values
from symad.core.dims import bind
from symad.core.graph import Node
from symad.core.signatures import Tree
from symad.errors import ShapeError
from symad.numeric.scale.chunks import ShapeOnly, chunks_of, is_count
from symad.numeric.scale.distribute import Distributed

if TYPE_CHECKING:
    import sympy


@dataclass(frozen=True)
class Forecast:
    """The cost of one call. Bytes and operations are upper bounds computed from the graph, not measurements.

    Attributes:
        chunks: the number of parts.
        rows: the rows of the largest part.
        data: the bytes of all data that are read.
        block: the bytes of the data of the largest part.
        flops: the operations of all parts together.
        memory: the peak of live bytes on a worker that computes one part, including its data.
        result: the bytes of the values of one part, which a worker sends on.
        shared: the bytes that every worker receives: the inputs that all parts need.
        merges: the number of merges of the values of two parts.
        workers: the number of workers or threads.
    """

    chunks: int
    rows: int
    data: int
    block: int
    flops: int
    memory: int
    result: int
    shared: int
    merges: int
    workers: int

    @property
    def traffic(self) -> int:
        """Bytes between processes: shared inputs to every worker, at most one result for each merge."""
        return self.shared * self.workers + self.result * (self.merges + 1)

    def __str__(self) -> str:
        return "\n".join((
            f"{self.chunks} chunks of at most {self.rows} rows, {_bytes(self.block)} each, "
            f"{_bytes(self.data)} in all",
            f"{self.flops:.3g} operations, {self.flops / max(self.chunks, 1):.3g} a chunk",
            f"{_bytes(self.memory)} live on a worker with a chunk; {self.workers} workers",
            f"{_bytes(self.result)} a result, {self.merges} merges; traffic at most {_bytes(self.traffic)}",
        ))  # fmt: skip


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def plan(kernel: Distributed, **values: Tree) -> Forecast:
    """The cost of a call of a distributed function.

    Args:
        kernel: a distributed function from `symad.numeric.scale.distribute`.
        values: for every argument, by name, its array, or its shape as a tuple of ints; groups of arrays as
            in a call.

    Raises:
        EvaluationError: an input is missing, or a name is not an input's.
        ShapeError: the shapes do not fit.
    """
    arguments = kernel.graph.arguments
    given = flat_values(arguments, bind_arguments(kernel.graph.name, arguments, (), values))
    graph = kernel.graph.ungrouped()
    for argument, value in zip(graph.arguments, given, strict=True):
        if isinstance(value, tuple) and not all(is_count(length) or length == 0 for length in value):
            raise ShapeError(f"{argument.name}: the shape {value} has an entry that is no length")
    arrays = [
        ShapeOnly(v) if isinstance(v, tuple) else v if hasattr(v, "shape") else np.asarray(v) for v in given
    ]
    cut = kernel.plan.cut
    chunks = chunks_of(graph, cut, arrays, kernel.rows)
    sizes = chunks.sizes
    largest = {**sizes, cut.length: max(chunks.lengths)}
    local = kernel.plan.local
    operations = symad.flops(local)
    return Forecast(
        chunks=len(chunks.lengths),
        rows=max(chunks.lengths),
        data=sum(_node_bytes(graph.input_nodes[k], sizes) for k, _ in cut.axes),
        block=sum(_node_bytes(graph.input_nodes[k], largest) for k, _ in cut.axes),
        flops=sum(_number(operations, {**sizes, cut.length: rows}) for rows in chunks.lengths),
        memory=_number(symad.memory(local), largest),
        result=sum(_node_bytes(node, largest) for node in local.outputs),
        shared=sum(_node_bytes(n, sizes) for k, n in enumerate(graph.input_nodes) if cut.axis(k) is None),
        merges=len(chunks.lengths) - 1,
        workers=_workers(kernel),
    )


def _workers(kernel: Distributed) -> int:
    from symad.numeric.scale.engines import cores, thread_count

    if kernel.client is not None:
        return sum(kernel.client.nthreads().values())
    return cores() if kernel.scheduler else thread_count(kernel.threads)


def _number(expression: sympy.Expr, sizes: Mapping[sympy.Symbol, int]) -> int:
    return int(expression.subs(sizes)) if hasattr(expression, "subs") else int(expression)


def _node_bytes(node: Node, sizes: Mapping[sympy.Symbol, int]) -> int:
    return 8 * int(np.prod([int(bind(dim, sizes)) for dim in node.shape], dtype=np.int64))

"""What is compiled on the CPU: regions of rows, then elementwise chains, also in loops, and whole loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from symad.core.dims import Dim
from symad.core.graph import Graph, Node, topological
from symad.core.questions import Nodes
from symad.higher_order.scan import LoopOp
from symad.numeric.compiled_arrays.c.blas_calls import has_few_terms, matrix_product
from symad.numeric.compiled_arrays.c.c_body import REAL, has_vector_form
from symad.numeric.compiled_arrays.c.small_systems import is_small_system
from symad.numeric.compiled_arrays.strided_arrays import Ints
from symad.numeric.fusion.c_expressions import has_c_form
from symad.numeric.fusion.chains import as_products, fuse_chains, fuse_sums
from symad.numeric.fusion.nest import is_chain
from symad.numeric.fusion.rows import fuse_rows, open_fallbacks
from symad.numeric.passes.bodies import RowBlocks, with_body
from symad.numeric.passes.loops.sink_into_loop import sink
from symad.numeric.passes.memory_layout.pads import boxes
from symad.numeric.passes.rewriting import with_results
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum, permutes
from symad.ops.basic.shaping import Broadcast, Pad, Reshape, Slice
from symad.ops.basic.sources import ArrayConstant, Constant, Eye


def fuse(graph: Graph, dtype: str) -> Graph:
    """The graph with regions of rows and elementwise chains as single nodes."""
    return with_results(graph, _Fusion(REAL[dtype]).outputs(sink(graph.output_nodes, has_c_form)))


class _Fusion:
    """The fusion of one graph. Each body is fused once, so that the values of one loop keep sharing it."""

    def __init__(self, real: str) -> None:
        self.real = real
        self.bodies: dict[int, tuple[Graph, Graph]] = {}
        self.inside = 0

    def outputs(self, outputs: Sequence[Node]) -> Nodes:
        rows = fuse_rows(as_products(open_fallbacks(outputs)), dots=True)
        return fuse_sums(fuse_chains(rows, self.opened, self.alone), last_axes=True)

    def alone(self, node: Node) -> bool:
        """Whether a node stays unfused: it assembles an array from parts in place, or is no vector code."""
        return boxes(node) is not None or not has_vector_form(node, self.real, sines=not self.inside)

    def opened(self, node: Node, args: Nodes) -> Node:
        """The node over new arguments; the body of a loop is fused on its own."""
        op = node.op
        if isinstance(op, LoopOp):
            return Node.of(with_body(op, self.body(op.body), op.slices), args)
        if isinstance(op, RowBlocks):
            cut = op.axes, op.joined, op.length, op.k, op.columns, op.ends
            return Node.of(RowBlocks(self.body(op.body, repeated=False), *cut), args)
        return node.over(args)

    def body(self, body: Graph, repeated: bool = True) -> Graph:
        """The fused body of a loop over steps, or if not ``repeated`` over large blocks of rows."""
        if id(body) not in self.bodies:
            self.inside += repeated
            self.bodies[id(body)] = body, Graph(body.input_nodes, self.outputs(body.output_nodes))
            self.inside -= repeated
        return self.bodies[id(body)][1]


# ---- which loops are compiled: known sizes, and only ops that `LoopText` writes -------------------


MAX_WRITTEN = 256
"""The elements of a constant array that is written in C. Origin: a bound of the length of the text."""


def has_c_steps(body: Graph) -> bool:
    """Whether the steps of a loop can be written in C. What cannot, or not as fast, NumPy computes."""
    given = set(body.input_nodes)
    inner = (node for node in topological(body.output_nodes) if node not in given)
    return all(_are_known(node.shape) for node in given) and all(map(_is_written, inner))


def _is_written(node: Node) -> bool:
    op = node.op
    if not _are_known(node.shape):
        return False
    if isinstance(op, Slice):
        return _are_known((*op.start, *op.count))
    if isinstance(op, Pad):
        return _are_known(op.start)
    if isinstance(op, Einsum):
        shapes: list[Ints] = [tuple(map(int, a.shape)) for a in node.args]
        product = matrix_product(op.inputs, op.output, shapes)
        return permutes(op) or product is not None or has_few_terms(op.inputs, shapes)
    if is_chain(op) or (isinstance(op, ElementwiseOp) and has_c_form(node)):
        return all(a.shape in ((), node.shape) for a in node.args)
    if isinstance(op, ArrayConstant):
        return (
            op.array.size <= MAX_WRITTEN and op.array.dtype.kind in "fi" and bool(np.isfinite(op.array).all())
        )
    return isinstance(op, (Broadcast, Reshape, Stack, Concatenate, Constant, Eye)) or is_small_system(node)


def _are_known(sizes: Iterable[Dim]) -> bool:
    return all(isinstance(size, int) for size in sizes)

"""The choice of compiled kernels on the CPU: regions of rows, then elementwise chains, also in loops."""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.graph import Graph, Node
from symad.core.questions import Nodes
from symad.higher_order.scan import Scan
from symad.numeric.compiled_arrays.c.c_body import REAL, has_vector_form
from symad.numeric.fusion.c_expressions import has_c_form
from symad.numeric.fusion.chains import as_products, fuse_chains, fuse_sums
from symad.numeric.fusion.rows import fuse_rows, open_fallbacks
from symad.numeric.passes.block_loop import RowBlocks
from symad.numeric.passes.loop import LoopValue, with_body
from symad.numeric.passes.loops.sink_into_loop import sink
from symad.numeric.passes.memory_layout.pads import boxes
from symad.numeric.passes.rewriting import over, with_results


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
        if isinstance(op, (Scan, LoopValue)):
            return Node.of(with_body(op, self.body(op.body), op.slices), args)
        if isinstance(op, RowBlocks):
            cut = op.axes, op.joined, op.length, op.k, op.columns, op.ends
            return Node.of(RowBlocks(self.body(op.body, repeated=False), *cut), args)
        return over(node, args)

    def body(self, body: Graph, repeated: bool = True) -> Graph:
        """The fused body of a loop over steps, or if not ``repeated`` over large blocks of rows."""
        if id(body) not in self.bodies:
            self.inside += repeated
            self.bodies[id(body)] = body, Graph(body.input_nodes, self.outputs(body.output_nodes))
            self.inside -= repeated
        return self.bodies[id(body)][1]

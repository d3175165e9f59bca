"""The kernels of the device: regions of rows, then elementwise chains, also in loops."""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.graph import Graph, Node
from symad.core.questions import Nodes
from symad.gpu.passes.contractions import two_at_a_time
from symad.gpu.passes.integers import needed_as_integers
from symad.gpu.passes.joined_sums import joined_sums
from symad.gpu.passes.known_rows import known_rows
from symad.gpu.passes.row_programs import row_programs
from symad.gpu.passes.scaled_sums import scaled_sums
from symad.gpu.passes.shared_products import shared_products
from symad.higher_order.scan import Scan
from symad.numeric.fusion.chains import fuse_chains, fuse_sums
from symad.numeric.fusion.rows import fuse_rows
from symad.numeric.passes.memory_layout.joined_pads import join_pads
from symad.numeric.passes.rewriting import over, with_results

ROWS = (16, 12)
"""The most arrays that a row kernel reads and writes: a norm with the ops before it and residuals fits."""


def fuse(graph: Graph) -> Graph:
    """The graph with its elementwise chains, also those in the bodies of scans, as nests."""
    made = joined_sums(shared_products(row_programs(known_rows(graph.output_nodes))))
    joined = join_pads(Graph(graph.input_nodes, made)).output_nodes
    return with_results(graph, fuse_outputs(joined))


def fuse_outputs(outputs: Sequence[Node]) -> Nodes:
    """Outputs with their chains fused; arithmetic on row numbers is left out, as it needs 64-bit integers."""
    outputs = two_at_a_time(outputs)
    integers = needed_as_integers(outputs, None)
    rows = fuse_rows(outputs, alone=integers.__contains__, most=ROWS)
    integers = needed_as_integers(rows, None)
    return scaled_sums(fuse_sums(fuse_chains(rows, _opened, alone=integers.__contains__), single=True))


def _opened(node: Node, args: Nodes) -> Node:
    """The node over new arguments; the body of a scan is fused separately."""
    if isinstance(node.op, Scan):
        body = Graph(node.op.body.input_nodes, fuse_outputs(node.op.body.output_nodes))
        return Node.of(Scan(body, node.op.slices), args)
    return over(node, args)

"""Sparse matrices whose entries are parts of larger arrays, which are computed as spans of memory."""

from __future__ import annotations

from symad.core.graph import Graph
from symad.numeric.passes.memory_layout.cancel_pads import cut_sums
from symad.numeric.passes.memory_layout.flat_stencils import flatten_stencils
from symad.numeric.passes.memory_layout.memory_spans import in_spans
from symad.ops.sparse.csr import CompressedRows


def lay_out_sparse(graph: Graph) -> Graph:
    """The graph with stencils on flat arrays where possible, else on the spans that the results read."""
    if not any(isinstance(node.op, CompressedRows) for node in graph.output_nodes):
        return graph
    flat = flatten_stencils(graph)
    return flat if flat is not graph else in_spans(cut_sums(graph))

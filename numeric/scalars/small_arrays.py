"""Functions of few numbers in arrays: as compiled scalars, their calls cost less than one NumPy function."""

from __future__ import annotations

from symad.core.contents import inner_graphs
from symad.core.dims import is_concrete, size
from symad.core.graph import Graph, Node
from symad.core.questions import flops
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.basic.sources import ArrayConstant
from symad.ops.sparse.csr import CompressedRows

MAX_ENTRIES = 64
"""The most elements of all arguments and results together.

Origin: it bounds the length of the C function.
"""

MAX_OPERATIONS = 400
"""The most operations of such a function.

Origin: gcc 12 compiles 4,000 operations a second at -O1, so that this bounds it to 0.1 s.
"""


def is_small(graph: Graph) -> bool:
    """Whether a graph computes few numbers: few elements, few operations, no loops, and no index to check."""
    if not all(is_concrete(node.shape) for node in (*graph.input_nodes, *graph.nodes)):
        return False
    if sum(map(_stored, (*graph.input_nodes, *graph.output_nodes))) > MAX_ENTRIES:
        return False
    work = sum(max(int(flops(node.op, node)), _stored(node)) for node in graph.nodes)
    return work <= MAX_OPERATIONS and not any(inner_graphs(n.op) or _looks_up(n) for n in graph.nodes)


def _stored(node: Node) -> int:
    """The number of elements of an array; of a sparse matrix, of those that it stores."""
    return len(node.op.columns) if isinstance(node.op, CompressedRows) else int(size(node.shape))


def _looks_up(node: Node) -> bool:
    """Whether an index is computed: NumPy raises an error if it is out of range."""
    if not isinstance(node.op, (Gather, ScatterAdd)):
        return False
    return not isinstance(node.args[isinstance(node.op, Gather)].op, ArrayConstant)

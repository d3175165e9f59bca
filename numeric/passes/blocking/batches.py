"""A batch is computed some rows at a time, so that intermediate values stay in the cache.

Functions of one point that are mapped over a batch have one axis through the whole graph, often of unknown
length. If every op acts row by row along it, and rows go through elementwise functions, slices, padding and
sums, the work becomes a loop over blocks of rows. Sums over the batch are accumulated over the blocks.
"""

from __future__ import annotations

from math import prod

from symad.core.dims import Dim, dim_symbols, is_concrete, size
from symad.core.graph import Graph, Node, Op, rebuild, topological
from symad.higher_order.scan import Local
from symad.numeric.passes.blocking.causal_blocks import Misaligned, argument_axes
from symad.numeric.passes.blocking.row_blocks import BLOCK
from symad.numeric.passes.bodies import ROWS, RowBlocks
from symad.numeric.passes.memory_layout.memory_spans import in_spans
from symad.numeric.passes.memory_layout.pads import overlay_pads
from symad.numeric.passes.rewriting import with_results
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Pad, Slice
from symad.ops.basic.sources import ArrayConstant, Constant, Dimension, Input

MIN_ELEMENTS = 2**16
"""The number of elements from which an input of known length is cut into blocks.

Blocks take 1.0 times as long as whole arrays at 2**16 elements, 0.9 at 2**17 (bench_thresholds.py, "chains").
"""

MIN_FUNCTIONS = 2
"""A graph with fewer elementwise operations along the batch is left as it is.

On 2**18 rows of eight elements one takes 0.80 of the time, two 0.82, three 0.61, six 0.59; on 2**20 numbers
one takes 1.04 to 1.13 (bench_layout_thresholds.py, "functions along a batch").
"""

FIXED = (Constant, ArrayConstant, Dimension)


def in_batches(graph: Graph) -> Graph:
    """The graph with its work along a batch in blocks of rows."""
    unknown: list[Dim] = sorted(graph.dims, key=str)
    known = [n.shape for n in graph.input_nodes if n.shape and is_concrete(n.shape)]
    long = [dims[0] for dims in known if size(dims) >= MIN_ELEMENTS]
    for batch in dict.fromkeys([*unknown, *long]):
        found = _rows(graph, batch)
        if found is not None:
            return with_results(graph, _blocked(graph, batch, *found))
    return graph


def _rows(graph: Graph, batch: Dim) -> tuple[set[Node], set[Node]] | None:
    """The nodes with a row for each batch member, and the sums over the batch; None if an op mixes rows."""
    rows: set[Node] = set()
    sums: set[Node] = set()
    after: set[Node] = set()
    for node in graph.nodes:
        args = {*node.args}
        if node.shape[:1] == (batch,):
            if args & after or not _acts_by_rows(node, rows):
                return None
            rows.add(node)
        elif args & rows:
            if not _sums_rows(node, rows):
                return None
            sums.add(node)
            after.add(node)
        elif args & after:
            after.add(node)
        if dim_symbols(node.shape[node in rows :]) & dim_symbols((batch,)):
            return None
    functions = sum(isinstance(node.op, ElementwiseOp) for node in rows)
    return (rows, sums) if functions >= MIN_FUNCTIONS else None


def _acts_by_rows(node: Node, rows: set[Node]) -> bool:
    """Whether each row of a node is computed from the same row of its arguments, at little cost."""
    op = node.op
    if any(not isinstance(d, int) for d in node.shape[1:]) or 8 * prod(node.shape[1:]) > BLOCK:
        return False
    if isinstance(op, Input):
        return True
    if isinstance(op, (Slice, Pad)):
        return op.start[0] == 0 and op.step[0] == 1 and node.args[0] in rows
    if isinstance(op, (Concatenate, Stack)):
        return op.axis > 0 and rows.issuperset(node.args)
    if isinstance(op, Einsum) and not rows.issuperset(node.args):
        return False  # a matrix product is limited by arithmetic, not by memory
    if not isinstance(op, (ElementwiseOp, Broadcast, Einsum)):
        return False
    try:
        axes = argument_axes(node, 0)
    except Misaligned:
        return False
    return all((axis == 0) == (a in rows) for a, axis in zip(node.args, axes, strict=True))


def _sums_rows(node: Node, rows: set[Node]) -> bool:
    """Whether a node is a sum over the rows of all of its arguments."""
    op = node.op
    if not isinstance(op, Einsum) or not rows.issuperset(node.args):
        return False
    label = op.inputs[0][0]
    return label not in op.output and all(part.index(label) == 0 for part in op.inputs if label in part)


def _blocked(graph: Graph, batch: Dim, rows: set[Node], sums: set[Node]) -> tuple[Node, ...]:
    """The outputs, with the row-by-row nodes and the sums as values of a loop."""
    order = graph.nodes
    results = [node for node in order if node in sums or (node in rows and node in graph.output_nodes)]
    results = [node for node in results if not isinstance(node.op, Input)]
    inner = topological(results)
    outer = [node for node in inner if not node.args and not isinstance(node.op, FIXED)]
    outer.sort(key=lambda node: node not in rows)  # arguments that are cut come first
    shapes = {node: (ROWS, *node.shape[1:]) if node in rows else node.shape for node in outer}
    body = {node: Node.of(Local(k, shapes[node])) for k, node in enumerate(outer)}
    for node in inner:
        if node not in body:
            op = _of_block(node.op) if node in rows else node.op
            body[node] = Node.of(op, tuple(body[a] for a in node.args))
    inside = Graph(tuple(body[node] for node in outer), tuple(body[node] for node in results))
    inside = overlay_pads(in_spans(inside))
    axes = tuple(0 for node in outer if node in rows)
    joined = tuple(0 if node in rows else None for node in results)
    values: dict[Node, Node] = {
        node: Node.of(RowBlocks(inside, axes, joined, batch, k), tuple(outer))
        for k, node in enumerate(results)
    }
    return tuple(rebuild(graph, values))


def _of_block(op: Op) -> Op:
    """The same operation on a block of rows."""
    if isinstance(op, Slice):
        return Slice(op.start, (ROWS, *op.count[1:]), op.step)
    if isinstance(op, Pad):
        return Pad(op.start, op.step, (ROWS, *op.shape[1:]))
    if isinstance(op, Broadcast):
        return Broadcast((ROWS, *op.shape[1:]), op.axes)
    return op

"""The kernels of the device: contractions, sums, regions of rows, and elementwise chains, also in loops.

- A contraction has two operands, each label in both or in the result. It is then a stack of matrix products,
  which cuBLAS computes in one call, or an elementwise product whose sum is one kernel.
- Sums over rows that no other work waits for, such as the gradients of all biases, are one kernel.
- A sum and the operations on its value, such as the division by a count, are one kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symad.core.dims import Shape
from symad.core.graph import Graph, Node, Op, op_of, rebuild, shape, topological
from symad.core.questions import Nodes, Values, definition, evaluate
from symad.gpu.passes.integers import needed_as_integers
from symad.gpu.passes.known_rows import known_rows
from symad.gpu.passes.row_programs import row_programs
from symad.gpu.passes.shared_products import shared_products
from symad.higher_order.scan import Local, Scan
from symad.numeric.fusion.c_expressions import has_c_form
from symad.numeric.fusion.chains import fuse_chains, fuse_sums
from symad.numeric.fusion.nest import Nest, is_chain, total_of, with_sum
from symad.numeric.fusion.rows import fuse_rows
from symad.numeric.passes.algebra.sums_of_products import ordered
from symad.numeric.passes.bodies import body_of, read_once
from symad.numeric.passes.memory_layout.pads import join_pads
from symad.numeric.passes.rewriting import with_results
from symad.ops.basic.arithmetic import ElementwiseOp, mul
from symad.ops.basic.contraction import Einsum, contract
from symad.ops.basic.shaping import broadcast_axes
from symad.ops.elementwise.selection import Condition

# ---- contractions --------------------------------------------------------------------------------

# Every contraction becomes a stack of matrix products, which cuBLAS computes in one call, or an elementwise
# product whose sum is one kernel.


Labels = tuple[int, ...]


def two_at_a_time(outputs: Sequence[Node]) -> Nodes:
    """The outputs with contractions of this form only."""
    return rebuild(rebuild(outputs, {}, _ordered), {}, _written)


def _ordered(node: Node, args: Nodes) -> Node | None:
    several = isinstance(node.op, Einsum) and len(args) > 2
    return ordered(op_of(node, Einsum).inputs, op_of(node, Einsum).output, args) if several else None


def _written(node: Node, args: Nodes) -> Node | None:
    op = node.op
    if not isinstance(op, Einsum) or len(args) != 2:
        return None
    one, other = op.inputs
    left, right = _own_sums(one, args[0], (*other, *op.output)), _own_sums(other, args[1], (*one, *op.output))
    return _product(left, right, op.output)


def _own_sums(labels: Labels, node: Node, wanted: Labels) -> tuple[Labels, Node]:
    """An operand without repeated labels, summed over those that are not wanted."""
    kept = tuple(dict.fromkeys(label for label in labels if label in wanted))
    return (labels, node) if kept == labels else (kept, contract([labels], kept, node))


def _product(left: tuple[Labels, Node], right: tuple[Labels, Node], output: Labels) -> Node:
    """A contraction of two operands; a sum of elementwise products if neither has a label of its own."""
    (first, a), (second, b) = left, right
    if set(first) | set(second) == set(output) and len(set(output)) == len(output):
        sizes = dict(zip((*first, *second), (*a.shape, *b.shape), strict=True))
        shape = tuple(sizes[label] for label in output)
        return mul(*(_spread(labels, node, output, shape) for labels, node in (left, right)))
    if set(first) != set(second) or set(first) == set(output):
        return contract([first, second], output, a, b)
    aligned = b if first == second else contract([second], first, b)
    return contract([first], output, mul(a, aligned))


def _spread(labels: Labels, node: Node, output: Labels, shape: Shape) -> Node:
    """An operand, broadcast along the labels that it lacks."""
    order = tuple(label for label in output if label in labels)
    axes = tuple(output.index(label) for label in order)
    return broadcast_axes(contract([labels], order, node), shape, axes)


# ---- sums that nothing waits for -----------------------------------------------------------------


AXES = 3
"""The most axes that are kept, and that are summed, of one array."""


@dataclass(frozen=True, eq=False)
class Sums(Op):
    """Value k: the sum of argument k over all axes except ``kept[k]``, which stay in this order."""

    kept: tuple[tuple[int, ...], ...]
    k: int
    several = ("k",)


@shape(Sums)
def sums_shape(op: Sums, args: Nodes) -> Shape:
    """The lengths of the axes that are kept."""
    return tuple(args[op.k].shape[axis] for axis in op.kept[op.k])


@evaluate.dispatch
def sums_evaluate(op: Sums, values: Values) -> np.ndarray:
    """The sum, by NumPy."""
    array, kept = np.asarray(values[op.k]), op.kept[op.k]
    others = tuple(axis for axis in range(array.ndim) if axis not in kept)
    return array.sum(axis=others).transpose([sorted(kept).index(axis) for axis in kept])


@definition.dispatch
def sums_definition(op: Sums, y: Node) -> Node:
    """The sum of one argument."""
    arg = y.args[op.k]
    return contract([tuple(range(len(arg.shape)))], op.kept[op.k], arg)


def joined_sums(outputs: Sequence[Node]) -> Nodes:
    """The outputs with their sums over rows, if there are several, as values of one op."""
    outputs = _at_once(outputs)
    read = {a for node in topological(outputs) for a in node.args}
    found = [node for node in dict.fromkeys(outputs) if node not in read and _is_sum(node)]
    if len(found) < 2:
        return tuple(outputs)
    kept = tuple(tuple(op_of(n, Einsum).inputs[0].index(x) for x in op_of(n, Einsum).output) for n in found)
    args = tuple(node.args[0] for node in found)
    return rebuild(outputs, {node: Node.of(Sums(kept, k), args) for k, node in enumerate(found)})


def _at_once(outputs: Sequence[Node]) -> Nodes:
    """The outputs with sums of sums, which nothing else reads, as one sum."""
    alone = read_once(outputs)

    def make(node: Node, args: Nodes) -> Node | None:
        made = node.over(args)
        if not (_is_sum(made) and _is_sum(args[0]) and node.args[0] in alone):
            return made
        inner, outer = op_of(args[0], Einsum), op_of(made, Einsum)
        names = dict(zip(outer.inputs[0], inner.output, strict=True))
        return contract(inner.inputs, [names[label] for label in outer.output], *args[0].args)

    return rebuild(outputs, {}, make)


def _is_sum(node: Node) -> bool:
    op = node.op
    if not isinstance(op, Einsum) or len(node.args) != 1 or not op.output:
        return False
    (labels,) = op.inputs
    few = len(op.output) <= AXES and 0 < len(labels) - len(op.output) <= AXES
    return few and len(set(labels)) == len(labels)


# ---- a sum and what follows it -------------------------------------------------------------------


def scaled_sums(outputs: Sequence[Node]) -> Nodes:
    """The outputs with sums and the operations on their values as nests; sums must be fused before."""
    alone = read_once(outputs)

    def make(node: Node, args: Nodes) -> Node | None:
        then = _then(node.over(args))
        if then is None or node.args[0] not in alone or args[0].shape:
            return None
        (total,) = args
        if isinstance(total.op, Nest) and total_of(total.op) is total.op.body.output_nodes[0]:
            return Node.of(_with(total.op, then), total.args)
        whole = isinstance(total.op, Einsum) and len(total.args) == 1
        if not whole or len(set(op_of(total, Einsum).inputs[0])) < len(total.args[0].shape):
            return None
        local = Node.of(Local(0, total.args[0].shape))
        return Node.of(_with(with_sum(Graph((local,), (local,)), range(len(local.shape))), then), total.args)

    return rebuild(outputs, {}, make)


def _with(total: Nest, then: Graph) -> Nest:
    """The nest of a sum, followed by operations on it."""
    made = rebuild(then.output_nodes, {then.input_nodes[0]: total.body.output_nodes[0]})
    return Nest(Graph(total.body.input_nodes, made), 0, total.full, total.axes)


def _then(node: Node) -> Graph | None:
    """The computation of a kernel on one scalar, as a graph; None for other nodes."""
    if node.shape or len(node.args) != 1:
        return None
    if is_chain(node.op):
        return node.op.body if len(node.op.body.output_nodes) == 1 else None
    if not isinstance(node.op, ElementwiseOp) or isinstance(node.op, Condition) or not has_c_form(node):
        return None
    return body_of(node)


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
    return node.over(args)

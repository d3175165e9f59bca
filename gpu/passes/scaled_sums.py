"""A sum and the operations on its value, such as the division by a count, as one kernel."""

from __future__ import annotations

from collections.abc import Sequence

from symad.core.graph import Graph, Node, op_of, rebuild
from symad.core.questions import Nodes
from symad.higher_order.scan import Local
from symad.numeric.fusion.c_expressions import has_c_form
from symad.numeric.fusion.nest import Nest, is_chain, total_of, with_sum
from symad.numeric.passes.bodies import body_of, read_once
from symad.numeric.passes.rewriting import over, rewritten
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum
from symad.ops.elementwise.selection import Condition


def scaled_sums(outputs: Sequence[Node]) -> Nodes:
    """The outputs with sums and the operations on their values as nests; sums must be fused before."""
    alone = read_once(outputs)

    def make(node: Node, args: Nodes) -> Node | None:
        then = _then(over(node, args))
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

    return rewritten(outputs, make)


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

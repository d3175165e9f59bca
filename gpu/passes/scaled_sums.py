"""A sum and the operations on its value, such as the division by a count, as one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symad.core.dims import Shape
from symad.core.graph import Graph, Node, Op, op_of, rebuild, shape
from symad.core.questions import Array, Nodes, Values, definition, evaluate
from symad.higher_order.scan import Local
from symad.numbers.values import unchecked
from symad.numeric.fusion.c_expressions import has_c_form
from symad.numeric.fusion.chains import Fused, FusedSum
from symad.numeric.passes.bodies import body_of, read_once
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.contraction import Einsum, contract
from symad.ops.elementwise.selection import Condition


@dataclass(frozen=True, eq=False)
class SumThen(Op):
    """``then`` of the sum of ``body`` over all axes; both are elementwise graphs with `Local` inputs."""

    body: Graph
    then: Graph


@shape(SumThen)
def sum_then_shape(op: SumThen, args: Nodes) -> Shape:
    """A scalar."""
    return ()


@evaluate.dispatch
def sum_then_evaluate(op: SumThen, values: Values) -> Array:
    """The value, by NumPy."""
    (mapped,) = unchecked(op.body.output_nodes, dict(zip(op.body.input_nodes, values, strict=True)))
    (made,) = unchecked(op.then.output_nodes, {op.then.input_nodes[0]: mapped.sum()})
    return made


@definition.dispatch
def sum_then_definition(op: SumThen, y: Node) -> Node:
    """The sum of the body, then the operations on it."""
    (mapped,) = rebuild(op.body.output_nodes, dict(zip(op.body.input_nodes, y.args, strict=True)))
    total = contract([tuple(range(len(mapped.shape)))], (), mapped)
    return rebuild(op.then.output_nodes, {op.then.input_nodes[0]: total})[0]


def scaled_sums(outputs: Sequence[Node]) -> Nodes:
    """The outputs with sums and the operations on their values as `SumThen`; chains must be fused before."""
    alone = read_once(outputs)

    def make(node: Node, args: Nodes) -> Node:
        made = node if args == node.args else Node.of(node.op, args)
        then = _then(made)
        if then is None or node.args[0] not in alone:
            return made
        (total,) = args
        if isinstance(total.op, FusedSum) and not total.shape:
            return Node.of(SumThen(total.op.body, then), total.args)
        whole = isinstance(total.op, Einsum) and len(total.args) == 1 and not total.shape
        if not whole or len(set(op_of(total, Einsum).inputs[0])) < len(total.args[0].shape):
            return made
        local = Node.of(Local(0, total.args[0].shape))
        return Node.of(SumThen(Graph((local,), (local,)), then), total.args)

    return rebuild(outputs, {}, make)


def _then(node: Node) -> Graph | None:
    """The computation of a kernel on one scalar, as a graph; None for other nodes."""
    if node.shape or len(node.args) != 1:
        return None
    if isinstance(node.op, Fused):
        return node.op.body if len(node.op.body.output_nodes) == 1 else None
    if not isinstance(node.op, ElementwiseOp) or isinstance(node.op, Condition) or not has_c_form(node):
        return None
    return body_of(node)

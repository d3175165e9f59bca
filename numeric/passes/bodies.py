"""Ops that stand for a part of the graph: one output of a body, whose inputs are the op's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from symad.core.contents import readers
from symad.core.dims import Shape
from symad.core.graph import Graph, Node, Op, rebuild, topological
from symad.core.questions import Array, Nodes, Values, definition, evaluate
from symad.higher_order.scan import Local
from symad.numbers.values import unchecked


@dataclass(frozen=True, eq=False)
class BodyOp(Op):
    """Output ``index`` of a ``body``, whose inputs are `Local` 0, 1, 2, ..."""

    body: Graph
    index: int
    several = ("index",)


def body_shape(op: BodyOp, args: Nodes) -> Shape:
    """The shape of this output; each kind of body registers it."""
    return op.body.output_nodes[op.index].shape


@evaluate.dispatch
def body_evaluate(op: BodyOp, values: Values) -> Array:
    """The value of the output, from the values of the arguments."""
    return body_values(op.body, values)[op.index]


@definition.dispatch
def body_definition(op: BodyOp, y: Node) -> Node:
    """The output as nodes of the graph itself."""
    return body_nodes(op.body, y.args)[op.index]


def body_values(body: Graph, values: Values) -> list[Array]:
    """The outputs of a body at the values of its inputs."""
    return unchecked(body.output_nodes, dict(zip(body.input_nodes, values, strict=True)))


def body_nodes(body: Graph, args: Nodes) -> Nodes:
    """The outputs of a body, applied to other nodes."""
    return rebuild(body.output_nodes, dict(zip(body.input_nodes, args, strict=True)))


def body_of(node: Node) -> Graph:
    """One node as a body, whose inputs are its distinct arguments."""
    local = {arg: Node.of(Local(k, arg.shape)) for k, arg in enumerate(dict.fromkeys(node.args))}
    return Graph(tuple(local.values()), (Node.of(node.op, tuple([local[arg] for arg in node.args])),))


def read_once(outputs: Sequence[Node]) -> set[Node]:
    """The nodes that one other node reads, and that are no outputs."""
    found = readers(topological(outputs))
    return {node for node, users in found.items() if len(users) == 1} - set(outputs)

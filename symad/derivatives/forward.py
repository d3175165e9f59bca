"""Forward mode: tangents pushed through a graph, node by node. The rules stand with the ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symad.core.gc_pause import without_collecting
from symad.core.graph import ZERO, Graph, Node, Origin, Tangent, TupleOf, topological
from symad.core.questions import jvp
from symad.derivatives.branch_masks import use_conditions
from symad.derivatives.wrt import (
    input_names,
    packing_of,
    tangent_inputs,
    value_labels,
    value_part,
    with_directions,
)
from symad.derivatives.wrt import select as select_inputs
from symad.ops.arrays.shaping import broadcast_to
from symad.ops.arrays.sources import constant
from symad.ops.elementwise.arithmetic import ElementwiseOp
from symad.ops.elementwise.selection import select
from symad.stable import smooth
from symad.tracing import as_graph


def push(outputs: Sequence[Node], tangents: Mapping[Node, Tangent]) -> list[Tangent]:
    """The tangents of the outputs, from the tangents of some nodes (usually inputs).

    t_k = Σ_parents ∂f_k · t_parent in topological order. Nodes that do not depend on a tangent
    are never visited by a rule; nodes used under a condition have their tangents masked by it.
    """
    outputs = smooth(outputs, tangents)
    order = topological(outputs)
    dots = push_along(order, tangents, use_conditions(order, outputs))
    return [dots.get(o, ZERO) for o in outputs]


def push_along(
    order: Sequence[Node], tangents: Mapping[Node, Tangent], conditions: Mapping[Node, Node]
) -> dict[Node, Node]:
    """The tangents of all nodes of an order (arguments first) that depend on those given."""
    dots: dict[Node, Node] = {n: t for n, t in tangents.items() if isinstance(t, Node)}
    for node in order:
        if node in tangents:
            continue
        entering: tuple[Tangent, ...] = tuple([dots.get(a, ZERO) for a in node.args])
        if all(t is ZERO for t in entering):
            continue
        condition = conditions.get(node)
        if condition is not None and _masks_entering(condition, node):
            entering = tuple(mask(condition, t) for t in entering)
        y_dot = jvp(node.op, node, entering)
        if isinstance(y_dot, Node):
            dots[node] = y_dot
    return dots


def _masks_entering(condition: Node, node: Node) -> bool:
    """Whether a condition on the elements of a node is one on the elements of its arguments too."""
    return not node.op.linear and (not condition.shape or isinstance(node.op, ElementwiseOp))


def mask(condition: Node, tangent: Tangent) -> Tangent:
    """The tangent where the condition holds, 0 elsewhere."""
    return select(condition, tangent, constant(0)) if isinstance(tangent, Node) else ZERO


def dense(tangent: Tangent, like: Node) -> Node:
    """A tangent as a node: structural zeros become zeros of the shape of ``like``."""
    return tangent if isinstance(tangent, Node) else broadcast_to(constant(0), like.shape)


@without_collecting
def pushforward(f: Any, wrt: Any = None, inputs: Any = None) -> Graph:
    """The Jacobian-vector product: (x..., x_dot...) -> (y..., y_dot...).

    y_dot = Σ_k (∂f/∂x_k) x_k_dot over the entries of ``wrt`` (all inputs by default), in the shapes of
    the outputs. Cost: at most about three evaluations of ``f``, in constant memory. ``inputs`` as in `trace`.
    """
    graph = as_graph(f, wrt, inputs)
    selection = select_inputs(graph, wrt)
    nodes = selection.nodes
    dots = tangent_inputs(nodes, "dot", input_names(graph))
    y_dots = push(graph.output_nodes, dict(zip(nodes, dots, strict=True)))
    outputs = graph.output_nodes + tuple(
        dense(t, y) for t, y in zip(y_dots, graph.output_nodes, strict=True)
    )
    values = value_labels(graph)
    origin = Origin((*values, *(f"{name}_dot" for name in values)))
    structure, name = TupleOf((None,) * len(outputs)), f"{graph.name}_pushforward"
    packing = packing_of(graph, selection, (value_part(graph), value_part(graph)), len(dots))
    return with_directions(graph, dots, selection, "dot", outputs, structure, name, origin, "", packing)

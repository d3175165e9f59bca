"""Forward mode on nodes: tangents pushed through a graph. The rules are in the files of the ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from symad.core.graph import ZERO, Node, Tangent
from symad.core.questions import jvp
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import constant
from symad.ops.elementwise.selection import select
from symad.stable import smooth
from symad.transforms.branch_masks import use_conditions


def push(outputs: Sequence[Node], tangents: Mapping[Node, Tangent]) -> list[Tangent]:
    """The tangents of the outputs, from the tangents of some nodes (usually inputs).

    t_k = Σ_parents ∂f_k · t_parent in topological order. Rules are called only for nodes that depend on a
    tangent; nodes used under a condition have their tangents masked by it.
    """
    outputs, order = smooth(outputs, tangents)
    dots = push_along(order, tangents, use_conditions(order, outputs))
    return [dots.get(o, ZERO) for o in outputs]


def push_along(
    order: Sequence[Node], tangents: Mapping[Node, Tangent], conditions: Mapping[Node, Node]
) -> dict[Node, Node]:
    """The tangents of all nodes of an order (arguments first) that depend on those given."""
    dots: dict[Node, Node] = {n: t for n, t in tangents.items() if isinstance(t, Node)}
    known = dots.keys()
    for node in order:
        if node in tangents or known.isdisjoint(node.args):
            continue
        entering: tuple[Tangent, ...] = tuple([dots.get(a, ZERO) for a in node.args])
        condition = conditions.get(node)
        if condition is not None and masks_entering(condition, node):
            entering = tuple(mask(condition, t) for t in entering)
        y_dot = jvp(node.op, node, entering)
        if isinstance(y_dot, Node):
            dots[node] = y_dot
    return dots


def masks_entering(condition: Node, node: Node) -> bool:
    """True if a condition on the elements of a node is also one on the elements of its arguments."""
    return not node.op.linear and (not condition.shape or isinstance(node.op, ElementwiseOp))


def mask(condition: Node, tangent: Tangent) -> Tangent:
    """The tangent where the condition holds, 0 elsewhere."""
    return select(condition, tangent, constant(0)) if isinstance(tangent, Node) else ZERO


def dense(tangent: Tangent, like: Node) -> Node:
    """A tangent as a node: structural zeros become zeros of the shape of ``like``."""
    return tangent if isinstance(tangent, Node) else broadcast_to(constant(0), like.shape)

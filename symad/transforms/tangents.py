"""Forward mode on nodes: tangents pushed through a graph. The rules are in the files of the ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from symad.core.graph import ZERO, Node, Tangent
from symad.core.questions import jvp
from symad.ops.basic.arithmetic import add_tangents
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import constant
from symad.ops.elementwise.radius import RADIAL, parts, slopes_of
from symad.stable import smooth
from symad.transforms.guards import Guards, mask
from symad.transforms.radii import Radial, weighted
from symad.transforms.radius_limits import with_limits
from symad.transforms.radius_powers import with_joined_powers


def push(
    outputs: Sequence[Node], tangents: Mapping[Node, Tangent], transposed: bool = False
) -> list[Tangent]:
    """The tangents of the outputs, from the tangents of some nodes (usually inputs).

    t_k = Σ_parents ∂f_k · t_parent in topological order. Rules are called only for nodes that depend on a
    tangent; where a slope is not used, or its tangent is 0, their product is masked.

    Args:
        outputs: nodes.
        tangents: of some nodes.
        transposed: true if the result is transposed. The slopes of a function of a radius are then multiplied
            with each other first anyway; see `radii`.
    """
    outputs, order = prepared(outputs, tangents)
    return push_along(order, tangents, Guards.of(order, outputs), outputs, not transposed)


def prepared(
    outputs: Sequence[Node], roots: Mapping[Node, Tangent]
) -> tuple[tuple[Node, ...], Sequence[Node]]:
    """The outputs in forms whose derivatives are right, and all their nodes, arguments first."""
    outputs, order = with_joined_powers(*smooth(outputs, roots), roots)
    return with_limits(outputs, order, roots, push_along)


def push_along(
    order: Sequence[Node],
    tangents: Mapping[Node, Tangent],
    guards: Guards,
    outputs: Sequence[Node],
    by_radii: bool = True,
) -> list[Tangent]:
    """The tangents of the outputs, through those nodes of an order (arguments first) that depend on them."""
    dots: dict[Node, Tangent] = {n: t for n, t in tangents.items() if isinstance(t, Node)}
    radial = Radial(dots, guards.uses, guards.slopes)
    known, found = dots.keys(), guards.along(order, dict(dots))
    for node in order:
        if node in tangents or (
            known.isdisjoint(node.args) and radial.multiples.keys().isdisjoint(node.args)
        ):
            continue
        guard = found.get(node)
        below = parts(node) if type(node.op) in RADIAL else ()
        if below:
            used = guard.entering[0] if guard and len(below) == 1 else guards.uses.get(node)
            inner = [mask(None if used is None else p.spread(used), radial.whole(p.node)) for p in below]
            if by_radii:
                radial.start(node, inner)
                continue
            products = zip(below, slopes_of(node), inner, strict=True)
            y_dot = add_tangents([weighted(*product) for product in products])
            if isinstance(y_dot, Node):
                dots[node] = y_dot
            continue
        rule = partial(jvp, node.op, node) if guard is None else partial(guard.push, node)
        if radial.push(node, rule, guard is not None):  # what remains are tangents by other ways
            entering = [dots.get(a, ZERO) for a in node.args]
        else:
            entering = [radial.whole(a) for a in node.args]
        y_dot = rule(tuple(entering))
        if isinstance(y_dot, Node):
            dots[node] = y_dot
    return [radial.whole(o) for o in outputs]


def dense(tangent: Tangent, like: Node) -> Node:
    """A tangent as a node: structural zeros become zeros of the shape of ``like``."""
    return tangent if isinstance(tangent, Node) else broadcast_to(constant(0), like.shape)

"""Reverse mode on nodes: linearize, then transpose. Only linear ops have a transpose rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from symad.core.dims import Shape
from symad.core.graph import ZERO, Node, Tangent, shape, topological
from symad.core.questions import Nodes, transpose
from symad.ops.basic.arithmetic import add
from symad.ops.basic.sources import Source, constant
from symad.ops.elementwise import products, transposes  # noqa: F401  (registers rules)
from symad.transforms.tangents import push


@dataclass(frozen=True, eq=False)
class Seed(Source):
    """The tangent of one node while a graph is linearized; transposition removes it again.

    Each has a different number: seeds of nested transformations must not be confused.
    """

    outside = True

    owner: Node
    number: int


_numbers = count()


def fresh_seed(owner: Node) -> Node:
    """A new placeholder of the shape of a node."""
    return Node.of(Seed(owner, next(_numbers)))


@shape(Seed)
def seed_shape(op: Seed, args: Nodes) -> Shape:
    """The shape of its owner."""
    return op.owner.shape


def pull(outputs: Sequence[Tangent], bars: Sequence[Tangent], wrt: Sequence[Node]) -> list[Tangent]:
    """The cotangents of some nodes: x_bar = Σ_outputs (∂y/∂x)ᵀ y_bar."""
    pairs = [
        (y, b) for y, b in zip(outputs, bars, strict=True) if isinstance(y, Node) and isinstance(b, Node)
    ]
    seeds = [fresh_seed(node) for node in wrt]
    y_dots = push([y for y, _ in pairs], dict(zip(wrt, seeds, strict=True)), transposed=True)
    linear = [
        (y_dot, bar_) for y_dot, (_, bar_) in zip(y_dots, pairs, strict=True) if isinstance(y_dot, Node)
    ]
    return transpose_linear([y_dot for y_dot, _ in linear], [bar_ for _, bar_ in linear], seeds)


def cotangents(value: Node, wrt: Sequence[Node]) -> dict[Node, Node]:
    """The intermediate cotangents of the gradient of a scalar, by the nodes they belong to."""
    seeds = [fresh_seed(node) for node in wrt]
    nodes = topological([value])
    dots = push(nodes, dict(zip(wrt, seeds, strict=True)), transposed=True)
    found: dict[Node, Node] = {}
    if isinstance(dots[-1], Node):
        transpose_linear([dots[-1]], [constant(1)], seeds, found)
    pairs = zip(nodes, dots, strict=True)
    return {found[dot]: node for node, dot in pairs if isinstance(dot, Node) and dot in found}


def transpose_linear(
    outputs: Sequence[Node],
    bars: Sequence[Node],
    seeds: Sequence[Node],
    passed: dict[Node, Node] | None = None,
) -> list[Tangent]:
    """The transpose of a graph that is linear in ``seeds``: cotangents flow from outputs to seeds.

    Accumulators start empty and add at every fan-out. ``passed`` collects the cotangents of inner nodes.
    """
    order = topological(outputs)
    reached = set(seeds)
    for node in order:
        if not reached.isdisjoint(node.args):
            reached.add(node)
    collected: dict[Node, list[Node]] = {}
    for output, bar in zip(outputs, bars, strict=True):
        collected.setdefault(output, []).append(bar)
    for node in reversed(order):
        if node not in reached or node not in collected or not node.args:
            continue
        y_bar = add(*collected.pop(node))
        if passed is not None:
            passed[node] = y_bar
        flags = tuple([a in reached for a in node.args])
        for arg, bar_ in zip(node.args, transpose(node.op, node, y_bar, flags), strict=True):
            if isinstance(bar_, Node):
                collected.setdefault(arg, []).append(bar_)
    return [add(*collected[s]) if s in collected else ZERO for s in seeds]


def gradient_nodes(output: Node, wrt: Sequence[Node]) -> list[Tangent]:
    """The gradient of a scalar node."""
    return pull([output], [constant(1)], wrt)

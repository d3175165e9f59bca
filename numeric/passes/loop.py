"""Loops: scans that keep several values of every step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from symad.core.contents import holds
from symad.core.dims import Shape
from symad.core.graph import Graph, Node, Op, rebuild, shape
from symad.core.questions import Array, Nodes, Values, definition, evaluate
from symad.higher_order.scan import Scan
from symad.numbers.values import unchecked
from symad.ops.arrays.stacking import stack, take

Part = TypeVar("Part")


@dataclass(frozen=True, eq=False)
class LoopValue(Op):
    """Value number ``k`` of a loop at all its steps: first the states, then the values kept at each step.

    The arguments, and the inputs of the body, are those of `Scan`, but with ``states`` states instead of
    one. The body has one output for each value.
    """

    body: Graph
    slices: int
    k: int
    states: int = 1
    several = ("k",)


def has_loops(graph: Graph, kinds: tuple[type[Scan | LoopValue], ...] = (Scan, LoopValue)) -> bool:
    """Whether a graph has loops of some kinds; passes on loops leave all others as they are."""
    return holds(graph, *kinds)


def with_body(op: Scan | LoopValue, body: Graph, slices: int) -> Op:
    """The op of the same loop value with another body."""
    return Scan(body, slices) if isinstance(op, Scan) else LoopValue(body, slices, op.k, op.states)


def loop_of(node: Node) -> Scan | LoopValue:
    """The loop op of a node that is a value of a loop."""
    assert isinstance(node.op, (Scan, LoopValue)), node
    return node.op


def pieces(op: Scan | LoopValue, args: tuple[Part, ...]) -> tuple[tuple[Part, ...], ...]:
    """The initial states, the inputs of the steps, and the constants among arguments or body inputs."""
    first = op.states if isinstance(op, LoopValue) else 1
    return args[:first], args[first : first + op.slices], args[first + op.slices :]


def values(node: Node) -> list[Node]:
    """All values of the loop that has the given node as a value."""
    op = loop_of(node)
    if isinstance(op, Scan):
        return [node]
    every = range(len(op.body.output_nodes))
    return [Node.of(LoopValue(op.body, op.slices, k, op.states), node.args) for k in every]


@shape(LoopValue)
def loop_shape(op: LoopValue, args: Nodes) -> Shape:
    """The steps, then the axes of the value."""
    return (args[op.states].shape[0], *op.body.output_nodes[op.k].shape)


def by_loop(values: Iterable[Node]) -> list[list[Node]]:
    """Values of loops, grouped by loop."""
    groups: dict[tuple[Graph, Nodes], list[Node]] = {}
    for node in values:
        if isinstance(node.op, (Scan, LoopValue)):
            groups.setdefault((node.op.body, node.args), []).append(node)
    return [*groups.values()]


@evaluate.dispatch
def loop_evaluate(op: LoopValue, values: Values) -> Array:
    """The value, computed step by step."""
    states = list(values[: op.states])
    xs, constants = values[op.states : op.states + op.slices], values[op.states + op.slices :]
    history = []
    for t in range(len(xs[0])):
        point = dict(zip(op.body.input_nodes, (*states, *[x[t] for x in xs], *constants), strict=True))
        made = unchecked(op.body.output_nodes, point)
        states = made[: op.states]
        history.append(np.asarray(made[op.k]))
    return np.stack(history) if history else np.zeros((0, *op.body.output_nodes[op.k].shape))


@definition.dispatch
def loop_definition(op: LoopValue, y: Node) -> Node | None:
    """The steps written out, if their number is known."""
    states, xs, constants = pieces(op, y.args)
    if not isinstance(y.shape[0], int):
        return None
    kept = []
    for t in range(y.shape[0]):
        inputs = (*states, *[take(x, 0, t) for x in xs], *constants)
        made = rebuild(op.body.output_nodes, dict(zip(op.body.input_nodes, inputs, strict=True)))
        states = made[: op.states]
        kept.append(made[op.k])
    return stack(kept)

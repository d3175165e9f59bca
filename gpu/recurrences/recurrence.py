"""The op of a loop that one kernel computes, and the test for such loops.

Every row of the state (a sample of the batch) goes through the steps without the others. A block of threads
that owns some rows then needs no other block, from the first step to the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symad.core.dims import Shape, is_concrete, plus
from symad.core.graph import Graph, Node, Op, op_of, shape
from symad.core.questions import Array, Nodes, Values, definition, evaluate
from symad.numeric.passes.loop import LoopValue, loop_evaluate, pieces
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.shaping import broadcast_to, reshape, slice_axis
from symad.ops.basic.sources import constant


@dataclass(frozen=True, eq=False)
class Recurrence(Op):
    """Value number ``k`` of a loop; with ``before``, state k before each step (without its last value).

    Arguments: the initial states that are not 0, the inputs of the steps, the constants. The body and the
    values are those of `LoopValue`. ``zeros`` says which states begin with 0, and ``kept`` which states are
    also needed before each step.
    """

    body: Graph
    slices: int
    k: int
    zeros: tuple[bool, ...]
    kept: tuple[bool, ...]
    before: bool = False
    several = ("k", "before")

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.zeros)


def parts_of(op: Recurrence, args: Nodes) -> tuple[list[Node | None], Nodes, Nodes]:
    """The initial states (None means 0), the inputs of the steps, and the constants."""
    given = iter(args)
    initial = [None if zero else next(given) for zero in op.zeros]
    rest = tuple(given)
    return initial, rest[: op.slices], rest[op.slices :]


def steps_of(op: Recurrence, args: Nodes) -> Any:
    """The number of steps."""
    return parts_of(op, args)[1][0].shape[0]


@shape(Recurrence)
def recurrence_shape(op: Recurrence, args: Nodes) -> Shape:
    """The steps, then the axes of the value."""
    return (steps_of(op, args), *op.body.output_nodes[op.k].shape)


def _starts(op: Recurrence, initial: Sequence[Any]) -> list[Any]:
    shapes = [local.shape for local in op.body.input_nodes]
    return [np.zeros(s) if a is None else a for a, s in zip(initial, shapes, strict=False)]


@evaluate.dispatch
def recurrence_evaluate(op: Recurrence, values: Values) -> Array:
    """The value, computed step by step."""
    given = iter(values)
    initial = [None if zero else next(given) for zero in op.zeros]
    starts = _starts(op, initial)
    made = loop_evaluate(LoopValue(op.body, op.slices, op.k, op.states), (*starts, *given))
    return np.concatenate([np.asarray(starts[op.k])[None], made[:-1]]) if op.before else made


@definition.dispatch
def recurrence_definition(op: Recurrence, y: Node) -> Node:
    """The loop."""
    initial, xs, constants = parts_of(op, y.args)
    shapes = [local.shape for local in op.body.input_nodes]
    starts = [
        broadcast_to(constant(0), s) if a is None else a for a, s in zip(initial, shapes, strict=False)
    ]
    loop = Node.of(LoopValue(op.body, op.slices, op.k, op.states), (*starts, *xs, *constants))
    return before_steps(loop) if op.before else loop


def before_steps(loop: Node) -> Node:
    """The value of a state before every step of its loop."""
    op = op_of(loop, LoopValue)
    start = pieces(op, loop.args)[0][op.k]
    rest = slice_axis(loop, 0, 0, plus(loop.shape[0], -1))
    return concatenate([reshape(start, (1, *start.shape)), rest])


def is_known(node: Node) -> bool:
    """Whether all sizes are numbers."""
    return is_concrete(node.shape)

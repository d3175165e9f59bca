"""Loops: scans that keep several values of every step."""

from __future__ import annotations

from dataclasses import dataclass

from symad.dims import Shape
from symad.graph import Graph, Op, shape
from symad.ops.recurrence import Scan
from symad.questions import Nodes


@dataclass(frozen=True, eq=False)
class Loop(Op):
    """Value number ``k`` of a loop at all its steps: 0 is the state, the others are kept on the way.

    Arguments and inputs of the body are those of `Scan`; the body has one output for each value.
    """

    body: Graph
    slices: int
    k: int


def with_body(op: Scan | Loop, body: Graph, slices: int) -> Op:
    """The same value of a loop with another body."""
    return Scan(body, slices) if isinstance(op, Scan) else Loop(body, slices, op.k)


@shape(Loop)
def loop_shape(op: Loop, args: Nodes) -> Shape:
    """The steps, then the axes of the value."""
    return (args[1].shape[0], *op.body.output_nodes[op.k].shape)

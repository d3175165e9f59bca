"""Loops in pictures: the first two steps and the last one, each with the recurrence.

A graph has one node for a loop of any length. Unfolded in time it is a chain h_0 → h_1 → h_2 → … → h_T,
whose steps share the constants; so lectures draw it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from symad.core.graph import Graph, Node
from symad.display.labels import is_literal
from symad.display.reading import plain
from symad.display.tables import Math
from symad.display.typesetting.derivation import written
from symad.display.typesetting.pieces import write
from symad.display.typesetting.recurrences import formal_names
from symad.higher_order.scan import Scan

GAP = Math("", "")


@dataclass(frozen=True)
class LoopStep:
    """A step of a loop: its number, the name of its state, and its formula; a gap has neither."""

    number: int = 0
    name: str = ""
    formula: Math = GAP


def steps_of(graph: Graph, node: Node) -> list[LoopStep]:
    """At most three steps of a loop, with a gap before the last one of a longer loop; none of other nodes."""
    if not isinstance(node.op, Scan) or node.shape[0] == 0:
        return []
    count = node.shape[0]
    if isinstance(count, int) and count <= 3:
        return [_step(graph, node, k, k - 1, k) for k in range(1, count + 1)]
    first = [_step(graph, node, k, k - 1, k) for k in (1, 2)]
    return [*first, LoopStep(), _step(graph, node, -1, count - 1, count)]


def _step(graph: Graph, node: Any, number: int, before: object, now: object) -> LoopStep:
    names, pieces = formal_names(graph, node, (str(before), str(now)))
    slots = dict(zip(node.op.body.input_nodes, pieces, strict=True))
    state = names[0].removesuffix("_{0}")
    formula = write(written(node.op.body.output_nodes[0], slots))
    return LoopStep(number, plain(f"{state}_{{{now}}}"), Math(plain(formula), formula))


def edges_into(
    node: Node, number: Mapping[Node, int], steps: Sequence[LoopStep], first: int
) -> Iterator[tuple[int, int]]:
    """The edges into a loop whose steps are the boxes from ``first`` on: the state goes from step to step."""
    boxes = range(first, first + len(steps))
    shown = [box for box, step in zip(boxes, steps, strict=True) if step.name]
    for k, arg in enumerate(node.args):
        if not is_literal(arg):
            yield from ((number[arg], box) for box in (shown if k else shown[:1]))
    yield from pairwise(boxes)
    yield from ((box, number[node]) for box in shown)

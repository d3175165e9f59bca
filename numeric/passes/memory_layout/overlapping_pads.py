"""Sums of padded arrays that overlap: one array, to which each term is added at its place.

The gradient of Σ (x_{i+1} − x_i)² is such a sum. No array is padded, and the first term may be computed
directly in its place. `symad.numeric.passes.memory_layout.box_sums` handles terms that do not overlap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from symad.core.dims import Dim, Shape
from symad.core.graph import Graph, Node, Op, op_of, shape
from symad.core.questions import Array, Nodes, Values, definition, evaluate
from symad.numeric.passes.memory_layout.box_sums import boxes
from symad.numeric.passes.rewriting import rewrite
from symad.ops.basic.arithmetic import Add, signed_sum
from symad.ops.basic.shaping import Pad, pad


@dataclass(frozen=True, eq=False)
class Overlay(Op):
    """An array (size,): the sum of signs_k times argument k at positions start_k, start_k + 1, ...

    The first sign is +.
    """

    start: Shape
    signs: tuple[int, ...]
    size: Dim


@shape(Overlay)
def overlay_shape(op: Overlay, args: Nodes) -> Shape:
    """(size,)."""
    return (op.size,)


@definition.dispatch
def overlay_definition(op: Overlay, y: Node) -> Node:
    """The sum of the padded parts."""
    padded = (pad(a, (start,), y.shape) for a, start in zip(y.args, op.start, strict=True))
    return signed_sum(zip(op.signs, padded, strict=True))


@evaluate.dispatch
def overlay_evaluate(op: Overlay, values: Values) -> Array:
    """The sum, with each part added at its place."""
    result = np.zeros(op.size, np.result_type(*values))
    for start, sign, part in zip(op.start, op.signs, values, strict=True):
        result[start : start + len(part)] += sign * part
    return result


def overlay_pads(graph: Graph) -> Graph:
    """The graph with sums of padded one-dimensional arrays as overlays."""
    users = Counter(a for node in graph.nodes for a in set(node.args))
    users.update(graph.output_nodes)

    def better(node: Node, args: Nodes) -> Node | None:
        pads = [a for a in node.args if _is_padded(a) and users[a] == 1]
        if not pads or not isinstance(node.op, Add) or boxes(node) is not None:
            return None
        return _overlay(node.op, list(zip(node.args, args, strict=True)), set(pads))

    return rewrite(graph, better, Pad)


def _is_padded(node: Node) -> bool:
    return isinstance(node.op, Pad) and len(node.shape) == 1 and node.op.step == (1,)


def _overlay(op: Add, pairs: Iterable[tuple[Node, Node]], pads: set[Node]) -> Node | None:
    """The sum of terms, given before and after rewriting; None if no term can come first."""
    parts: list[tuple[int, Dim, Node]] = []
    others = []
    for sign, (old, new) in zip(op.signs, pairs, strict=True):
        if old in pads:
            parts.append((sign, op_of(new, Pad).start[0], new.args[0]))
            size = new.shape[0]
        else:
            others.append((sign, new))
    if any(new.shape != (size,) for _, new in others):
        return None
    parts.sort(key=lambda part: -part[0])
    if others:
        parts.insert(0, (1, 0, signed_sum(others)))
    if parts[0][0] != 1 or len(parts) < 2:
        return None
    signs, starts, args = zip(*parts, strict=True)
    return Node.of(Overlay(starts, signs, size), args)

"""Sums of padded arrays and of views: disjoint boxes, adjacent parts, parts that overlap, equal slices.

- Disjoint boxes are one array, filled box by box (`symad.numeric.program_passes.memory.boxes`).
- Parts that fill one axis side by side are a concatenation, pad(a) + pad(b) + pad(c) = [a b c]; the
  transposes of slices are such sums.
- Parts that overlap are one array to which each is added at its place, an `Overlay`. The gradient of
  Σ (x_{i+1} − x_i)² is such a sum. The first part may be computed directly in its place.
- A sum of equal views is a view of the sum: of slices, and of arrays broadcast along the same axes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TypeAlias

import numpy as np

from symad.core.contents import holds, in_bodies
from symad.core.dims import Dim, Shape, is_concrete, plus, same_dim
from symad.core.graph import Graph, Node, Op, op_of, rebuild, shape
from symad.core.questions import Array, Nodes, Values, definition, evaluate
from symad.higher_order.scan import Scan
from symad.numeric.passes.rewriting import rewrite, with_results
from symad.numeric.program.expressions import Compute
from symad.ops.arrays.stacking import concatenate, stack
from symad.ops.basic.arithmetic import Add, signed_sum
from symad.ops.basic.shaping import Broadcast, Pad, Reshape, Slice, broadcast_axes, broadcast_to, pad, reshape
from symad.ops.basic.sources import constant

# ---- disjoint boxes ------------------------------------------------------------------------------


Box = tuple[tuple[int, int], ...]
"""The first and the last position (exclusive) along each axis."""

Padded: TypeAlias = "Node | Compute"
"""An op with its arguments and its shape."""


def boxes(node: Node) -> dict[Node, Box] | None:
    """The boxes of a sum of padded arrays, by its arguments; None for other nodes."""
    found = boxes_of(node.op, node.args) if len({*node.args}) == len(node.args) else None
    return None if found is None else dict(zip(node.args, found, strict=True))


def boxes_of(op: Op, args: Sequence[Padded]) -> list[Box] | None:
    """The boxes of a sum of padded arrays, one for each argument; None if they overlap, or for other ops."""
    if not isinstance(op, Add) or len(args) < 2 or set(op.signs) != {1}:
        return None
    found: list[Box] = []
    for arg in args:
        box = _box(arg)
        if box is None or not all(apart(box, other) for other in found):
            return None
        found.append(box)
    return found


def apart(one: Box, other: Box) -> bool:
    """Whether two boxes share no element."""
    return any(a[1] <= b[0] or b[1] <= a[0] for a, b in zip(one, other, strict=True))


def box_at(start: Sequence[Dim], count: Sequence[Dim]) -> Box | None:
    """The box of ``count`` positions from ``start`` along each axis; None if they are not known."""
    if not all(isinstance(d, int) for d in (*start, *count)):
        return None
    return tuple((a, a + n) for a, n in zip(start, count, strict=True))


def _box(array: Padded) -> Box | None:
    op = array.op
    if not isinstance(op, Pad) or any(step != 1 for step in op.step) or not is_concrete(op.shape):
        return None
    return box_at(op.start, array.args[0].shape)


def fills(found: Sequence[Box], shape: Sequence[Dim]) -> bool:
    """Whether disjoint boxes fill an array."""
    return sum(prod(b - a for a, b in box) for box in found) == prod(shape)


def source(pad: Node) -> tuple[Node, frozenset[int]]:
    """The array that is padded, before axes of length 1 were inserted, and those axes."""
    (arg,) = pad.args
    if isinstance(arg.op, Reshape):
        inner = arg.args[0]
        axes = single_axes(inner.shape, arg.shape)
        if axes:
            return inner, axes
    return arg, frozenset()


def single_axes(short: Sequence[Dim], long: Sequence[Dim]) -> frozenset[int]:
    """The axes of length 1 that turn one shape into the other; empty if there are none, or if none fit."""
    axes: set[int] = set()
    k = 0
    for axis, dim in enumerate(long):
        left = len(short) - k
        if (
            left
            and short[k] == dim
            and len(long) - axis >= left
            and not (dim == 1 and len(long) - axis > left)
        ):
            k += 1
        elif dim == 1:
            axes.add(axis)
        else:
            return frozenset()
    return frozenset(axes) if k == len(short) else frozenset()


# ---- adjacent parts ------------------------------------------------------------------------------

# pad(a) + pad(b) + pad(c) = [a b c] where the three fill one axis without gaps or overlap.


def join_pads(graph: Graph) -> Graph:
    """The graph with such sums as concatenations and without pads that add nothing, also in loops."""
    return with_results(graph, _joined(graph))


def _joined(graph: Graph) -> Nodes:
    return rebuild(rebuild(graph, {}, _join), {}, _row_among_zeros)


def _join(node: Node, args: Nodes) -> Node:
    op = in_bodies(node.op, _joined)
    made = node.over(args) if op is node.op else Node.of(op, args)
    if isinstance(op, Pad) and not _moved_axes(made):
        return args[0]
    padded = len(args) > 1 and all(isinstance(a.op, Pad) for a in args)
    return side_by_side(args, made) if padded and isinstance(op, Add) and set(op.signs) == {1} else made


MAX_ROWS_AMONG_ZEROS = 4
"""At most this many rows, all but one of them zero, are written as a stack, which is easier to read.

Origin: it bounds the length of a line.
"""


def _row_among_zeros(node: Node, args: Nodes) -> Node:
    """One row padded by a few rows of zeros as a stack of rows; other nodes as they are."""
    made = node.over(args)
    axes = _moved_axes(made) if isinstance(made.op, Pad) else set()
    if len(axes) != 1 or len(made.shape) < 2:
        return made
    (axis,) = axes
    length, start = made.shape[axis], op_of(made, Pad).start[axis]
    if args[0].shape[axis] != 1 or not isinstance(length, int) or length > MAX_ROWS_AMONG_ZEROS:
        return made
    rest = (*made.shape[:axis], *made.shape[axis + 1 :])
    zeros = broadcast_to(constant(0), rest)
    return stack([reshape(args[0], rest) if k == start else zeros for k in range(length)], axis)


def side_by_side(pads: Sequence[Node], otherwise: Node) -> Node:
    """The padded arrays as one array if they fill one axis, else ``otherwise``."""
    axes = {axis for p in pads for axis in _moved_axes(p)}
    if len(axes) != 1:
        return otherwise
    (axis,) = axes
    waiting, filled = list(pads), []
    place = plus(0, 0)
    while waiting:
        found = next((p for p in waiting if same_dim(op_of(p, Pad).start[axis], place)), None)
        if found is None:
            return otherwise
        waiting.remove(found)
        filled.append(found.args[0])
        place = plus(place, found.args[0].shape[axis])
    if not same_dim(place, otherwise.shape[axis]):
        return otherwise
    if all(part.shape[axis] == 1 for part in filled):
        rest = (*otherwise.shape[:axis], *otherwise.shape[axis + 1 :])
        return stack([reshape(part, rest) for part in filled], axis)
    return concatenate(filled, axis)


def _moved_axes(pad: Node) -> set[int]:
    """The axes along which a pad adds zeros; all axes if it inserts zeros between elements."""
    op, (arg,) = pad.op, pad.args
    assert isinstance(op, Pad)
    if any(step != 1 for step in op.step):
        return set(range(len(pad.shape))) | {-1}
    return {k for k, (a, b) in enumerate(zip(arg.shape, pad.shape, strict=True)) if not same_dim(a, b)}


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


# ---- equal views ---------------------------------------------------------------------------------

# The gates of a recurrent cell are slices of W h + b and of U x + c, added gate by gate. As slices of one sum
# they take one pass over the memory. The rule applies if the slices together contain each element of the
# arrays exactly once, so that it adds no further elements. P + b + c, with b and c broadcast, is P + (b + c):
# each separate bias of a product, as PyTorch's recurrent layers have two, costs a pass over the result.


Arrays = tuple[tuple[int, Node], ...]
"""The arrays in a sum, with their signs."""


def sum_before_slicing(graph: Graph) -> Graph:
    """The graph with sums of slices as slices of sums, also in the bodies of scans."""
    return with_results(graph, _sliced_last(graph))


def _sliced_last(graph: Graph) -> Nodes:
    groups: dict[Arrays, set[Box | None]] = {}
    for node in graph.nodes:
        found = _sum_of_slices(node, node.args)
        if found is not None:
            arrays, op = found
            groups.setdefault(arrays, set()).add(box_at(op.start, op.count))
    chosen = {arrays for arrays, boxes in groups.items() if len(boxes) > 1 and _tile(boxes, arrays[0][1])}
    if not chosen and not holds(graph, Scan):
        return graph.output_nodes
    bodies: dict[Graph, Graph] = {}

    def better(node: Node, args: Nodes) -> Node | None:
        op = node.op
        if isinstance(op, Scan):
            if op.body not in bodies:
                bodies[op.body] = Graph(op.body.input_nodes, _sliced_last(op.body))
            return Node.of(Scan(bodies[op.body], op.slices), args)
        before, after = _sum_of_slices(node, node.args), _sum_of_slices(node, args)
        if before is not None and after is not None and before[0] in chosen:
            arrays, slice_ = after
            return Node.of(slice_, (signed_sum(arrays),))
        return None

    return rebuild(graph, {}, better)


def _sum_of_slices(node: Node, args: Nodes) -> tuple[Arrays, Slice] | None:
    """The arrays of a sum whose terms are the same slice of each, and that slice."""
    op = node.op
    if not isinstance(op, Add) or len(args) < 2:
        return None
    slices = [arg.op for arg in args if isinstance(arg.op, Slice)]
    if len(slices) < len(args) or set(slices[0].step) != {1}:
        return None
    sources = [arg.args[0] for arg in args]
    for slice_, source in zip(slices, sources, strict=True):
        same = (slice_.start, slice_.count, slice_.step) == (slices[0].start, slices[0].count, slices[0].step)
        if not same or source.shape != sources[0].shape:
            return None
    return tuple(zip(op.signs, sources, strict=True)), slices[0]


def _tile(found: Collection[Box | None], array: Node) -> bool:
    """Whether boxes, if their places are known, contain each element of the array exactly once."""
    known = [box for box in found if box is not None]
    if len(known) < len(found) or not is_concrete(array.shape):
        return False
    return all(apart(one, other) for one, other in combinations(known, 2)) and fills(known, array.shape)


Terms = list[tuple[int, Node]]


def broadcast_sums(graph: Graph) -> Graph:
    """The graph with terms added before they are broadcast along the same axes."""
    uses = Counter(arg for node in graph.nodes for arg in node.args) + Counter(graph.output_nodes)

    def better(node: Node, args: Nodes) -> Node | None:
        if not isinstance(node.op, Add) or not node.shape:
            return None
        terms = _terms(node.op.signs, args, [uses[given] == 1 for given in node.args])
        joined = _grouped(terms, node.shape)
        return signed_sum(joined) if len(joined) < len(terms) else None

    return rewrite(graph, better, Broadcast)


def _terms(signs: tuple[int, ...], args: Nodes, once: list[bool]) -> Terms:
    """The terms of a sum, with nested sums that nothing else reads taken apart."""
    terms: Terms = []
    for sign, arg, alone in zip(signs, args, once, strict=True):
        if alone and isinstance(arg.op, Add):
            terms += [(sign * inner, term) for inner, term in zip(arg.op.signs, arg.args, strict=True)]
        else:
            terms.append((sign, arg))
    return terms


def _grouped(terms: Terms, shape: Shape) -> Terms:
    """The terms, with one for all that are broadcast along the same axes."""
    groups: dict[tuple[int, ...], Terms] = {}
    rest: Terms = []
    for sign, term in terms:
        small, axes = _repeated(term)
        if len(axes) < len(term.shape) and small.shape:
            groups.setdefault(axes, []).append((sign, small))
        else:
            rest.append((sign, term))
    return rest + [(1, broadcast_axes(signed_sum(group), shape, axes)) for axes, group in groups.items()]


def _repeated(term: Node) -> tuple[Node, tuple[int, ...]]:
    """The array that a term broadcasts, and the axes along which it lies."""
    axes = tuple(range(len(term.shape)))
    while isinstance(term.op, Broadcast):
        axes, term = tuple(axes[k] for k in term.op.axes), term.args[0]
    return term, axes

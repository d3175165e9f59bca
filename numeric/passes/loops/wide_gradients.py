"""Gradients of weights that form one matrix in every step are computed as one product.

The gradients of W, U and b in [W U b] [h; x; 1] are products of one cotangent with h, x and 1 at all steps:
slices of its product with the array that holds these rows together (`numeric/passes/loops/wide_products.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from symad.core.dims import plus, size
from symad.core.graph import Node, op_of, rebuild, topological
from symad.core.questions import Nodes
from symad.numeric.passes.loop import Loop
from symad.ops.arrays.stacking import Concatenate
from symad.ops.basic.contraction import Einsum, contract, permute
from symad.ops.basic.shaping import Reshape, reshape, slice_axis
from symad.ops.basic.sources import constant_value


@dataclass(frozen=True)
class Joined:
    """The rows [h; x; 1] at all steps, as a value of a loop, and the arrays that they consist of."""

    rows: Node
    state: Node
    xs: Nodes

    def gradients(self, outputs: Nodes) -> Nodes:
        """The outputs with the products Σ_m z_im y_km for several of the parts y as one product."""
        found = self._parts()
        groups: dict[tuple[Node, int], dict[Node, tuple[int, int, bool]]] = {}
        for node in topological(outputs):
            op = node.op
            if isinstance(op, Einsum) and len(node.shape) < 3:
                for z, axis, place in _products(node, found):
                    groups.setdefault((z, axis), {})[node] = place
        made: dict[Node, Node] = {}
        for (z, axis), places in groups.items():
            if len(places) > 1:
                whole = self._product(z, axis)
                for node, (start, count, turned) in places.items():
                    piece = slice_axis(whole, 1, start, count)
                    piece = permute(piece, (1, 0)) if turned else piece
                    made[node] = reshape(piece, node.shape)
        return rebuild(outputs, made) if made else outputs

    def _parts(self) -> dict[Node, tuple[int, int, int]]:
        """The matrices that hold one part: the axis of its rows, where they begin, and their number."""
        first = reshape(self.state.args[op_of(self.state, Loop).k], (1, *self.state.shape[1:]))
        steps = self.state.shape[0]
        before = Node.of(Concatenate(0), (first, slice_axis(self.state, 0, 0, plus(steps, -1))))
        found: dict[Node, tuple[int, int, int]] = {}
        start = 0
        for part in (before, *self.xs):
            rows = part.shape[-2]
            if len(part.shape) == 3:
                found[_flat(part, (1, 0, 2))] = 0, start, rows
                found[_flat(part, (0, 2, 1))] = 1, start, rows
            elif constant_value(part.args[0]) == 1:
                found[part] = -1, start, 1
            start += rows
        return found

    def _product(self, z: Node, axis: int) -> Node:
        """Σ_m z_im y_mk for all rows k, with k along the last axis: BLAS is fastest with such an operand."""
        return contract([["im", "mi"][axis], "mk"], "ik", z, _flat(self.rows, (0, 2, 1)))


def _flat(array: Node, order: tuple[int, int, int]) -> Node:
    """The array over all steps as a matrix, with the axis of rows first or last."""
    turned = permute(array, order)
    first, middle, last = turned.shape
    shape = (first, size((middle, last))) if order[0] == 1 else (size((first, middle)), last)
    return Node.of(Reshape(shape), (turned,))


def _products(
    node: Node, found: Mapping[Node, tuple[int, int, int]]
) -> list[tuple[Node, int, tuple[int, int, bool]]]:
    """For products with a part: the other factor z, the axis of its rows, and the rows of the part."""
    op = op_of(node, Einsum)
    if len(op.inputs) == 1:
        ones = [p for p in found.values() if p[0] == -1]
        (labels,) = op.inputs
        if ones and len(labels) == 2 and len(op.output) == 1 and len(set(labels)) == 2:
            return [(node.args[0], labels.index(op.output[0]), (ones[0][1], 1, False))]
        return []
    if len(op.inputs) != 2 or len(op.output) != 2:
        return []
    for one, other in ((0, 1), (1, 0)):
        place = found.get(node.args[one])
        if place is None or place[0] < 0:
            continue
        mine, theirs = op.inputs[one], op.inputs[other]
        k, m = (mine[0], mine[1]) if place[0] == 0 else (mine[1], mine[0])
        if len(theirs) == 2 and m in theirs and k not in theirs:
            (i,) = (x for x in theirs if x != m)
            if set(op.output) == {i, k}:
                return [(node.args[other], theirs.index(i), (place[1], place[2], op.output == (k, i)))]
    return []

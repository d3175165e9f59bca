"""Elements of arrays under bound indices: ``x[2*i + 1]`` for all i at once.

An affine index in one bound index is a slice, a repeated index a diagonal, a number one position;
anything else (``x[i + j]``, ``y[k[i]]``) is gathered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import sympy

from symad.core.dims import Dim, as_dim, format_shape, size
from symad.core.expressions import as_sympy
from symad.core.graph import Node
from symad.errors import ShapeError, TraceError
from symad.ops.arrays.gathering import gather
from symad.ops.arrays.positions import name_of, positions
from symad.ops.arrays.stacking import element
from symad.ops.basic.arithmetic import add
from symad.ops.basic.contraction import contract, permute
from symad.ops.basic.shaping import reshape, slice_axes
from symad.ops.basic.sources import constant, dimension
from symad.ops.elementwise.apply import apply
from symad.tracing.cheapest_contraction import Labeled
from symad.tracing.index_ranges import affine, at_least, reach

if TYPE_CHECKING:
    from symad.tracing.from_sympy.bound_indices import IndexScope


@dataclass(frozen=True)
class FixedPosition:
    """A position of an axis."""

    position: Dim


@dataclass(frozen=True)
class Strided:
    """Positions start, start + step, ... of an axis, along a bound index."""

    label: sympy.Symbol
    start: Dim
    step: int


@dataclass(frozen=True)
class General:
    """Positions computed for each value of some bound indices."""

    positions: Labeled


Place = FixedPosition | Strided | General


def load(scope: IndexScope, array: Node, expression: sympy.Expr, indices: Sequence[sympy.Expr]) -> Labeled:
    """The elements of ``array`` at the indices, with one axis for each bound index in them.

    Raises:
        ShapeError: the number of indices is not the number of axes, or a position is out of range.
        TraceError: an index is neither bound, nor a number, nor a dimension.
    """
    if len(indices) != len(array.shape):
        raise ShapeError(
            f"{expression} has {len(indices)} indices, but the array has shape {format_shape(array.shape)}"
        )
    places = [
        place(scope, expression, axis, as_sympy(index), array.shape[axis])
        for axis, index in enumerate(indices)
    ]
    if all(isinstance(p, FixedPosition) for p in places):
        return Labeled(element(array, *(p.position for p in places if isinstance(p, FixedPosition))))
    gathered = {x for p in places if isinstance(p, General) for x in p.positions.labels}
    for axis, p in enumerate(places):
        if isinstance(p, Strided) and p.label in gathered:  # A[i, k[i]]: pairs, not a square
            places[axis] = General(scope.value(as_sympy(indices[axis])))
    axes = tuple([axis for axis, p in enumerate(places) if isinstance(p, General)])
    return _gathered(scope, *_sliced(scope, array, places), axes, name_of(array))


# ---- what kind of index ---------------------------------------------------------------------------


def place(scope: IndexScope, expression: sympy.Expr, axis: int, index: sympy.Expr, length: Dim) -> Place:
    """The positions of one axis that an index selects."""
    used = [r.index for r in scope.ranges if index.has(r.index)]
    data = index.has(sympy.Indexed, sympy.matrices.expressions.matexpr.MatrixElement, sympy.Function)
    data = data or bool(index.free_symbols & scope.tracer.places)
    if not data:
        _check_free(scope, expression, index)
        inside = _check_range(scope, expression, axis, index, length)
        if not used and inside:
            if not (index.is_Integer or index.free_symbols):
                raise TraceError(f"{expression}: the position {index} is not an integer")
            return FixedPosition(as_dim(index))
        parts = affine(index, used[0]) if len(used) == 1 and inside else None
        if parts is not None and parts[0].is_Integer and parts[0] != 0 and _box_inside(scope, index, length):
            step, offset = int(parts[0]), parts[1]
            start = as_dim(sympy.expand(offset + step * scope.starts[used[0]]))
            return Strided(used[0], start, step)
        if inside and _box_inside(scope, index, length):
            return General(scope.value(index))
    positions = scope.value(index)
    return General(positions if data else scope.elementwise(partial(_clamped, length), positions))


def _clamped(length: Dim, positions: Node) -> Node:
    """Positions clamped to the array; the elements read at clamped positions are never used."""
    last = add(dimension(length), constant(-1))
    return apply(sympy.Max, constant(0), apply(sympy.Min, positions, last))


def _check_free(scope: IndexScope, expression: sympy.Expr, index: sympy.Expr) -> None:
    bound = {r.index for r in scope.ranges}
    free = [s for s in index.free_symbols if s not in bound and s not in scope.tracer.dims]
    free = [s for s in free if not any(s in b.free_symbols for b in bound)]
    if free:
        name = min(map(str, free))
        raise TraceError(
            f"the index {name} of {expression} is free; sum over it with Sum(..., ({name}, 0, n - "
            "1)), or give a number"
        )


def _check_range(
    scope: IndexScope, expression: sympy.Expr, axis: int, index: sympy.Expr, length: Dim
) -> bool:
    """True if no value of an index is known to leave its axis; else an error, or False in a Piecewise."""
    lowest, highest = (reach(index, scope.ranges, largest) for largest in (False, True))
    low_wrong = lowest is not None and at_least(-1, lowest)
    high_wrong = highest is not None and at_least(highest, length)
    if not (low_wrong or high_wrong):
        return True
    if scope.guarded:
        return False
    reached = f"{lowest}..{highest}" if lowest != highest else f"{lowest}"
    raise ShapeError(
        f"{expression} reads position {reached} of axis {axis}, which has length {length}; positions "
        "count from 0 to "
        f"{sympy.expand(as_sympy(length) - 1)}"
    )


def _box_inside(scope: IndexScope, index: sympy.Expr, length: Dim) -> bool:
    """True if an index stays in its axis for every value its bound indices have in this scope.

    If bounds depend on outer indices, values beyond them are computed too, and masked later.
    """
    boxes = [r for r in scope.boxes if index.has(r.index)]
    if not any(r.index in scope.triangular for r in boxes):
        return True
    lowest, highest = (reach(index, boxes, largest) for largest in (False, True))
    if lowest is None or highest is None:
        return False
    return at_least(lowest, 0) and at_least(as_sympy(length) - 1, highest)


# ---- reading ------------------------------------------------------------------------------------


def _sliced(
    scope: IndexScope, array: Node, places: Sequence[Place]
) -> tuple[Node, list[sympy.Symbol | General]]:
    """Slice fixed and strided axes; each remaining axis has its label, or its `General`."""
    starts: list[Dim] = []
    counts: list[Dim] = []
    steps: list[int] = []
    labels: list[sympy.Symbol | General] = []
    for axis, p in enumerate(places):
        if isinstance(p, FixedPosition):
            starts.append(p.position)
            counts.append(1)
            steps.append(1)
            continue
        if isinstance(p, Strided):
            starts.append(p.start)
            counts.append(scope.sizes[p.label])
            steps.append(p.step)
            labels.append(p.label)
        else:
            starts.append(0)
            counts.append(array.shape[axis])
            steps.append(1)
            labels.append(p)
    node = slice_axes(array, starts, counts, steps)
    kept = [count for p, count in zip(places, counts, strict=True) if not isinstance(p, FixedPosition)]
    return reshape(node, kept), labels


def _gathered(
    scope: IndexScope, node: Node, labels: list[sympy.Symbol], axes: tuple[int, ...], what: str
) -> Labeled:
    """Gather general axes together; repeated labels become diagonals."""
    general = [axis for axis, label in enumerate(labels) if isinstance(label, General)]
    if general:
        others = [axis for axis in range(len(labels)) if axis not in general]
        lengths = [node.shape[axis] for axis in general]
        rest = [node.shape[axis] for axis in others]
        table = reshape(permute(node, (*general, *others)), (size(lengths), *rest))
        found = scope.elementwise(
            partial(_row_major, tuple(lengths), axes, what), *(labels[axis].positions for axis in general)
        )
        node = gather(table, found.node)
        labels = [*found.labels, *(labels[axis] for axis in others)]
    kept = tuple(dict.fromkeys(labels))
    return Labeled(contract([labels], kept, node), kept)


def _row_major(lengths: tuple[Dim, ...], axes: tuple[int, ...], what: str, *places: Node) -> Node:
    """The row-major position in several axes, from a position in each."""
    return positions(places, lengths, axes, what, False) if len(places) > 1 else places[0]

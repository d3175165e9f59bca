"""NumPy's indexing on nodes: integers, slices, None, Ellipsis, and integer arrays."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import sympy

from symad.core.dims import Dim, as_dim, format_shape, is_below, plus, size, times
from symad.core.graph import Node
from symad.errors import ShapeError, TraceError
from symad.ops.arrays.gathering import gather
from symad.ops.arrays.positions import name_of, positions
from symad.ops.arrays.stacking import element
from symad.ops.basic.contraction import permute
from symad.ops.basic.shaping import reshape, slice_axes
from symad.ops.basic.sources import ArrayConstant, Constant, array_constant, dimension
from symad.tracing.proxies.wrapped import as_node, is_condition

if TYPE_CHECKING:
    from symad.core.arrays import Index


def getitem(a: Node, key: Index) -> Node:
    """``a[key]`` as NumPy defines it.

    A symbolic dimension is assumed to be long enough: ``x[:3]`` has 3 elements, and shorter arrays
    are refused when the graph is called.

    Raises:
        ShapeError: too many indices, or a position outside of the axis.
        TraceError: a mask that is known at run time only; its result would have no fixed shape.
    """
    keys = _expand(a, key if isinstance(key, tuple) else (key,))
    if any(isinstance(k, Node) for k in keys):
        return _advanced(a, keys)
    return _basic(a, keys)


Key: TypeAlias = "int | slice | EllipsisType | sympy.Expr | Node | np.ndarray | None"
"""A key of one axis, or None for a new one."""


def _expand(a: Node, keys: Sequence[Index]) -> list[Key]:
    """One key for each axis, and None for each new one; the ellipsis is expanded."""
    found: list[Key] = []
    for key in keys:
        found.extend(_prepared(a, key))
    used = sum(k is not None and k is not Ellipsis for k in found)
    rank = len(a.shape)
    dots = [position for position, k in enumerate(found) if k is Ellipsis]
    if used > rank or len(dots) > 1:
        raise ShapeError(f"{used} indices for a traced value of shape {format_shape(a.shape)}")
    fill = [slice(None)] * (rank - used)
    if dots:
        return [*found[: dots[0]], *fill, *found[dots[0] + 1 :]]
    return [*found, *fill]


def _prepared(a: Node, key: Index) -> list[Key]:
    """A key with arrays as nodes and known masks as positions."""
    if key is None or key is Ellipsis or isinstance(key, (slice, sympy.Expr)):
        return [key]
    if isinstance(key, (int, np.integer)) and not isinstance(key, (bool, np.bool_)):
        return [int(key)]
    node = as_node(key)
    if not is_condition(node):
        if isinstance(node.op, Constant):
            if node.op.kind != "int":
                raise TraceError(f"the index {key!r} is not an integer")
            return [int(node.op.value)]
        if isinstance(node.op, ArrayConstant) and np.dtype(node.op.dtype).kind == "f":
            if node.op.array.size:
                raise TraceError(f"the index {key!r} contains floating-point numbers; positions are integers")
            return [array_constant(node.op.array.astype(np.int64))]
        return [node]
    if isinstance(node.op, ArrayConstant):
        return [array_constant(positions) for positions in np.nonzero(node.op.array)]
    raise TraceError(
        f"x[mask] with a traced mask of shape {format_shape(node.shape)} would have a shape that "
        "depends on data; "
        "use np.where(mask, x, 0)"
    )



def _basic(a: Node, keys: Sequence[Index]) -> Node:
    """Integers, slices and None."""
    starts, counts, steps, shape = [], [], [], []
    axis = 0
    for key in keys:
        if key is None:
            shape.append(as_dim(1))
            continue
        length = a.shape[axis]
        if isinstance(key, slice):
            start, count, step = slice_range(key, length)
            shape.append(count)
        else:
            start, count, step = position(key, length, a), 1, 1
        starts.append(start)
        counts.append(count)
        steps.append(step)
        axis += 1
    if not shape:
        return element(a, *starts)
    return reshape(slice_axes(a, starts, counts, steps), shape)


def position(key: Index, length: Dim, a: Node) -> Dim:
    """A position counted from the start; negative ones count from the end.

    Raises:
        ShapeError: it is out of range, whatever the sizes are.
    """
    place = as_dim(key)
    if is_below(place, 0):
        place = plus(place, length)
    if is_below(place, 0) or is_below(length, plus(place, 1)):
        raise ShapeError(
            f"index {key} is out of range for an axis of length {length} of a traced value of shape "
            f"{format_shape(a.shape)}"
        )
    return place


def slice_range(key: slice, length: Dim) -> tuple[Dim, Dim, int]:
    """Start, number and step of the elements of a slice of an axis."""
    step = 1 if key.step is None else int(key.step)
    if isinstance(length, int) and all(
        isinstance(v, (int, np.integer, type(None))) for v in (key.start, key.stop)
    ):
        chosen = range(length)[key]
        return chosen.start if chosen else 0, len(chosen), step
    ends = (0, length) if step > 0 else (plus(length, -1), -1)
    low, high = ends if step > 0 else ends[::-1]
    start = ends[0] if key.start is None else _place(key.start, low, high, length)
    stop = ends[1] if key.stop is None else _place(key.stop, low, high, length)
    span = plus(stop, times(-1, start)) if step > 0 else plus(start, times(-1, stop))
    if isinstance(span, int):
        return start, max(0, -(-span // abs(step))), step
    return start, span if abs(step) == 1 else as_dim(sympy.ceiling(span / abs(step))), step


def _place(bound: float | sympy.Expr, low: Dim, high: Dim, length: Dim) -> Dim:
    """The bound of a slice, counted from the start; ``low`` or ``high`` where it is beyond them for sure."""
    place = as_dim(bound)
    place = plus(place, length) if is_below(place, 0) else place
    return low if is_below(place, low) else high if is_below(high, place) else place


# ---- integer arrays -----------------------------------------------------------------------------


def _advanced(a: Node, keys: Sequence[Key]) -> Node:
    """Integer arrays, which broadcast together; integers beside them count as arrays.

    The axes they index are replaced by the axes of the arrays, in place if they are neighbors and
    in front otherwise.
    """
    rest = [slice(None) if _is_index(key) else key for key in keys]
    arrays: list[Any] = [key for key in keys if _is_index(key)]
    places = [k for k, key in enumerate(keys) if _is_index(key)]
    axes = tuple([k - keys[:k].count(None) for k in places])
    what = name_of(a)
    a = _basic(a, rest)  # every key, None included, is now one axis
    neighbors = places == list(range(places[0], places[0] + len(places)))
    others = [k for k in range(len(a.shape)) if k not in places]
    lengths = [a.shape[k] for k in places]
    table = reshape(permute(a, (*places, *others)), (size(lengths), *(a.shape[k] for k in others)))
    indices = _flat_indices(arrays, lengths, a, axes, what)
    rows = gather(table, indices)
    if not neighbors:
        return rows
    count = len(indices.shape)
    lead = places[0]
    order = [*range(count, count + lead), *range(count), *range(count + lead, count + len(others))]
    return permute(rows, order)


def _is_index(key: Index) -> bool:
    return key is not None and not isinstance(key, slice)


def _flat_indices(
    arrays: Sequence[Node | int] | list[Node],
    lengths: Sequence[Dim],
    a: Node,
    axes: tuple[int, ...],
    what: str,
) -> Node:
    """Row-major positions in the indexed axes, from one array of positions for each."""
    nodes = [
        key if isinstance(key, Node) else dimension(position(key, length, a))
        for key, length in zip(arrays, lengths, strict=True)
    ]
    if all(n.op.stored for n in nodes) and all(
        isinstance(d, int) for d in lengths
    ):
        return _constant_indices(nodes, lengths, a)
    return positions(tuple(nodes), tuple(lengths), axes, what)


def _constant_indices(nodes: Sequence[Node], lengths: Sequence[Dim], a: Node) -> Node:
    """The same for known positions; they are checked here."""
    values = []
    for node, length in zip(nodes, lengths, strict=True):
        value = _constant_array(node.op)
        if np.any((value < -length) | (value >= length)):
            raise ShapeError(
                f"an index array contains positions outside of {-length}..{length - 1} of a traced value of "
                f"shape {format_shape(a.shape)}"
            )
        values.append(np.where(value < 0, value + length, value))
    return array_constant(np.ravel_multi_index(np.broadcast_arrays(*values), tuple(lengths)))


def _constant_array(op: Any) -> np.ndarray:
    return op.array if isinstance(op, ArrayConstant) else np.asarray(op.value)

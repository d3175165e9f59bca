"""Slices of traced values and assignment to them, ``y[key] = value``: a new value with exchanged elements.

In NumPy an assignment also changes the arrays that share memory with y. A slice of a traced value is a view
of it: an assignment to one changes both. Reshaped and transposed forms are not views here. So an assignment
to such a form, or to a value with such a form in use, is refused: its result could differ from NumPy's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from symad.core.arrays import Array, ArrayLike
from symad.core.dims import format_shape, is_concrete, size
from symad.core.graph import Node
from symad.errors import ShapeError, TraceError
from symad.ops.arrays.gathering import ScatterAdd, gather
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.shaping import broadcast_to, flatten, reshape
from symad.ops.basic.sources import ArrayConstant, array_constant, constant, iota
from symad.ops.elementwise.selection import compare, select
from symad.tracing.elements.chosen import chosen_by, chosen_values, mask_of
from symad.tracing.elements.indexing import getitem
from symad.tracing.proxies.array_protocol import check_owned, read_elements, write_elements
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import as_node, broadcast, is_condition, number

if TYPE_CHECKING:
    from symad.core.arrays import Index
    from symad.core.dims import Shape
    from symad.tracing.elements.chosen import Chosen


@write_elements.register(Proxy)
def write_elements_traced(y: Proxy, key: Index, value: Array | float) -> None:
    """Every name of y refers to the new elements; a slice that was changed in place is written already."""
    if not (isinstance(value, Proxy) and value._is_slice(y, key)):  # x[a:b] += y has written to x
        what = "an assignment to elements of"
        check_owned(y, what)
        y._become(assigned(y._node, key, value), what)


def add_to_elements(y: Proxy, key: Index, value: ArrayLike, sign: int) -> None:
    """``np.add.at(y, key, value)``, or ``np.subtract.at`` for sign -1."""
    what = "np.add.at or np.subtract.at of"
    check_owned(y, what)
    y._become(added(y._node, key, mul(constant(sign), number(value))), what)


def added(y: Node, key: Any, value: Node) -> Node:
    """The array y with values added to the elements at a key, each as often as the key names it.

    Raises:
        ShapeError: the key or the shape of the value does not fit.
    """
    key, what = mask_of(key), "np.add.at(y, key, value)"
    if (mask := _traced_mask(key)) is not None:
        kept = broadcast_to(_widened(mask, y), y.shape)
        return add(y, select(*broadcast(kept, value, constant(0))))
    places: Any = _known_places(y, key, what)
    chosen = getitem(reshape(iota(size(y.shape)), y.shape), key) if places is None else array_constant(places)
    values = flatten(_fitted(value, chosen.shape, y, what))
    sums = Node.of(ScatterAdd(size(y.shape)), (flatten(chosen), values))
    return add(y, reshape(sums, y.shape))


def assigned(y: Node, key: Any, value: ArrayLike) -> Node:
    """The array y with the elements at a key exchanged; if an element occurs twice, the last counts.

    Raises:
        ShapeError: the key or the shape of the value does not fit.
        TraceError: a traced mask with more than one value, or arrays of positions that are not known.
    """
    key = mask_of(key)
    mask = _traced_mask(key)
    new = None if mask is None else chosen_values(value, mask)
    if new is not None and mask is not None:
        return select(*broadcast(_widened(mask, y), new, y))
    new = number(value)
    if mask is not None:
        if len(new.shape) > len(y.shape) - len(mask.shape):
            raise TraceError(
                "y[mask] = values with a traced mask needs one number, or elements chosen by the same mask "
                "as in y[mask] = x[mask]: how many elements are chosen depends on data; use "
                "np.where(mask, values, y) with values in the shape of y"
            )
        return select(*broadcast(_widened(mask, y), new, y))
    chosen_places = _known_places(y, key, "y[key] = value")
    if chosen_places is not None:
        return _known(y, chosen_places, new)
    keys = key if isinstance(key, tuple) else (key,)
    if any(isinstance(k, list) or getattr(k, "ndim", 0) for k in keys):
        raise TraceError(
            "y[positions] = values needs known positions and axes of known length: one element may be named "
            "twice; use np.where, or one position at a time"
        )
    count = size(y.shape)
    chosen = getitem(reshape(iota(count), y.shape), key)
    places_, values = flatten(chosen), flatten(_fitted(new, chosen.shape, y))
    ones = broadcast_to(constant(1), values.shape)
    hits, made = (Node.of(ScatterAdd(count), (places_, v)) for v in (ones, values))
    return reshape(select(compare(">", hits, constant(0)), made, flatten(y)), y.shape)


def _known_places(y: Node, key: Any, what: str) -> np.ndarray | None:
    """The places of the elements at a key in the flattened y; None if they depend on data or symbols."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(isinstance(k, Proxy) for k in keys) or not is_concrete(y.shape):
        return None
    places = np.arange(int(size(y.shape))).reshape(tuple(map(int, y.shape)))
    try:
        return np.asarray(places[key])
    except IndexError as error:
        raise ShapeError(f"{what} of a traced y of shape {format_shape(y.shape)}: {error}") from None


def _known(y: Node, chosen: np.ndarray, new: Node) -> Node:
    """Elements at known positions, by one gather from the old and the new ones."""
    count = int(size(y.shape))
    values = flatten(_fitted(new, chosen.shape, y))
    source = np.arange(count)
    source[chosen.ravel()] = count + np.arange(chosen.size)
    rows = gather(concatenate([flatten(y), values]), array_constant(source))
    return reshape(rows, y.shape)


def _fitted(new: Node, shape: Shape, y: Node, what: str = "y[key] = value") -> Node:
    """The value in the shape of the elements that a key names, without leading axes of length 1."""
    while len(new.shape) > len(shape) and new.shape[0] == 1:
        new = reshape(new, new.shape[1:])
    try:
        return broadcast_to(new, tuple(shape))
    except ShapeError:
        raise ShapeError(
            f"{what} of a traced y of shape {format_shape(y.shape)}: the key names elements of shape "
            f"{format_shape(tuple(shape))}, the value has shape {format_shape(new.shape)}"
        ) from None


def _traced_mask(key: Index) -> Node | None:
    """A key that is a traced array of truth values."""
    if not isinstance(key, Proxy):
        return None
    node = as_node(key)
    return node if is_condition(node) and not isinstance(node.op, ArrayConstant) else None


def _widened(mask: Node, y: Node) -> Node:
    """A mask over the first axes as one over all axes."""
    kept = len(mask.shape)
    if mask.shape != y.shape[:kept]:
        raise ShapeError(
            f"y[mask] = value: the mask has shape {format_shape(mask.shape)}, y {format_shape(y.shape)}"
        )
    return broadcast_to(reshape(mask, (*mask.shape, *(1,) * (len(y.shape) - kept))), y.shape)


# ---- slices: views of their array, like those of NumPy --------------------------------------------


class SliceView(Proxy):
    """A slice of another value, ``array[key]``, as a view: an assignment to one of the two changes both."""

    __slots__ = ("_array", "_key", "_seen")

    def __init__(self, node: Node, array: Proxy, key: Index) -> None:
        """``node``: the current value of the slice."""
        super().__init__(node)
        self._array, self._key, self._seen = array, key, array._current()

    @property
    def _node(self) -> Node:
        self._current()
        return super()._node

    def _current(self) -> Node:
        now = self._array._current()
        if now is not self._seen:
            self._value, self._seen = getitem(now, self._key), now
        return self._value

    def _become(self, node: Node, what: str) -> None:
        check_owned(self._array, what)
        self._array._become(assigned(self._array._current(), self._key, Proxy(node)), what)
        self._value, self._seen = node, self._array._current()

    def _note(self, view: Proxy) -> None:
        super()._note(view)
        self._array._note(view)

    def _is_slice(self, array: Proxy, key: Index) -> bool:
        return self._array is array and type(self._key) is type(key) and bool(self._key == key)


@read_elements.register(Proxy)
def read_elements_traced(array: Proxy, key: Index) -> Proxy | Chosen:
    """A number, a slice that is a view of the array, or the elements that a condition selects."""
    if (elements := chosen_by(array, key)) is not None:
        return elements
    found = getitem(array._node, key)
    return SliceView(found, array, key) if found.shape and _is_basic(key) else Proxy(found)


def _is_basic(key: Index) -> bool:
    """True if a key gives a view in NumPy: no lists and no arrays."""
    keys = key if isinstance(key, tuple) else (key,)
    return not any(isinstance(k, list) or getattr(k, "ndim", 0) for k in keys)

"""The elements of an array at which a traced condition holds, as ``x[x > 0]`` selects them.

Their number depends on data. The whole array is stored with the condition: elementwise functions act on
the whole array, reductions on the selected elements, and ``y[mask] = f(x[mask])`` is a selection.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike

from symad.core.arrays import Array
from symad.core.graph import Node
from symad.errors import TraceError
from symad.ops.basic.sources import ArrayConstant, iota
from symad.tracing.proxies.array_protocol import Function, function_of_numpy
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.wrapped import Wrapped, is_condition, number
from symad.tracing.users_line import users_line

if TYPE_CHECKING:
    from symad.core.arrays import ArrayLike, Index

ELEMENTWISE = {
    np.where, np.clip, np.isclose, np.nan_to_num, np.copy, np.ones_like, np.zeros_like, np.full_like, np.real,
    np.round, np.select, np.empty_like,
}  # fmt: skip
"""Functions that are elementwise, as ufuncs are."""

REDUCTIONS: dict[Function, dict[str, float]] = {
    np.sum: {}, np.mean: {}, np.prod: {}, np.any: {}, np.all: {},
    np.max: {"initial": -np.inf}, np.min: {"initial": np.inf},
}  # fmt: skip
"""Functions with an option ``where=``, and the further options that they need with it."""

BY_UFUNC = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min}
"""The reductions that are methods of ufuncs."""


class Chosen(NDArrayOperatorsMixin):
    """``values[mask]``: the mask covers the first axes of the values."""

    __slots__ = ("is_place", "mask", "values")

    def __init__(self, values: Any, mask: Proxy, is_place: bool = False) -> None:
        """``is_place``: true if the values are positions on an axis of the mask, as np.nonzero finds them."""
        self.values, self.mask, self.is_place = values, mask, is_place

    @property
    def ndim(self) -> int:
        """The number of axes."""
        axes: int = self.values.ndim - self.mask.ndim + 1
        return axes

    @property
    def dtype(self) -> np.dtype[Any]:
        """Double precision, as for every traced value."""
        return self.values.dtype

    @property
    def size(self) -> Proxy:
        """The number of elements, a traced value."""
        return np.sum(Proxy(number(np.broadcast_to(self._mask(), self.values.shape))))

    def __getattr__(self, name: str) -> Any:
        if hasattr(np, name) and (function := function_of_numpy(name)) in REDUCTIONS:
            return lambda axis=None: self._reduced(function, axis)
        if name in ("shape", "flat", "T", "reshape", "tolist"):
            self._refuse(f"the attribute {name!r}")
        raise AttributeError(f"elements chosen by a condition have no attribute {name!r}")

    def astype(self, dtype: DTypeLike, **options: bool | str) -> Chosen:
        """The same elements, for floating-point types."""
        return Chosen(self.values.astype(dtype), self.mask)

    def copy(self, order: str = "C") -> Chosen:
        """The same elements."""
        return Chosen(self.values, self.mask)

    def __len__(self) -> int:
        self._refuse("the length")

    def __bool__(self) -> bool:
        self._refuse("the truth value")

    def __iter__(self) -> NoReturn:
        self._refuse("a loop")

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NoReturn:
        self._refuse("a NumPy array")

    def __getitem__(self, key: Index | Chosen) -> Chosen:
        """Elements selected again, by a condition on the selected ones."""
        if isinstance(key, Chosen) and key.mask._node is self.mask._node and not key.is_place:
            return Chosen(self.values, self.mask & key.values)
        self._refuse("an element or slice")

    def __repr__(self) -> str:
        return f"<elements of {self.values!r} at which a condition holds>"

    def _refuse(self, what: str) -> NoReturn:
        raise TraceError(
            f"{what} of elements that a condition chooses, as in x[x > 0]{users_line()}: how many there are "
            "depends on data; keep all elements: np.where(mask, x, other), or a sum with where=mask"
        )

    def _mask(self) -> Array:
        """The mask with an axis of length 1 for each further axis of the values."""
        return self.mask.reshape(*self.mask.shape, *(1,) * (self.values.ndim - self.mask.ndim))

    # ---- NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Elementwise functions on the whole arrays, and reductions of the selected elements."""
        out = options.pop("out", None)
        if method == "reduce" and not out and ufunc in BY_UFUNC:
            return self._reduced(BY_UFUNC[ufunc], options.get("axis", 0))
        if method != "__call__" or options:
            self._refuse(f"np.{ufunc.__name__}.{method}")
        found = Chosen(ufunc(*map(self._whole, inputs)), self.mask)
        if not out:
            return found
        if out[0] is not self:
            self._refuse("a result written into another array")
        self.values, self.is_place = found.values, False
        return self

    def __array_function__(
        self, function: Function, types: Collection[type], args: Sequence[ArrayLike], options: dict[str, Any]
    ) -> Any:
        """The functions of NumPy that are elementwise, or reductions."""
        if function in REDUCTIONS and args[0] is self and set(options) <= {"axis"}:
            return self._reduced(function, *args[1:], **options)
        if function in ELEMENTWISE:
            whole = {k: self._whole(v) for k, v in options.items()}
            return Chosen(function(*map(self._whole, args), **whole), self.mask)
        if function is np.size:
            return self.size
        self._refuse(f"np.{function.__name__}")

    def _reduced(self, function: Any, axis: Any = None) -> Any:
        axes = tuple(range(self.mask.ndim))
        if axis not in (None, 0) or (axis == 0 and self.ndim < 1):
            self._refuse(f"np.{function.__name__}(axis={axis})")
        over = axes if axis == 0 else None
        where = np.broadcast_to(self._mask(), self.values.shape)
        if function in (np.any, np.all):
            neutral = function is np.all
            return function(np.where(where, self.values, neutral) != 0, axis=over)
        return function(self.values, axis=over, where=where, **REDUCTIONS[function])

    def _whole(self, value: Any) -> Any:
        """An operand of an elementwise function, in the shape of the whole array or without its axes."""
        if isinstance(value, (list, tuple)):
            return [self._whole(v) for v in value]
        if not isinstance(value, Chosen):
            if np.ndim(value) > self.ndim - 1:
                self._refuse("an operation, beside an array,")
            return value
        if value.mask._node is not self.mask._node:
            self._refuse("an operation, beside those of another condition,")
        return value.values


def chosen(values: Proxy, key: Index | Chosen) -> Chosen | None:
    """``values[key]`` for a traced mask, or for positions from a condition; None for other keys."""
    places = _places(key)
    if places is not None:
        return Chosen(values[tuple(p.values for p in places)], places[0].mask)
    if isinstance(key, Proxy) and key.shape == values.shape[: key.ndim] and key.ndim:
        return Chosen(values, key)
    return None


def chosen_by(a: Proxy, key: Index | Chosen) -> Chosen | None:
    """The elements that a traced mask, or positions from a condition, select; None for other keys."""
    first = key[0] if isinstance(key, tuple) and key else key
    if isinstance(first, (int, slice, np.ndarray)) or first is None or first is Ellipsis:
        return None
    if isinstance(first, Wrapped):
        node = first._node
        if not node.shape or not is_condition(node) or isinstance(node.op, ArrayConstant):
            return None
    return chosen(a, key) if isinstance(first, (Wrapped, Chosen)) else None


def _places(key: Index) -> list[Chosen] | None:
    """The positions in a key that np.nonzero, np.where or np.flatnonzero made of one condition."""
    keys = key if isinstance(key, tuple) else (key,)
    if not keys or not all(isinstance(k, Chosen) for k in keys):
        return None
    if any(k.mask._node is not keys[0].mask._node for k in keys):
        keys[0]._refuse("an index by two conditions")
    return list(keys)


def mask_of(key: Index) -> Any:
    """The condition of a key, for an assignment to the elements that it selects; other keys unchanged."""
    places = _places(key)
    if places is None:
        return key
    if not all(p.is_place for p in places) or len(places) != places[0].mask.ndim:
        places[0]._refuse("an assignment to positions")
    return places[0].mask


def nonzero(condition: Proxy) -> tuple[Chosen, ...]:
    """The positions at which a condition holds, one part for each axis."""
    shape = condition.shape
    grids = []
    for axis, length in enumerate(shape):
        line = Proxy(iota(length))
        spread = line.reshape(tuple(length if k == axis else 1 for k in range(len(shape))))
        grids.append(Chosen(np.broadcast_to(spread, shape), condition, is_place=True))
    return tuple(grids)


def chosen_values(value: ArrayLike, mask: Node) -> Node | None:
    """The whole array of elements selected by this mask; None for a value of another kind.

    Raises:
        TraceError: they were selected by another condition.
    """
    if not isinstance(value, Chosen):
        return None
    if value.mask._node is not mask:
        value._refuse("an assignment, to elements of another condition,")
    return number(value.values)

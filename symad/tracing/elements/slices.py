"""Slices of traced values, which are views of their array, like slices of NumPy's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symad.core.graph import Node
from symad.tracing.elements.assigning import assigned
from symad.tracing.elements.chosen import chosen_by
from symad.tracing.elements.indexing import getitem
from symad.tracing.proxies.array_protocol import read_elements
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.sharing import check_owned

if TYPE_CHECKING:
    from symad.core.arrays import Index
    from symad.tracing.elements.chosen import Chosen


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

"""Arrays that the user's code makes while it is traced, ``v = np.zeros(n)``, and fills with traced values.

Until a traced value is written into it, a `Filled` is an array like any other. From then on it stands for a
traced value, and the memory of the array holds NaN, so that compiled code that reads this memory
cannot mistake it for a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn
from weakref import ref

import numpy as np

from symad.core.arrays import Array, ArrayLike, Index
from symad.core.dims import format_shape
from symad.errors import TraceError
from symad.ops.basic.sources import array_constant
from symad.tracing.proxies.array_protocol import Function
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.sessions import SESSION, Session
from symad.tracing.proxies.wrapped import Wrapped
from symad.tracing.users_line import users_line


class Filled(np.ndarray):
    """An array made while a function is traced; it may be given traced elements."""

    _traced: Proxy | None
    _owner: Session
    _root: Filled | None
    _views: list[ref[Filled]]
    _source: tuple[Filled, Index] | None

    def __array_finalize__(self, source: ArrayLike) -> None:
        """NumPy calls this for each new array, also for views and copies of another one."""
        self._traced, self._owner, self._root, self._views = None, SESSION.get(), None, []
        self._source = None
        if isinstance(source, Filled) and np.may_share_memory(self, source):
            self._root = source if source._root is None else source._root
            self._root._views.append(ref(self))

    def __getattribute__(self, name: str) -> Any:
        """Attributes and methods are those of the traced value, if there is one."""
        if not name.startswith("_"):
            traced = object.__getattribute__(self, "__dict__").get("_traced")
            if traced is not None:
                return getattr(traced, name)
        return super().__getattribute__(name)

    # ---- elements

    def __getitem__(self, key: Any) -> Any:
        if self._traced is not None or holds_traced(key):
            return as_traced(self)[unfilled(key)]
        found = super().__getitem__(key)
        if isinstance(found, Filled) and found._root is not None:
            found._source = (self, key)
        return found

    def __setitem__(self, key: Any, value: ArrayLike) -> None:
        if self._traced is None and not holds_traced((key, value)):
            super().__setitem__(key, value)
        else:
            self._become_traced()[unfilled(key)] = unfilled(value)

    def _become_traced(self) -> Proxy:
        """The traced value that this array stands for from now on; its slices stand for slices of it.

        Raises:
            TraceError: a reshaped form shares its memory, or it belongs to another function.
        """
        if self._traced is not None:
            return self._traced
        if self._owner is not SESSION.get():
            self._refuse(f"it belongs to {self._owner.title}, around the function that is traced")
        whole = self if self._root is None else self._root
        views = [view for reference in whole._views if (view := reference()) is not None]
        if any(view._source is None for view in views):
            self._refuse("a reshaped or transposed form shares its memory; assign to a copy of it")
        plain = np.array(whole, subok=False)
        np.ndarray.__setitem__(whole, ..., np.nan)
        whole._traced = Proxy(array_constant(plain))
        for view in views:  # in the order in which they were made
            if view._source is not None:
                array, key = view._source
                view._traced = as_traced(array)[key]
        return as_traced(self)

    def _refuse(self, why: str) -> NoReturn:
        raise TraceError(
            f"a traced value was to be written into an array of shape {format_shape(np.shape(self))}"
            f"{users_line()}: {why}"
        )

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(np.shape(self)[0])) if self._traced is None else iter(self._traced)

    # ---- NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """A ufunc on this array; a result that it writes into an array is assigned to that array."""
        out = options.pop("out", None) or ()
        if not (holds_traced(inputs) or holds_traced(tuple(options.values())) or holds_traced(out)):
            plain = tuple(_plain(v) for v in inputs)
            if out:
                options["out"] = tuple(_plain(v) for v in out)
            found = getattr(ufunc, method)(*plain, **options)
            return refilled(found) if not out else out[0] if len(out) == 1 else out
        if method == "at" and isinstance(inputs[0], Filled):
            inputs = (inputs[0]._become_traced(), *inputs[1:])
        found = getattr(ufunc, method)(*map(unfilled, inputs), **{k: unfilled(v) for k, v in options.items()})
        return written(found, out) if out else found

    def __array_function__(
        self, function: Function, types: Iterable[type], args: Iterable[Any], options: Mapping[str, Any]
    ) -> Array | bool:
        """A function of NumPy on this array."""
        if holds_traced(args) or holds_traced(tuple(options.values())):
            return function(*unfilled(args), **{k: unfilled(v) for k, v in options.items()})
        return super().__array_function__(function, types, args, options)


def _delegated(name: str) -> Callable[..., Any]:
    """A special method that delegates to the traced value, if there is one."""
    plain = getattr(np.ndarray, name)

    def method(self: Filled, *args: Any) -> Any:
        return (
            plain(self, *args)
            if self._traced is None
            else getattr(type(self._traced), name)(self._traced, *args)
        )

    return method


for _name in ("__bool__", "__float__", "__int__", "__complex__", "__index__", "__repr__"):
    setattr(Filled, _name, _delegated(_name))


def _plain(value: Array | int) -> Array | int:
    return value.view(np.ndarray) if isinstance(value, Filled) else value


def refilled(found: Any) -> Any:
    """A new array of floating-point numbers as a `Filled`; any other object unchanged."""
    own = type(found) is np.ndarray and found.dtype.kind == "f" and found.ndim
    return found.view(Filled) if own else found


def written(found: Array | tuple[Array, ...], out: tuple[Array, ...]) -> Array | tuple[Array, ...]:
    """Assign the results of a function to its ``out`` arrays; returns these arrays."""
    results = found if isinstance(found, tuple) else (found,)
    for target, result in zip(out, results, strict=True):
        if isinstance(target, (Filled, Proxy)):
            target[...] = result
        elif target is not None:
            raise TraceError(
                f"a traced value was to be written into a NumPy array{users_line()} that was made outside of "
                "the traced function; write a = a + b instead of a += b or out=, or copy the array first"
            )
    return out[0] if len(out) == 1 else out


def as_traced(array: Filled) -> Proxy:
    """The traced value that an array stands for, or its numbers as a constant."""
    return Proxy(array_constant(np.array(array, subok=False))) if array._traced is None else array._traced


def holds_traced(value: ArrayLike) -> bool:
    """True if a value is traced, or a list or tuple holds one that is."""
    if isinstance(value, (list, tuple)):
        return any(map(holds_traced, value))
    return isinstance(value, Wrapped) or getattr(value, "_traced", None) is not None


def unfilled(value: ArrayLike) -> Any:
    """A value, or lists and tuples of values, with the traced values for which arrays stand."""
    if isinstance(value, Filled):
        return _plain(value) if value._traced is None else value._traced
    if isinstance(value, (list, tuple)) and any(isinstance(v, (Filled, list, tuple)) for v in value):
        return type(value)(map(unfilled, value)) if not hasattr(value, "_fields") else value
    return value

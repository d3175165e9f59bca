"""Interning: equal constructor arguments give the same object.

Ops, nodes and graphs are immutable values that are compared very often. Interning turns equality into
identity, so hashing and comparing cost nothing and a common subexpression never exists twice.
"""

from __future__ import annotations

import atexit
from dataclasses import MISSING, fields
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar
from weakref import ref

from symad.core.process import hold_while_forking

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

K = TypeVar("K")
V = TypeVar("V")

LOCK = RLock()
hold_while_forking(LOCK)


class InternedRef(ref[Any]):
    """A weak reference that stores its key."""

    __slots__ = ("key",)
    key: Any


class WeakTable(dict[Any, InternedRef]):
    """A map from keys to weak references to values; an entry disappears after its value. Used under `LOCK`.

    It does the same as `WeakValueDictionary` in half of the time, which matters because nodes and ops are
    looked up for every operation. Values die in any thread and at any moment, and the next call of `keep`
    removes their entries. The death itself runs no Python code: an exception in a callback is printed and
    lost, so that an interrupt of the user would be, and a thread that drops a value may hold other locks.

    Entries stay when Python exits. The removal of an entry needs the hash of its key, and SymPy imports a
    module for the hash of an undefined function; while Python unloads its modules, this would print an error.
    """

    def __init__(self) -> None:
        """An empty table."""
        super().__init__()
        self._dead: list[InternedRef] = []
        self._alive_at_exit: list[Any] | None = None
        atexit.register(self._hold)

    def keep(self, key: Any, value: Any) -> None:
        """Store a value."""
        entry = InternedRef(value, self._dead.append)
        entry.key = key
        self[key] = entry
        if self._dead:
            self._remove()

    def _remove(self) -> None:
        """Remove the entries of dead values; values that die with their keys are removed by the same loop."""
        if self._alive_at_exit is not None:
            return
        while self._dead:
            entry = self._dead.pop()
            if self.get(entry.key) is entry:
                del self[entry.key]
            del entry  # and with it its key, whose values may die

    def _hold(self) -> None:
        with LOCK:
            self._alive_at_exit = [entry() for entry in list(self.values())]


class WeakMemo(Generic[K, V]):
    """Facts about objects, by identity; a fact disappears after its object.

    As `WeakKeyDictionary`, but the death of an object runs no Python code, as in `WeakTable`.
    """

    def __init__(self) -> None:
        """No facts."""
        self._facts: dict[int, tuple[InternedRef, V]] = {}
        self._dead: list[InternedRef] = []

    def get(self, key: K) -> V | None:
        """The fact about an object, or None."""
        found = self._facts.get(id(key))
        return found[1] if found is not None and found[0]() is key else None

    def __setitem__(self, key: K, value: V) -> None:
        """Store the fact about an object."""
        entry = InternedRef(key, self._dead.append)
        entry.key = id(key)
        with LOCK:
            self._facts[entry.key] = entry, value
            while self._dead:
                entry = self._dead.pop()
                if entry.key in self._facts and self._facts[entry.key][0] is entry:
                    del self._facts[entry.key]

    def __contains__(self, key: K) -> bool:
        found = self._facts.get(id(key))
        return found is not None and found[0]() is key

    def __getitem__(self, key: K) -> V:
        return self._facts[id(key)][1]

    def __len__(self) -> int:
        return len(self._facts)


@cache
def _defaults(cls: type[DataclassInstance]) -> tuple[Any, ...]:
    """The default of each field of a dataclass."""
    return tuple(field.default for field in fields(cls))


@cache
def field_names(cls: type[DataclassInstance]) -> tuple[str, ...]:
    """The names of the fields of a dataclass."""
    return tuple(field.name for field in fields(cls))


class Interned(type):
    """Metaclass of frozen classes for which equal instances are one object.

    The key is the class with the positional constructor arguments; they must be hashable. Entries
    are weak: an instance without references disappears.
    """

    _instances: ClassVar[WeakTable] = WeakTable()

    def __call__(cls, *args: Any) -> Any:
        """The instance for ``args``, existing or new; omitted arguments take their defaults."""
        defaults = _defaults(cls)
        if len(args) < len(defaults):
            args += defaults[len(args) :]
            if MISSING in args:
                raise TypeError(f"{cls.__name__} takes {len(defaults)} fields; {args} leave some out")
        key = (cls, args)
        with LOCK:
            entry = Interned._instances.get(key)
            found = None if entry is None else entry()
            if found is None:
                found = super().__call__(*args)
                Interned._instances.keep(key, found)
            return found

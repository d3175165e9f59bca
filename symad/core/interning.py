"""Interning: equal constructor arguments give the same object.

Ops, nodes and graphs are immutable values that are compared very often. Interning turns equality into
identity, so hashing and comparing cost nothing and a common subexpression never exists twice.
"""

from __future__ import annotations

import atexit
from dataclasses import MISSING, fields
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import ref

from symad.core.forking import hold_while_forking

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LOCK = RLock()
hold_while_forking(LOCK)


class Entry(ref[Any]):
    """A weak reference that stores its key."""

    __slots__ = ("key",)
    key: Any


class WeakTable(dict[Any, Entry]):
    """A map from keys to weak references to values; an entry disappears with its value. Used under `LOCK`.

    It does the same as `WeakValueDictionary` in half of the time, which matters because nodes and ops are
    looked up for every operation. Values die in any thread and at any moment. Their entries are removed at
    once if no thread holds the lock, otherwise by the next call of `keep`. No thread waits, since a thread
    that drops a value may hold other locks.

    Entries stay when Python exits. The removal of an entry needs the hash of its key, and SymPy imports a
    module for the hash of an undefined function; while Python unloads its modules, this would print an error.
    """

    def __init__(self) -> None:
        """An empty table."""
        super().__init__()
        self._dead: list[Entry] = []
        self._is_removing = False
        self._alive_at_exit: list[Any] | None = None
        atexit.register(self._hold)

    def keep(self, key: Any, value: Any) -> None:
        """Store a value."""
        entry = Entry(value, self._forget)
        entry.key = key
        self[key] = entry
        if self._dead:
            self._remove()

    def _forget(self, entry: Entry) -> None:
        """The callback for an entry whose value has died."""
        self._dead.append(entry)
        if not self._is_removing and LOCK.acquire(False):
            try:
                self._remove()
            finally:
                LOCK.release()

    def _remove(self) -> None:
        """Remove the entries of dead values; values that die with their keys are removed by the same loop."""
        if self._is_removing or self._alive_at_exit is not None:
            return
        self._is_removing = True
        try:
            while self._dead:
                entry = self._dead.pop()
                if self.get(entry.key) is entry:
                    del self[entry.key]
        finally:
            self._is_removing = False

    def _hold(self) -> None:
        with LOCK:
            self._alive_at_exit = [entry() for entry in list(self.values())]


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

"""Interning: equal constructor arguments give the same object.

Ops, nodes and graphs are immutable values that are compared all the time. Interning makes equality
identity, so hashing and comparing cost nothing and a common subexpression never exists twice.
"""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache
from threading import RLock
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from symad.core.forking import hold_while_forking

LOCK = RLock()
hold_while_forking(LOCK)


@cache
def _defaults(cls: Any) -> tuple[Any, ...]:
    """The default of each field of a dataclass."""
    return tuple(field.default for field in fields(cls))


class Interned(type):
    """Metaclass of frozen classes of which equal instances are one instance.

    The key is the class with the positional constructor arguments; they must be hashable. Entries
    are weak: an instance nobody holds disappears.
    """

    _instances: ClassVar[WeakValueDictionary[tuple[Any, ...], Any]] = WeakValueDictionary()

    def __call__(cls, *args: Any) -> Any:
        """The instance made from ``args``, old or new; left-out arguments take their defaults."""
        defaults = _defaults(cls)
        if len(args) < len(defaults):
            args += defaults[len(args) :]
            if MISSING in args:
                raise TypeError(f"{cls.__name__} takes {len(defaults)} fields; {args} leave some out")
        key = (cls, args)
        with LOCK:
            found = Interned._instances.get(key)
            if found is None:
                found = Interned._instances[key] = super().__call__(*args)
            return found

"""Interning: equal constructor arguments give the same object.

Ops, nodes and graphs are immutable values that are compared all the time. Interning makes equality
identity, so hashing and comparing cost nothing and a common subexpression never exists twice.
"""

from __future__ import annotations

import atexit
from collections.abc import MutableMapping
from dataclasses import MISSING, fields
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakValueDictionary

from symad.core.forking import hold_while_forking

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

LOCK = RLock()
hold_while_forking(LOCK)


def held_at_exit(owner: type, name: str) -> None:
    """At exit of Python, put a plain dictionary in the place of a weak one that is an attribute of a class.

    A weak dictionary removes entries of what dies while modules are taken apart. That takes the hash of the
    key, and SymPy imports a module for the hash of an undefined function; Python would print an error.
    """

    def hold() -> None:
        with LOCK:
            setattr(owner, name, dict(getattr(owner, name).items()))

    atexit.register(hold)


@cache
def _defaults(cls: type[DataclassInstance]) -> tuple[Any, ...]:
    """The default of each field of a dataclass."""
    return tuple(field.default for field in fields(cls))


class Interned(type):
    """Metaclass of frozen classes of which equal instances are one instance.

    The key is the class with the positional constructor arguments; they must be hashable. Entries
    are weak: an instance nobody holds disappears.
    """

    _instances: ClassVar[MutableMapping[tuple[Any, ...], Any]] = WeakValueDictionary()

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


held_at_exit(Interned, "_instances")

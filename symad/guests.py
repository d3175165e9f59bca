"""Guests: parts of the library that the core does not know. They are found by entry points.

A guest is a folder that can be taken away: everything else works as before, and what asks for it says in one
sentence what is missing. Another distribution brings a guest by an entry point of the same group.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from types import ModuleType

from symad.errors import SymadError

PARTS, COMMANDS = "symad.guests", "symad.commands"
"""The groups of entry points: parts by name, and modules that add a command to the command line."""


@cache
def guest(name: str) -> ModuleType | None:
    """The module of a guest; None where it is not installed."""
    for entry in entry_points(group=PARTS, name=name):
        try:
            found: ModuleType = entry.load()
            return found
        except ImportError:
            continue
    return None


def asked(name: str, what: str) -> ModuleType:
    """The module of a guest that a user asked for by ``what``.

    Raises:
        SymadError: it is not installed.
    """
    found = guest(name)
    if found is None:
        raise SymadError(f"{what} needs the part {name!r} of symad, which is not installed here")
    return found


def commands() -> list[ModuleType]:
    """The modules of guests that add a command, in the order of their names; those that load."""
    found = []
    for entry in sorted(entry_points(group=COMMANDS), key=lambda entry: entry.name):
        try:
            found.append(entry.load())
        except ImportError:
            continue
    return found

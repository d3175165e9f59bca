"""Guests: parts of the library that the core does not know.

A guest is a folder that can be taken away: everything else works as before, and what asks for it says in one
sentence what is missing. The core names no guest in an import; this table is the one place that knows them.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

from symad.errors import SymadError

PARTS = {"coq": "symad.verification.coq", "mistakes": "symad.verification.mistakes.asking"}
"""The modules of guests that others ask for by name."""

COMMANDS = ("symad.audits.command", "symad.corpus.command")
"""The modules of guests that add a command to the command line."""


@cache
def guest(name: str) -> ModuleType | None:
    """The module of a guest; None where it is not installed."""
    return _loaded(PARTS[name])


def asked(name: str, what: str) -> ModuleType:
    """The module of a guest that a user asked for by ``what``.

    Raises:
        SymadError: it is not installed.
    """
    found = guest(name)
    if found is None:
        raise SymadError(f"{what} needs the part {PARTS[name]} of symad, which is not installed here")
    return found


def commands() -> list[ModuleType]:
    """The modules that add a command, those that are installed."""
    return [found for name in COMMANDS if (found := _loaded(name)) is not None]


def _loaded(name: str) -> ModuleType | None:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise  # the guest is here, and lacks something itself
        return None

"""Names in generated code: safe Python identifiers, as close as possible to what the user wrote."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterable
from functools import lru_cache

import sympy

from symad.core.identifiers import identifier, short_name

__all__ = ["RESERVED", "Names", "identifier"]

RESERVED = {
    *keyword.kwlist,
    *keyword.softkwlist,
    *dir(builtins),
    "np",
    "numpy",
    "cp",
    "cupy",
    "math",
    "types",
    "scipy",
}


_identifier = lru_cache(maxsize=1024)(identifier)
"""The identifier of a name; cached, since thousands of values have few different name stems."""


class Names:
    """Unique identifiers for the symbols and values of one generated module."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        """``reserved`` are names that the generated code uses itself."""
        self.taken = RESERVED | set(reserved)
        self._of: dict[sympy.Basic, str] = {}
        self._numbers: dict[str, int] = {}
        """For each name that was taken, the first number that has not been tried."""

    def unique(self, wanted: str) -> str:
        """A new identifier, ``wanted`` if it is free."""
        name = self.free(wanted)
        self.taken.add(name)
        return name

    def free(self, wanted: str) -> str:
        """The identifier that `unique` would give; it is not reserved."""
        base = _identifier(wanted)
        name = f"{base}_" if base in RESERVED else base
        if name not in self.taken:
            return name
        number = self._numbers.get(base, 2)
        while (name := f"{base}_{number}") in self.taken:
            number += 1
        self._numbers[base] = number
        return name

    def of(self, symbol: sympy.Basic) -> str:
        """The identifier of a symbol, always the same one."""
        if symbol not in self._of:
            self._of[symbol] = self.unique(short_name(symbol))
        return self._of[symbol]

"""Names in generated code: safe Python identifiers, as close as possible to what the user wrote."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

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


def identifier(name: str) -> str:
    r"""``name`` with everything that Python does not allow in an identifier made an underscore.

    ``x[0]`` becomes ``x_0``, ``\hat{y}`` becomes ``hat_y``; letters of any alphabet stay.
    """
    plain = re.sub(r"\W+", "_", unicodedata.normalize("NFKC", name)).strip("_")
    if not plain or not plain.isidentifier():
        plain = f"x_{plain}" if plain else "x"
    return plain


class Names:
    """Unique identifiers for the symbols and values of one generated module."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        """``reserved``: names that the generated code uses itself."""
        self.taken = RESERVED | set(reserved)
        self._of: dict[Any, str] = {}

    def unique(self, wanted: str) -> str:
        """A new identifier, ``wanted`` if it is free."""
        base = identifier(wanted)
        name, k = base, 2
        while name in self.taken:
            name, k = (
                (f"{base}_{k}", k + 1) if name != base or base not in RESERVED else (f"{base}_", k)
            )
        self.taken.add(name)
        return name

    def of(self, symbol: Any) -> str:
        """The identifier of a symbol, always the same one."""
        if symbol not in self._of:
            self._of[symbol] = self.unique(str(symbol))
        return self._of[symbol]

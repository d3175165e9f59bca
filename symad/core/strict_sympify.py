"""Values as SymPy expressions, without reading text."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import sympy


def as_sympy(value: Any) -> Any:
    """The SymPy object of a number or an expression.

    SymPy executes the text that it reads. Its strict `sympify` refuses text and lists, but reads the text
    inside of tuples, sets and dicts.

    Raises:
        sympy.SympifyError: the value is text, holds text, or has no form in SymPy.
    """
    if isinstance(value, (tuple, set, frozenset, Mapping)) and holds_text(value):
        raise sympy.SympifyError("text is never read as an expression")
    return sympy.sympify(value, strict=True)


def holds_text(value: object) -> bool:
    """True for text, and for containers of Python that hold text."""
    if isinstance(value, (str, bytes)):
        return True
    if isinstance(value, Mapping):
        return any(map(holds_text, (*value.keys(), *value.values())))
    inside: Collection[object] = value if isinstance(value, (list, tuple, set, frozenset)) else ()
    return any(map(holds_text, inside))

"""The functions that a saved graph may name, by name: SymPy's, symad's, and those that users registered."""

from __future__ import annotations

from functools import cache

import sympy
from sympy.core.function import FunctionClass

from symad.core.signatures import Json
from symad.errors import SavingError
from symad.facts.functions import FACTS, float_names

OPERATORS: dict[str, type[sympy.Expr]] = {
    "+": sympy.Add,
    "*": sympy.Mul,
    "floor": sympy.floor,
    "ceiling": sympy.ceiling,
    "max": sympy.Max,
    "min": sympy.Min,
    "mod": sympy.Mod,
}
"""The functions in dimensions, besides integers, symbols, fractions and small powers."""


@cache
def sympy_heads() -> dict[str, sympy.FunctionClass]:
    """SymPy's functions by name."""
    names = sympy.functions.__all__
    found = ((name, getattr(sympy, name, None)) for name in names)
    return {f"sympy.{name}": head for name, head in found if isinstance(head, FunctionClass)}


def heads() -> dict[str, sympy.FunctionClass]:
    """All functions that can be saved, by name: SymPy's, symad's own, and registered ones."""
    return _heads(tuple(float_names()), tuple(head for head, row in FACTS.items() if row.users))


@cache
def _heads(
    own: tuple[sympy.FunctionClass, ...], registered: tuple[sympy.FunctionClass, ...]
) -> dict[str, sympy.FunctionClass]:
    known = sympy_heads()
    by_sympy = set(known.values())
    ours = {f"symad.{h.__name__}": h for h in own if h not in by_sympy}
    return {**{f"registered.{h.__name__}": h for h in registered}, **ours, **known}


def head_name(head: type[sympy.Basic]) -> str:
    """The name under which a function is saved.

    Raises:
        SavingError: it is neither SymPy's nor registered.
    """
    found = [name for name, known in heads().items() if known is head]
    if not found:
        raise SavingError(
            f"the function {head.__name__} cannot be saved: it is neither SymPy's nor registered; "
            "give it to symad.functions.register_function first, here and where the file is loaded"
        )
    return found[-1]


def find_head(name: Json) -> sympy.FunctionClass:
    """The function of a saved name.

    Raises:
        SavingError: there is none.
    """
    if not isinstance(name, str) or name not in heads():
        raise SavingError(
            f"the file uses the function {name!r}, which is not known here; if it is your own, "
            "register it with symad.functions.register_function before loading"
        )
    return heads()[name]

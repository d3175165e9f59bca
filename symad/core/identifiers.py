"""Python identifiers for the names that users wrote."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

import sympy
from sympy import MatrixSymbol
from sympy.core.function import AppliedUndef
from sympy.tensor.array.expressions import ArraySymbol


def identifier(name: str) -> str:
    r"""``name`` in which each character that Python does not allow in an identifier becomes an underscore.

    ``x[0]`` becomes ``x_0``, ``\hat{y}`` becomes ``hat_y``; letters of any alphabet stay.
    """
    if name.isascii() and name.isidentifier() and "_" not in (name[0], name[-1]):
        return name
    plain = re.sub(r"\W+", "_", unicodedata.normalize("NFKC", name)).strip("_")
    if not plain or not plain.isidentifier():
        plain = f"x_{plain}" if plain else "x"
    return plain


MAX_VARIABLE_CHARACTERS = 24
"""Characters of a variable's name up to which generated code uses it. This keeps lines short."""


@lru_cache(maxsize=4096)
def is_variable(name: str) -> bool:
    """True if generated code may use the name of a variable of the user."""
    return len(name) <= MAX_VARIABLE_CHARACTERS and name.isidentifier() and name == identifier(name)


def ascii_identifier(name: str) -> str:
    """``name`` in the letters that every language accepts in identifiers; Greek letters become their names.

    ``θ_1`` becomes ``theta_1``, ``W[0]`` becomes ``W_0``.
    """
    letters = []
    for character in unicodedata.normalize("NFKD", name):
        told = unicodedata.name(character, "")
        if told.startswith("GREEK") and "LETTER" in told:
            word = told.split("LETTER ")[1].split(" WITH")[0].split()[-1]
            letters.append(word.capitalize() if "CAPITAL" in told else word.lower())
        elif character.isascii() and (character.isalnum() or character == "_"):
            letters.append(character)
        elif not unicodedata.combining(character):
            letters.append("_")
    plain = re.sub(r"_+", "_", "".join(letters)).rstrip("_") or "x"
    return plain if plain[0].isalpha() else f"x{plain}" if plain[0] == "_" else f"x_{plain}"


NAMED = (sympy.Symbol, MatrixSymbol, ArraySymbol)
"""Symbols that are printed by their names alone."""


def printed(symbol: sympy.Basic) -> str:
    """``str(symbol)``; for symbols of numbers and arrays this is the name, and no printer is constructed."""
    if type(symbol) not in NAMED:
        return str(symbol)
    name = symbol.name  # of an array a symbol
    return name if isinstance(name, str) else str(name.name)


def short_name(symbol: sympy.Basic) -> str:
    """The name of an input in code: ``q`` for q(t), ``q_dot`` and ``q_ddot`` for its derivatives."""
    if type(symbol) in NAMED:
        return printed(symbol)
    if isinstance(symbol, AppliedUndef):
        return str(symbol.func.__name__)
    if isinstance(symbol, sympy.Derivative):
        variables = [v for v, count in symbol.variable_count for _ in range(int(count))]
        if len(set(variables)) == 1 and len(variables) <= 4:
            return f"{short_name(symbol.expr)}_{'d' * len(variables)}ot"
        return "_".join([short_name(symbol.expr), *map(str, variables)])
    return str(symbol)


def parameter_names(names: Iterable[str]) -> tuple[str, ...]:
    """For each name a parameter of a Python function; all are different."""
    taken: set[str] = set()
    made = []
    for name in names:
        base = identifier(name)
        base = f"{base}_" if keyword.iskeyword(base) else base
        unique, k = base, 2
        while unique in taken:
            unique, k = f"{base}_{k}", k + 1
        taken.add(unique)
        made.append(unique)
    return tuple(made)

"""Users' names and values as written elsewhere: in code as identifiers, in documents and messages as text."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
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


# ---- in documents and messages: controls, surrogates, markup, long texts -------------------------


def visible(text: str) -> str:
    r"""Text in which control characters and lone surrogates are written out, such as ``\x1b``.

    Line ends and tabulators stay. The result controls no terminal, and every encoding and XML accept it.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t " else _written(c) for c in text)


MAX_SHOWN = 100
"""Characters of a value that an error message shows."""


def brief(value: object) -> str:
    """``repr(value)`` for an error message, of which a long one is cut."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def counted(number: int, one: str, several: str = "") -> str:
    """``1 entry``, ``3 entries`` for a message."""
    return f"{number} {one if number == 1 else several or one + 's'}"


def listed(names: Iterable[object], most: int = 40) -> str:
    """Names for a message: of more than ``most`` the first ones, the last, and how many there are."""
    shown = list(map(str, names))
    if len(shown) > most:
        shown = [*shown[: most - 1], "...", f"{shown[-1]} ({len(shown)} in all)"]
    return ", ".join(shown)


def not_one_of(what: str, given: object, known: Iterable[object]) -> str:
    """The message that the option ``what`` has a value which is none of the known ones."""
    names = list(known)
    near = get_close_matches(str(given).lower(), [name for name in names if isinstance(name, str)], 1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"{what}={brief(given)} is not one of {', '.join(map(repr, names))}{hint}"


def _written(character: str) -> str:
    spaces_and_joiners = character.isspace() or character in "\u200c\u200d"
    if spaces_and_joiners and character > "\x9f":
        return character
    return character.encode("unicode_escape").decode("ascii")


def without_tags(text: str) -> str:
    """`visible` text for Markdown that begins no HTML: ``<b`` becomes ``< b``, which reads the same."""
    parts = visible(text).split("<")
    rest = [f" {p}" if p[:1].isalpha() or p[:1] in ("/", "!", "?") else p for p in parts[1:]]
    return "<".join([parts[0], *rest])


def without_surrogates(text: str) -> str:
    """JSON text in which lone surrogates, which UTF-8 cannot encode, are written as JSON's escapes."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "".join(c if not "\ud800" <= c <= "\udfff" else f"\\u{ord(c):04x}" for c in text)
    return text

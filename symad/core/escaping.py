"""Users' names and values in documents and messages: controls, surrogates, markup, long texts."""

from __future__ import annotations

from collections.abc import Iterable


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


def listed(names: Iterable[object], most: int = 40) -> str:
    """Names for a message: of more than ``most`` the first ones, the last, and how many there are."""
    shown = list(map(str, names))
    if len(shown) > most:
        shown = [*shown[: most - 1], "...", f"{shown[-1]} ({len(shown)} in all)"]
    return ", ".join(shown)


def not_one_of(what: str, given: object, known: Iterable[object]) -> str:
    """The message that the option ``what`` has a value which is none of the known ones."""
    return f"{what}={brief(given)} is not one of {', '.join(map(repr, known))}"


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

"""The texts of values in a module: names, parts of named arrays, and transposes.

A rule joins the texts of the arguments to a new text. These classes of texts have their components as
attributes, so that no rule has to parse a text.
"""

from __future__ import annotations


class Name(str):
    """The name of a variable.

    Attributes:
        number: its number among the names that statements assign; 0 for other names.
        stem: the name stem, which says what the value is; may be empty.
    """

    __slots__ = ("number", "stem")
    number: int
    stem: str

    def __new__(cls, text: str, number: int = 0, stem: str = "") -> Name:
        """A name with its number and its stem."""
        made = super().__new__(cls, text)
        made.number, made.stem = number, stem
        return made


class Part(str):
    """``base[index]``, a part of an array. The index leaves out whole axes at the end."""

    __slots__ = ("at", "base")
    base: str
    at: tuple[str, ...]

    def __new__(cls, base: str, *at: str) -> Part:
        """The part of ``base`` at the index ``at``, one text for each axis."""
        made = super().__new__(cls, f"{base}[{', '.join(at)}]")
        made.base, made.at = base, at
        return made


class Turned(str):
    """The transpose of a matrix."""

    __slots__ = ("of",)
    of: str

    def __new__(cls, of: str) -> Turned:
        """The transpose of the matrix with the text ``of``."""
        made = super().__new__(cls, f"{of}.T")
        made.of = of
        return made


def is_name(text: str) -> bool:
    """Whether a text is the name of a whole array."""
    return isinstance(text, Name)


def name_in(text: str | None) -> Name | None:
    """The name of the variable whose memory a text shows, if a statement assigns it; else None."""
    while isinstance(text, Part):
        text = text.base
    return text if isinstance(text, Name) and text.number else None


def assigned(place: str, expression: str) -> str:
    """The statement that copies a value to a part of an array, or to a whole named array."""
    target = place if isinstance(place, Part) else f"{place}[...]"
    return f"{target} = {expression}"

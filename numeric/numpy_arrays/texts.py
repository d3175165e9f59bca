"""What the values of a module are written as, with what there is to know about it.

A rule gets the texts of the arguments and joins them to one more. Names, parts of named arrays and transposes
keep what they are made of, so that nothing has to be read out of a text.
"""

from __future__ import annotations


class Name(str):
    """A variable; ``number`` counts those of a module that statements make, and is 0 for all others.

    ``stem`` is what a person calls the value, or nothing.
    """

    __slots__ = ("number", "stem")
    number: int
    stem: str

    def __new__(cls, text: str, number: int = 0, stem: str = "") -> Name:
        """A name, its place among those that statements make, and what a person calls the value."""
        made = super().__new__(cls, text)
        made.number, made.stem = number, stem
        return made


class Part(str):
    """``base[index]``: a part of an array, with the index of each axis but whole ones at the end."""

    __slots__ = ("at", "base")
    base: str
    at: tuple[str, ...]

    def __new__(cls, base: str, *at: str) -> Part:
        """The part at an index."""
        made = super().__new__(cls, f"{base}[{', '.join(at)}]")
        made.base, made.at = base, at
        return made


class Turned(str):
    """The transpose of a matrix."""

    __slots__ = ("of",)
    of: str

    def __new__(cls, of: str) -> Turned:
        """``of``: the text of the matrix."""
        made = super().__new__(cls, f"{of}.T")
        made.of = of
        return made


def is_name(text: str) -> bool:
    """Whether a text is the name of a whole array."""
    return isinstance(text, Name)


def name_in(text: str | None) -> Name | None:
    """The name that a statement makes and that a text shows the memory of."""
    while isinstance(text, Part):
        text = text.base
    return text if isinstance(text, Name) and text.number else None


def assigned(place: str, expression: str) -> str:
    """The statement that writes a value into a part of an array, or into all of a named one."""
    target = place if isinstance(place, Part) else f"{place}[...]"
    return f"{target} = {expression}"

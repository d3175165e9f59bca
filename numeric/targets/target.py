"""Targets: the names of their functions and numbers, and the precedence of their operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

import sympy

from symad.facts.functions import float_names


class Level(IntEnum):
    """The precedence of an expression; the order is that of Python's and C's grammar."""

    CONDITION = 1
    OR = 2
    AND = 3
    NOT = 4
    COMPARISON = 5
    SUM = 6
    PRODUCT = 7
    SIGN = 8
    POWER = 9
    ATOM = 10


@dataclass(frozen=True)
class Text:
    """An expression as text, with its precedence."""

    text: str
    level: Level = Level.ATOM

    def inside(self, least: Level) -> str:
        """The text as an operand; in parentheses if it binds less tightly than ``least``."""
        return self.text if self.level >= least else f"({self.text})"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class MatrixProduct:
    """A matrix product ``left @ right``, followed by the text ``after`` that gives the result its shape."""

    left: str
    right: str
    after: str = ""

    def text(self) -> Text:
        """The product as an expression."""
        text = f"{self.left} @ {self.right}"
        return Text(f"({text}){self.after}") if self.after else Text(text, Level.PRODUCT)


Texts: TypeAlias = "tuple[Text, ...]"


@dataclass(frozen=True)
class LibraryFunction:
    """A function of a library; one without a module belongs to the language."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}" if self.module else self.name


def table(names: Mapping[type[sympy.Basic], str]) -> dict[type[sympy.Basic], LibraryFunction]:
    """A table of functions, from names such as ``scipy.special.erf``."""
    return {head: LibraryFunction(*full.rpartition(".")[::2]) for head, full in names.items()}


@dataclass(frozen=True)
class Target:
    """A language with its library; subclasses differ in their grammar, instances in their names."""

    name: str
    functions: Mapping[type[sympy.Basic], LibraryFunction] = field(hash=False)
    """The functions that compute SymPy heads."""
    infinity: str
    not_a_number: str
    writes_floats: bool = False
    """Whether integers are written as floating-point numbers, so that quotients are not truncated."""


@dataclass(frozen=True)
class Python(Target):
    """Python with a library of functions."""


@dataclass(frozen=True)
class NumPy(Python):
    """Arrays: NumPy, or a library with its interface."""

    np: str = "np"
    """The name of the library in printed code."""


@dataclass(frozen=True)
class C(Target):
    """C99, and CUDA C++ with the same names."""

    forms: Mapping[type[sympy.Basic], str] = field(default_factory=dict, hash=False)
    """SymPy heads written as expressions of other functions, as templates; see `targets.c_functions`."""
    suffix: str = ""
    """The suffix of literals of the real type."""

    def has(self, head: type[sympy.Basic]) -> bool:
        """Whether the target can write a function."""
        return head in self.functions or head in self.forms


NUMPY = NumPy("numpy", table(float_names()), "np.inf", "np.nan")

"""SymPy expressions: hashable as fields of ops, and made of values without reading text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import sympy

if TYPE_CHECKING:
    import sympy as sp


@dataclass(frozen=True)
class Formula:
    """A real expression, or a Boolean one, in scalar symbols and reads of indexed symbols."""

    expression: sp.Basic

    def __str__(self) -> str:
        return str(self.expression)


def is_of_a_float(value: object) -> bool:
    """Whether an exact number is e − 1, or the like, of a float e: a float but for the last bits."""
    if not isinstance(value, Fraction) or value.denominator.bit_count() > 1:
        return False
    return abs(value.numerator).bit_length() in range(54, 60)


def as_sympy(value: Any) -> Any:
    """The SymPy object of a number, an expression, or a tuple, set or dict of these.

    SymPy executes the text that it reads. Its strict `sympify` refuses text, but reads the elements of
    containers as if it were not strict; they are therefore converted here, one by one.

    Raises:
        ValueError, TypeError: the value is text, holds text, or has no form in SymPy; mostly SympifyError.
    """
    if isinstance(value, tuple):
        return sympy.Tuple(*map(as_sympy, value))
    if isinstance(value, (set, frozenset)):
        return sympy.FiniteSet(*map(as_sympy, value))
    if isinstance(value, Mapping):
        return sympy.Dict({as_sympy(key): as_sympy(part) for key, part in value.items()})
    return sympy.sympify(value, strict=True)

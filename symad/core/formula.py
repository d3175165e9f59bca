"""A scalar SymPy expression as a field of an op: hashable. `symad.saving.expressions` writes it to files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sympy as sp


@dataclass(frozen=True)
class Formula:
    """A real expression, or a Boolean one, in scalar symbols and reads of indexed symbols."""

    expression: sp.Basic

    def __str__(self) -> str:
        return str(self.expression)

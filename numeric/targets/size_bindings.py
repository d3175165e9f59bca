"""How symbolic sizes follow from the shapes of the arguments: n = len(u), or (len(v) - 1)//2 from 2*n + 1."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from symad.core.dims import Dim, Shape
from symad.errors import LoweringError
from symad.numeric.targets.dimensions import dimension
from symad.numeric.targets.target import Level


@dataclass(frozen=True)
class SizeBinding:
    """A size, with the axis that fixes it: slope · symbol + offset is the length of that axis."""

    symbol: sympy.Symbol
    argument: int
    axis: int
    slope: Dim = 1
    offset: Dim = 0

    @property
    def reads(self) -> set[sympy.Basic]:
        """The sizes that must be known before."""
        parts = (self.slope, self.offset)
        return {s for part in parts if not isinstance(part, int) for s in part.free_symbols}

    def text(self, length: str, printer: Any) -> str:
        """The size, from the text of the length of its axis; ``printer`` names the sizes that it reads."""
        over = (
            f"{length} - {dimension(self.offset, printer).inside(Level.PRODUCT)}" if self.offset else length
        )
        if self.slope == 1:
            return over
        over = f"({over})" if self.offset else over
        if isinstance(self.slope, (int, sympy.Integer)):
            return f"{over}//{int(self.slope)}"
        return f"{over}//max({dimension(self.slope, printer)}, 1)"  # an empty axis fixes no size


def size_bindings(shapes: Sequence[Shape], wanted: Iterable[sympy.Symbol]) -> list[SizeBinding]:
    """The bindings of all symbols in the shapes of the arguments, each after those that it reads.

    An axis of that length is preferred; other symbols follow from linear expressions with one unknown size.

    Raises:
        LoweringError: the shapes do not fix a symbol of ``wanted``.
    """
    places = [(dim, k, axis) for k, shape in enumerate(shapes) for axis, dim in enumerate(shape)]
    made: dict[sympy.Basic, SizeBinding] = {}
    for dim, k, axis in places:
        if isinstance(dim, sympy.Symbol) and dim not in made:
            made[dim] = SizeBinding(dim, k, axis)
    waiting = [(dim, k, axis) for dim, k, axis in places if not isinstance(dim, (int, sympy.Symbol))]
    found = True
    while found:
        found = False
        for dim, k, axis in waiting:
            unknown = dim.free_symbols - made.keys()
            binding = _linear(dim, min(unknown, key=str), k, axis) if len(unknown) == 1 else None
            if binding is not None:
                made[binding.symbol] = binding
                found = True
    for symbol in wanted:
        if symbol not in made:
            raise LoweringError(f"no input fixes the dimension {symbol}")
    return list(made.values())


def _linear(dim: sympy.Expr, symbol: sympy.Symbol, argument: int, axis: int) -> SizeBinding | None:
    """The binding by an expression that is linear in the symbol; None for other expressions."""
    whole = sympy.expand(dim)
    slope = whole.coeff(symbol, 1)
    offset = whole - slope * symbol
    integers = all(number.is_Integer for part in (slope, offset) for number in part.atoms(sympy.Number))
    if not slope or not integers or symbol in offset.free_symbols:
        return None
    return SizeBinding(symbol, argument, axis, slope, offset)


def bound_in_turn(
    bindings: Sequence[SizeBinding], known: set[sympy.Basic], given: Container[int]
) -> list[SizeBinding]:
    """The bindings that can be computed now, of the arguments ``given``; their symbols join ``known``."""
    made = []
    for binding in bindings:
        if binding.symbol not in known and binding.argument in given and binding.reads <= known:
            made.append(binding)
            known.add(binding.symbol)
    return made

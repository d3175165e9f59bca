"""IndexedBases whose shape was inferred: symbol and shape survive the conversion to SymPy and back."""

from __future__ import annotations

import sympy

from symad.core.dims import Shape


class InferredBase(sympy.IndexedBase):
    """An IndexedBase that was declared without shape, together with the shape that its indices imply."""

    @property
    def declared(self) -> sympy.Basic:
        """The base in its declared form."""
        return sympy.IndexedBase(self.label)


def with_shape(symbol: sympy.Expr, shape: Shape) -> sympy.Expr:
    """The symbol of an input, with its shape if it has none of its own."""
    if isinstance(symbol, sympy.IndexedBase) and symbol.shape is None:
        return InferredBase(symbol.label, shape=shape)
    return symbol

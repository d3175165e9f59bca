"""IndexedBases of which the shape was inferred: the way to SymPy and back keeps symbol and shape."""

from __future__ import annotations

import sympy

from symad.core.dims import Shape


class InferredBase(sympy.IndexedBase):
    """An IndexedBase that was declared without shape, together with the shape its indices asked for."""

    @property
    def declared(self) -> sympy.Basic:
        """The base as it was declared."""
        return sympy.IndexedBase(self.label)


def with_shape(symbol: sympy.Expr, shape: Shape) -> sympy.Expr:
    """The symbol of an input, with its shape where it has none of its own."""
    if isinstance(symbol, sympy.IndexedBase) and symbol.shape is None:
        return InferredBase(symbol.label, shape=shape)
    return symbol

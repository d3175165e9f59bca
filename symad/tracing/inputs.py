"""Which symbols of a SymPy expression are inputs, and of what shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
from sympy.tensor.array.expressions import ArraySymbol

from symad.dims import as_shape
from symad.errors import TraceError


def as_input_symbol(symbol: Any) -> Any:
    """``symbol`` if it can be an input.

    Raises:
        TraceError: an element ``x[i]`` or an expression was given; inputs are whole symbols.
    """
    if isinstance(symbol, (sympy.Symbol, sympy.MatrixSymbol, ArraySymbol, sympy.IndexedBase)):
        return symbol
    if isinstance(symbol, str):
        raise TraceError(f"the name {symbol!r} selects an input of a Graph; for SymPy expressions give the symbol")
    whole = getattr(symbol, "base", None) or getattr(symbol, "parent", None) or getattr(symbol, "name", None)
    if isinstance(symbol, (sympy.Indexed, sympy.matrices.expressions.matexpr.MatrixElement)):
        raise TraceError(f"{symbol} is an element; inputs are whole arrays: use {whole} and select from the result")
    raise TraceError(f"{symbol!r} is not a Symbol, MatrixSymbol, ArraySymbol or IndexedBase")


def declared_shape(symbol: Any) -> Any:
    """The shape a symbol declares; None for an IndexedBase without shape."""
    if isinstance(symbol, (sympy.MatrixSymbol, ArraySymbol)):
        return as_shape(symbol.shape)
    if isinstance(symbol, sympy.IndexedBase):
        return as_shape(symbol.shape) if symbol.shape is not None else None
    return ()


def find_inputs(parts: Sequence[Any], symbols: dict[Any, None], extents: dict[Any, Any]) -> None:
    """Collect the input symbols of some expressions, each object visited once.

    Bound indices of sums are not inputs; symbols inside declared shapes are dimensions, found there.
    """
    seen: set[int] = set()
    stack: list[Any] = list(reversed(parts))
    bound: set[Any] = set()
    while stack:
        current = stack.pop()
        if id(current) in seen or not isinstance(current, (sympy.Basic, sympy.NDimArray)):
            continue
        seen.add(id(current))
        if isinstance(current, (sympy.Symbol, sympy.MatrixSymbol, ArraySymbol)):
            symbols[current] = None
            if not isinstance(current, sympy.Symbol):
                stack.extend(current.shape)
        elif isinstance(current, sympy.MatrixBase):
            stack.extend(reversed(current.flat()))
        elif isinstance(current, sympy.NDimArray):
            stack.extend(reversed(sympy.flatten(current)))
        elif isinstance(current, sympy.Lambda):
            stack.extend(_free_in_lambda(current, extents))
        elif isinstance(current, sympy.Poly):
            stack.extend(current.coeffs())
        else:
            stack.extend(reversed(current.args))
    for symbol in bound:
        symbols.pop(symbol, None)


def _free_in_lambda(function: sympy.Lambda, extents: dict[Any, Any]) -> list[Any]:
    """The inputs in the body of a Lambda: its variables are bound there, and only there."""
    found: dict[Any, None] = {}
    find_inputs([function.expr], found, extents)
    return [symbol for symbol in found if symbol not in function.variables]

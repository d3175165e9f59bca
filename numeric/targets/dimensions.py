"""Dimensions as text, the same for every target: T − 1, n//2, max(m, n)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import sympy

from symad.core.dims import Dim
from symad.errors import LoweringError
from symad.numeric.targets.target import Level, Text


class NamesOfDims(Protocol):
    """An object that knows the names of dimensions."""

    def dim_name(self, symbol: sympy.Basic) -> str:
        """The name of a dimension."""


@dataclass(frozen=True)
class NamedDimensions:
    """Names of dimensions from a table."""

    names: Mapping[sympy.Symbol, str]

    def dim_name(self, symbol: sympy.Symbol) -> str:
        """The name of a dimension."""
        return self.names[symbol]


def dimension(dim: Dim, writer: NamesOfDims) -> Text:
    """A dimension with symbols first, as in T − 1, and with floor division for quotients.

    Raises:
        LoweringError: the expression cannot be written.
    """
    if isinstance(dim, int) or dim.is_Integer:
        return Text(str(int(dim)), Level.SIGN if dim < 0 else Level.ATOM)
    if dim.is_Symbol:
        return Text(writer.dim_name(dim))
    if dim.is_Add:
        return Text(_sum(dim, writer), Level.SUM)
    if dim.is_Mul:
        return _product(dim, writer)
    if dim.is_Pow and dim.exp.is_Integer and dim.exp > 0:
        return Text(f"{dimension(dim.base, writer).inside(Level.ATOM)}**{int(dim.exp)}", Level.POWER)
    if isinstance(dim, (sympy.floor, sympy.ceiling)):
        over, under = sympy.together(dim.args[0]).as_numer_denom()
        sign = -1 if isinstance(dim, sympy.ceiling) else 1  # ⌈a/b⌉ = −⌊−a/b⌋
        inner = dimension(sympy.expand(sign * over), writer).inside(Level.PRODUCT)
        text = Text(f"{inner}//{dimension(under, writer).inside(Level.SIGN)}", Level.PRODUCT)
        return text if sign == 1 else Text(f"-({text})", Level.SIGN)
    if isinstance(dim, (sympy.Max, sympy.Min)):
        return Text(f"{type(dim).__name__.lower()}({', '.join(dimension(a, writer).text for a in dim.args)})")
    raise LoweringError(f"the dimension {dim} has no form in generated code")


def _sum(dim: sympy.Expr, writer: NamesOfDims) -> str:
    """A sum with symbols first and negative terms subtracted."""
    text = ""
    for term in sorted(dim.args, key=lambda t: (t.is_number, t.could_extract_minus_sign(), str(t))):
        negative = term.could_extract_minus_sign()
        part = dimension(-term if negative else term, writer)
        joined = part.inside(Level.PRODUCT)
        text += (f" - {joined}" if negative else f" + {joined}") if text else f"{'-' * negative}{joined}"
    return text


def _product(dim: sympy.Expr, writer: NamesOfDims) -> Text:
    over, under = dim.as_numer_denom()
    if under != 1:
        top = dimension(over, writer).inside(Level.PRODUCT)
        return Text(f"{top}//{dimension(under, writer).inside(Level.SIGN)}", Level.PRODUCT)
    if dim.could_extract_minus_sign():
        return Text(f"-{dimension(-dim, writer).inside(Level.PRODUCT)}", Level.SIGN)
    return Text("*".join(dimension(a, writer).inside(Level.SIGN) for a in dim.args), Level.PRODUCT)

"""Dimensions: the sizes of axes, Python ints or SymPy integer expressions such as ``n`` or ``2*d``.

Two dimensions are the same when their difference expands to zero. If the
symbols alone do not decide this (``n`` against ``m``), they count as different: an error at trace time is
better than a wrong broadcast at run time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import sympy

from symad.errors import ShapeError

Dim: TypeAlias = "int | sympy.Expr"
Shape: TypeAlias = "tuple[Dim, ...]"


def as_dim(value: Dim) -> Dim:
    """``value`` as a dimension: ints (also SymPy's and NumPy's) become Python ints."""
    if type(value) is int:
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, sympy.Expr):
        if value.is_Integer:
            return int(value)
        return value
    try:
        return int(value.__index__())
    except (AttributeError, TypeError):
        raise ShapeError(f"a dimension is an int or a SymPy integer expression, not {value!r}") from None


def as_shape(values: Iterable[Dim]) -> Shape:
    """A tuple of dimensions."""
    return tuple(as_dim(value) for value in values)


def same_dim(a: Dim, b: Dim) -> bool:
    """True if two dimensions are equal for all values of their symbols."""
    if a is b or a == b:
        return True
    if isinstance(a, int) and isinstance(b, int):
        return False
    return bool(sympy.expand(sympy.sympify(a, strict=True) - b) == 0)


def is_below(a: Dim, b: Dim) -> bool:
    """True if a < b for all values of the symbols, under their assumptions."""
    gap = plus(a, times(-1, b))
    return gap < 0 if isinstance(gap, int) else bool(sympy.expand(gap).is_negative)


def same_shape(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    """True if two shapes are equal, axis by axis."""
    return a == b or (len(a) == len(b) and all(map(same_dim, a, b)))


def size(shape: Iterable[Dim]) -> Dim:
    """The number of elements: the product of the dimensions."""
    total: Dim = 1
    for dim in shape:
        total = times(total, dim)
    return total


def times(a: Dim, b: Dim) -> Dim:
    """The product of two dimensions."""
    return as_dim(a * b)


def plus(a: Dim, b: Dim) -> Dim:
    """The sum of two dimensions."""
    return as_dim(a + b)


def is_concrete(shape: Iterable[Dim]) -> bool:
    """True if every dimension is a number."""
    return all(isinstance(dim, int) for dim in shape)


def dim_symbols(shape: Iterable[Dim]) -> set[sympy.Symbol]:
    """The symbols that occur in the dimensions."""
    found: set[sympy.Symbol] = set()
    for dim in shape:
        if not isinstance(dim, int):
            found |= dim.free_symbols
    return found


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The common shape under NumPy's broadcasting rules; only a literal 1 stretches.

    Raises:
        ShapeError: two dimensions differ and neither is 1.
    """
    rank = max((len(s) for s in shapes), default=0)
    result: list[Dim] = []
    for axis in range(-rank, 0):
        dims = [s[axis] for s in shapes if len(s) >= -axis]
        kept = next((d for d in dims if d != 1), 1)
        if not all(d == 1 or same_dim(d, kept) for d in dims):
            raise ShapeError(f"shapes {', '.join(map(format_shape, shapes))} do not broadcast together")
        result.append(kept)
    return tuple(result)


def format_shape(shape: Iterable[Dim]) -> str:
    """A shape as a person writes it: ``(n, 3)``."""
    dims = [str(d) for d in shape]
    return f"({dims[0]},)" if len(dims) == 1 else f"({', '.join(dims)})"


def bind(dim: Any, values: Mapping[sympy.Symbol, int]) -> Any:
    """Replace dimension symbols by numbers in a dimension, or in a tuple of them, at any depth."""
    if isinstance(dim, tuple):
        return tuple(bind(d, values) for d in dim)
    if isinstance(dim, sympy.Expr) and dim.free_symbols & values.keys():
        return as_dim(dim.subs(values))
    return dim


def solve_dims(patterns: Sequence[tuple[str, Shape, tuple[int, ...]]]) -> dict[sympy.Symbol, int]:
    """The values of the dimension symbols, from the arrays given.

    Args:
        patterns: for each input its name, its declared shape and the shape of the array given.

    Raises:
        ShapeError: ranks differ, a fixed dimension differs, two arrays disagree on a symbol, or a
            dimension expression has no non-negative integer solution. The error names the input.
    """
    values: dict[sympy.Symbol, int] = {}
    source: dict[sympy.Symbol, str] = {}
    pending: list[tuple[str, sympy.Expr, int]] = []
    for name, declared, given in patterns:
        if len(declared) != len(given):
            raise ShapeError(
                f"{name} has shape {format_shape(declared)}, but the value given has shape {given}"
            )
        for axis, (dim, number) in enumerate(zip(declared, given, strict=True)):
            where = f"axis {axis} of {name}"
            if isinstance(dim, int):
                if dim != number:
                    raise ShapeError(f"{where} must have size {dim}, but the value given has shape {given}")
            elif isinstance(dim, sympy.Symbol):
                if values.setdefault(dim, number) != number:
                    raise ShapeError(
                        f"{where} gives {dim} = {number}, but {source[dim]} gives {dim} = {values[dim]}"
                    )
                source.setdefault(dim, where)
            else:
                pending.append((where, dim, number))
    while pending:  # first the expressions with at most one unknown size
        fixed = next((p for p in pending if len(p[1].free_symbols - values.keys()) <= 1), pending[0])
        pending.remove(fixed)
        _solve_expression(*fixed, values, source)
    return values


def _solve_expression(
    where: str,
    expression: sympy.Expr,
    number: int,
    values: dict[sympy.Symbol, int],
    source: dict[sympy.Symbol, str],
) -> None:
    """Bind the one unknown symbol of ``expression = number``, or check the equation."""
    rest = expression.subs(values)
    unknown = sorted(rest.free_symbols, key=str)
    if len(unknown) == 1:
        slope, offset = rest.coeff(unknown[0], 1), rest.coeff(unknown[0], 0)
        solution = (number - offset) / slope if slope else sympy.nan
        if sympy.expand(slope * unknown[0] + offset - rest) != 0 or not solution.is_Integer:
            raise ShapeError(f"{where} has size {expression} = {number}, which fixes no integer {unknown[0]}")
        values[unknown[0]] = int(solution)
        source[unknown[0]] = where
    elif unknown:
        raise ShapeError(f"{where} has size {expression}: the arrays given do not fix {unknown}")
    elif rest != number:
        known = ", ".join(f"{s} = {values[s]}" for s in sorted(expression.free_symbols, key=str))
        raise ShapeError(f"{where} must have size {expression} = {rest} ({known}), not {number}")

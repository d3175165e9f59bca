"""Symbols and functions of SymPy that can be inputs, and their declared or inferred shapes."""

from __future__ import annotations

import sympy
from sympy.core.function import AppliedUndef
from sympy.tensor.array.expressions import ArraySymbol

from symad.core.dims import Shape, as_shape
from symad.errors import TraceError
from symad.facts.functions import fact
from symad.ops.elementwise.apply import SLOPES


def as_input_symbol(symbol: sympy.Symbol) -> sympy.Basic:
    """``symbol`` if it can be an input.

    Raises:
        TraceError: an element ``x[i]`` or an expression was given; inputs are whole symbols.
    """
    if isinstance(symbol, (sympy.Symbol, sympy.MatrixSymbol, ArraySymbol, sympy.IndexedBase)):
        return check_real(symbol)
    if isinstance(symbol, sympy.Idx):
        return check_real(symbol.label)
    if is_function_input(symbol):
        return symbol
    if isinstance(symbol, str):
        raise TraceError(
            f"the name {symbol!r} selects an input of a Graph; for SymPy expressions give {symbol} itself, "
            "the symbol, or trace the expression first: symad.trace(f)"
        )
    whole = getattr(symbol, "base", None) or getattr(symbol, "parent", None) or getattr(symbol, "name", None)
    if isinstance(symbol, (sympy.Indexed, sympy.matrices.expressions.matexpr.MatrixElement)):
        raise TraceError(
            f"{symbol} is an element; inputs are whole arrays: use {whole} and select from the result"
        )
    raise TraceError(f"{symbol!r} is not a Symbol, MatrixSymbol, ArraySymbol or IndexedBase")


def is_function_input(expression: sympy.Basic) -> bool:
    """True if an expression such as q(t) or its derivative is an input.

    This holds for undefined functions of any argument, unless they are registered or have an implementation.
    """
    if isinstance(expression, sympy.Derivative):
        return isinstance(expression.expr, AppliedUndef) and is_function_input(expression.expr)
    if not isinstance(expression, AppliedUndef):
        return False
    head = expression.func
    return not (head in SLOPES or fact(head).users or hasattr(head, "_imp_"))


def is_formula(leaf: sympy.Basic) -> bool:
    """True if an argument is an expression such as sin(t), which is replaced wherever it occurs."""
    symbols = (sympy.Symbol, sympy.IndexedBase, sympy.Idx, sympy.Indexed, sympy.MatrixExpr, ArraySymbol)
    element = isinstance(leaf, sympy.matrices.expressions.matexpr.MatrixElement)
    plain = isinstance(leaf, sympy.Expr) and not leaf.is_number and not element
    return plain and not isinstance(leaf, symbols) and not is_function_input(leaf)


def depends_on(symbol: sympy.Symbol, other: sympy.Basic) -> bool:
    """True if an input such as q(t), or its derivative, is a function of another input."""
    base = symbol.expr if isinstance(symbol, sympy.Derivative) else symbol
    return isinstance(base, AppliedUndef) and symbol != other and any(arg.has(other) for arg in base.args)


def check_real(symbol: sympy.Symbol) -> sympy.Basic:
    """The symbol, if it may stand for a real number or an array of such.

    Raises:
        TraceError: by its assumptions it is not a real number, or products with it do not commute.
    """
    if isinstance(symbol, sympy.Symbol):
        if symbol.is_commutative is False:
            raise TraceError(f"the symbol {symbol} is not commutative; symad works over the real numbers")
        if symbol.is_real is False or (symbol.is_complex and symbol.is_real is None):
            raise TraceError(
                f"the assumptions of the symbol {symbol} say that it is, or may be, no real number; "
                "symad works over the real numbers: Symbol(name, real=True), or without assumptions"
            )
    return symbol


def declared_shape(symbol: sympy.Symbol) -> Shape | None:
    """The shape that a symbol declares; None for an IndexedBase without shape."""
    if isinstance(symbol, (sympy.MatrixSymbol, ArraySymbol)):
        return as_shape(symbol.shape)
    if isinstance(symbol, sympy.IndexedBase):
        return as_shape(symbol.shape) if symbol.shape is not None else None
    return ()


# ---- IndexedBases whose shape was inferred -------------------------------------------------------


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

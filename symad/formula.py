"""A scalar SymPy expression as a field of an op: hashable, and saved in files as data.

The saved form is prefix notation: ``["+", a, b]``, ``["sympy.tanh", x]``, ``["read", base, index...]``.
Heads are looked up in tables that exist beforehand; nothing is parsed or evaluated as code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanAtom

from symad.errors import SavingError


@dataclass(frozen=True)
class Formula:
    """A real expression, or a Boolean one, in scalar symbols and reads of indexed symbols."""

    expression: Any

    def __str__(self) -> str:
        return str(self.expression)


CONNECTIVES: dict[str, Any] = {
    "+": sympy.Add, "*": sympy.Mul, "^": sympy.Pow, "<": sympy.Lt, "<=": sympy.Le, ">": sympy.Gt,
    ">=": sympy.Ge, "==": sympy.Eq, "!=": sympy.Ne, "and": sympy.And, "or": sympy.Or,
    "xor": sympy.Xor, "not": sympy.Not, "if": sympy.ITE, "max": sympy.Max, "min": sympy.Min,
    "abs": sympy.Abs, "floor": sympy.floor, "ceiling": sympy.ceiling, "mod": sympy.Mod,
}  # fmt: skip
_NAMES = {head: name for name, head in CONNECTIVES.items()}


def write_expression(expr: Any) -> Any:
    """The expression in prefix notation.

    Raises:
        SavingError: it holds a function that is neither SymPy's nor registered.
    """
    from symad.saved_values import head_name, write_symbol, write_value

    if isinstance(expr, BooleanAtom):
        return bool(expr)
    if isinstance(expr, sympy.Integer):
        return write_value(int(expr))
    if isinstance(expr, sympy.Rational):
        return ["/", write_value(int(expr.p)), write_value(int(expr.q))]
    if isinstance(expr, (sympy.Float, sympy.NumberSymbol)):
        return write_value(expr)
    if isinstance(expr, (sympy.Symbol, sympy.IndexedBase)):
        return write_symbol(expr)
    if isinstance(expr, sympy.Indexed):
        return ["read", *map(write_expression, expr.args)]
    if isinstance(expr, sympy.Piecewise):
        return ["cases", *(write_expression(part) for pair in expr.args for part in pair.args)]
    name = _NAMES.get(expr.func) or head_name(expr.func)
    return [name, *map(write_expression, expr.args)]


def read_expression(saved: Any) -> Any:
    """The expression of a saved form."""
    from symad.saved_values import find_head, read_symbol, read_value

    match saved:
        case bool():
            return sympy.true if saved else sympy.false
        case int() | ["int", _]:
            return sympy.Integer(read_value(saved))
        case ["/", p, q]:
            return sympy.Rational(read_value(p), read_value(q))
        case ["Float" | "constant", *_]:
            return read_value(saved)
        case ["symbol" | "dummy" | "indexed", *_]:
            return read_symbol(saved)
        case ["read", base, *indices] if indices:
            return sympy.Indexed(read_expression(base), *map(read_expression, indices))
        case ["cases", *flat] if flat and len(flat) % 2 == 0:
            parts = list(map(read_expression, flat))
            return sympy.Piecewise(*zip(parts[::2], parts[1::2], strict=True))
        case ["^", _, int(exponent)] if abs(exponent) > 64:
            pass  # a number to that power would take all memory
        case [str(name), *parts] if parts:
            head = CONNECTIVES.get(name) or find_head(name)
            made = head(*map(read_expression, parts))
            if isinstance(made, (sympy.Expr, sympy.logic.boolalg.Boolean, Relational)):
                return made
    raise SavingError(f"{str(saved)[:60]} is not a saved expression")

"""Expressions and fields of ops in saved graphs: numbers, dimensions, symbols, functions, as plain JSON.

Every value is a JSON literal or a list that begins with its kind. Kinds, functions
and classes are looked up in fixed tables; nothing is imported, evaluated or parsed as code.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any

import sympy
from sympy.logic.boolalg import Boolean, BooleanAtom
from sympy.tensor.array.expressions import ArraySymbol

from symad.core.expressions import Formula
from symad.core.signatures import Json
from symad.errors import SavingError
from symad.saving.heads import find_head, head_name
from symad.saving.saved_leaves import (
    NUMBERS,
    read_dim,
    read_number,
    read_symbol,
    write_dim,
    write_number,
    write_symbol,
)
from symad.saving.saved_limits import (
    FORMULA_PARTS,
    MAX_COMPARED_ARGUMENTS,
    Extent,
    extent,
    number_extent,
    shortened,
)

# ---- scalar SymPy expressions in files, as data --------------------------------------------------

# The saved form is prefix notation: ["+", a, b], ["sympy.tanh", x], ["read", base, index...]. Heads are
# looked up in tables that exist beforehand; nothing is parsed or evaluated as code.


CONNECTIVES: dict[str, type[sympy.Basic]] = {
    "+": sympy.Add, "*": sympy.Mul, "^": sympy.Pow, "<": sympy.Lt, "<=": sympy.Le, ">": sympy.Gt,
    ">=": sympy.Ge, "==": sympy.Eq, "!=": sympy.Ne, "and": sympy.And, "or": sympy.Or,
    "xor": sympy.Xor, "not": sympy.Not, "if": sympy.ITE, "max": sympy.Max, "min": sympy.Min,
    "abs": sympy.Abs, "floor": sympy.floor, "ceiling": sympy.ceiling, "mod": sympy.Mod,
}  # fmt: skip
_NAMES = {head: name for name, head in CONNECTIVES.items()}


def write_expression(expr: sympy.Basic) -> Json:
    """The expression in prefix notation.

    Raises:
        SavingError: it contains a function that is neither SymPy's nor registered.
    """
    if isinstance(expr, BooleanAtom):
        return bool(expr)
    if isinstance(expr, sympy.Integer):
        return write_number(int(expr))
    if isinstance(expr, sympy.Rational):
        return ["/", write_number(int(expr.p)), write_number(int(expr.q))]
    if isinstance(expr, (sympy.Float, sympy.NumberSymbol)):
        return write_number(expr)
    if isinstance(expr, (sympy.Symbol, sympy.IndexedBase)):
        return write_symbol(expr)
    if isinstance(expr, sympy.Indexed):
        return ["read", *map(write_expression, expr.args)]
    if isinstance(expr, sympy.Piecewise):
        return ["cases", *(write_expression(part) for pair in expr.args for part in pair.args)]
    name = _NAMES.get(expr.func) or head_name(expr.func)
    return [name, *map(write_expression, expr.args)]


CONDITIONS = {"and", "or", "xor", "not", "if"}
"""Functions of conditions; every second argument of "cases" is a condition too."""

PAIRWISE = {"and", "or", "xor", "max", "min", "cases", "sympy.Max", "sympy.Min"}
"""Functions for which SymPy compares the arguments with each other."""


def read_expression(saved: Json) -> sympy.Basic:
    """The expression of a saved form, unevaluated.

    Raises:
        SavingError: it is not a saved expression, is too long, or contains numbers that are too large.
    """
    return _Reader().read(saved)[0]


@dataclass
class _Reader:
    """Reads one expression within the limits of `symad.saving.saved_limits`."""

    parts: int = 0

    def read(self, saved: Json) -> tuple[sympy.Basic, Extent | None]:
        """An expression, and the extent of its value if it has no symbols."""
        self.parts += 1
        if self.parts > FORMULA_PARTS:
            raise SavingError(f"an expression has more than {FORMULA_PARTS} parts")
        match saved:
            case bool():
                return (sympy.true if saved else sympy.false), Extent(0, 0)
            case int() | ["int", _]:
                number = sympy.Integer(read_number(saved))
                return number, number_extent(number)
            case ["/", p, q]:
                number = sympy.Rational(read_number(p), read_number(q))
                return number, number_extent(number)
            case ["Float" | "constant", *_]:
                number = read_number(saved)
                return number, number_extent(number)
            case ["symbol" | "dummy", *_]:
                return read_symbol(saved), None
            case ["read", base, *indices] if indices:
                array = read_symbol(base)
                return sympy.Indexed(array, *[self.read(i)[0] for i in indices]), None
            case [str(name), *rest] if rest:
                parts, extents = zip(*map(self.read, rest), strict=True)
                return _apply(name, parts), extent(name, extents)
        raise SavingError(f"{str(saved)[:60]} is not a saved expression")


def _apply(name: str, parts: tuple[sympy.Basic, ...]) -> sympy.Basic:
    """A function of its arguments, not evaluated."""
    if name in PAIRWISE and len(parts) > MAX_COMPARED_ARGUMENTS:
        raise SavingError(f"{name} of {len(parts)} arguments; at most {MAX_COMPARED_ARGUMENTS} are read")
    for k, part in enumerate(parts):
        condition = name in CONDITIONS or (name == "cases" and k % 2 == 1)
        if not isinstance(part, Boolean if condition else sympy.Expr):
            raise SavingError(f"{str(part)[:60]} cannot be an argument of {name}")
    if name == "cases":
        return sympy.Piecewise(*zip(parts[::2], parts[1::2], strict=True), evaluate=False)
    made = (CONNECTIVES.get(name) or find_head(name))(*parts, evaluate=False)
    if not isinstance(made, (sympy.Expr, Boolean)):
        raise SavingError(f"{name} of {len(parts)} arguments is not an expression")
    return made


def write_value(value: Any) -> Json:
    """A field of an op: text, numbers, bytes, dimensions, symbols, functions, tuples of them."""
    if isinstance(value, NUMBERS):
        return write_number(value)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return ["bytes", base64.b64encode(value).decode("ascii")]
    if isinstance(value, tuple):
        return ["tuple", *map(write_value, value)]
    if isinstance(value, type):
        return ["head", head_name(value)]
    if isinstance(value, (sympy.Symbol, sympy.MatrixSymbol, ArraySymbol, sympy.IndexedBase)):
        return write_symbol(value)
    if isinstance(value, Formula):
        return ["formula", write_expression(value.expression)]
    if isinstance(value, sympy.Expr):
        return ["dimension", write_dim(value)]
    raise SavingError(f"{value!r} of type {type(value).__name__} cannot be saved")


def read_value(saved: Json) -> Any:
    """A field from its saved form."""
    match saved:
        case None | str():
            return saved
        case bool() | int() | ["float" | "int" | "fraction" | "constant" | "Float", *_]:
            return read_number(saved)
        case ["bytes", str(data)]:
            return _bytes(data)
        case ["tuple", *items]:
            return tuple(map(read_value, items))
        case ["head", name]:
            return find_head(name)
        case ["symbol" | "dummy" | "matrix" | "array" | "indexed", *_]:
            return read_symbol(saved)
        case ["dimension", dim]:
            return read_dim(dim)
        case ["formula", expression]:
            return Formula(read_expression(expression))
    raise SavingError(f"{shortened(saved)} is not a saved value")


def _bytes(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        raise SavingError("the bytes of an array are not base64") from None

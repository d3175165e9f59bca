"""The fields of ops inside saved graphs: numbers, dimensions, symbols, functions, as plain JSON.

Every value is a JSON literal or a list that begins with its kind. Kinds, functions
and classes are looked up in fixed tables; nothing is imported, evaluated or parsed as code.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import sympy
from sympy.tensor.array.expressions import ArraySymbol

from symad.core.expressions import Formula
from symad.core.signatures import Json
from symad.errors import SavingError
from symad.saving.expressions import read_expression, write_expression
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
from symad.saving.saved_limits import shortened


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

"""Symbols, dimensions and numbers inside saved graphs, as plain JSON.

Every value is a JSON literal or a list that begins with its kind. Kinds are looked up in fixed
tables; nothing is imported, evaluated or parsed as code.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy
from sympy.core.assumptions import _assume_defined
from sympy.tensor.array.expressions import ArraySymbol

from symad.core.arrays import Number
from symad.core.dims import Dim
from symad.core.signatures import Json
from symad.errors import SavingError
from symad.saving.heads import OPERATORS
from symad.saving.saved_limits import (
    MAX_DIMENSION_TERMS,
    MAX_HARD_FUNCTIONS,
    MAX_NAME,
    NUMBER_BITS,
    check_dim,
    power_terms,
    read_digits,
    shortened,
)

NUMBER_SYMBOLS = {
    str(s): s
    for s in (
        sympy.pi, sympy.E, sympy.GoldenRatio, sympy.TribonacciConstant, sympy.EulerGamma,
        sympy.Catalan,
    )
}  # fmt: skip

MAX_POWER = 64
MAX_DECIMAL_INT = 2**53
"""The largest integer that is written in decimal; larger ones are written in hexadecimal."""


# ---- symbols -------------------------------------------------------------------------------------


def write_symbol(symbol: sympy.Basic) -> list[Json]:
    """A symbol with its assumptions, or an array symbol with its shape."""
    if isinstance(symbol, sympy.Dummy):
        return ["dummy", symbol.name, _assumptions(symbol), int(symbol.dummy_index)]
    if type(symbol) is sympy.Symbol:
        return ["symbol", symbol.name, _assumptions(symbol)]
    if isinstance(symbol, sympy.MatrixSymbol):
        return ["matrix", str(symbol.name), *map(write_dim, symbol.shape)]
    if isinstance(symbol, ArraySymbol):
        return ["array", write_symbol(symbol.name), *map(write_dim, symbol.shape)]
    if isinstance(symbol, sympy.IndexedBase) and isinstance(symbol.label, sympy.Symbol):
        shape = None if symbol.shape is None else [write_dim(d) for d in symbol.shape]
        return ["indexed", write_symbol(symbol.label), shape]
    raise SavingError(f"the input {symbol} of type {type(symbol).__name__} cannot be saved")


def _assumptions(symbol: sympy.Symbol) -> dict[str, bool]:
    given = getattr(symbol, "_assumptions_orig", None)
    known = symbol.assumptions0 if given is None else given
    return {k: bool(v) for k, v in sorted(known.items()) if v is not None}


def read_symbol(saved: Json) -> sympy.Basic:
    """A symbol from its saved form."""
    match saved:
        case [_, str(name), *_] if len(name) > MAX_NAME:
            raise SavingError(f"a symbol's name has {len(name)} characters; at most {MAX_NAME} are read")
        case ["dummy", str(name), dict(facts), int(index)]:
            return sympy.Dummy(name, dummy_index=index, **_facts(facts))
        case ["symbol", str(name), dict(facts)]:
            return sympy.Symbol(name, **_facts(facts))
        case ["matrix", str(name), rows, columns]:
            return sympy.MatrixSymbol(name, read_dim(rows), read_dim(columns))
        case ["array", name, *shape]:
            return ArraySymbol(read_symbol(name), tuple(map(read_dim, shape)))
        case ["indexed", label, None]:
            return sympy.IndexedBase(read_symbol(label))
        case ["indexed", label, list(shape)]:
            return sympy.IndexedBase(read_symbol(label), shape=tuple(map(read_dim, shape)))
    raise SavingError(f"{shortened(saved)} is not a saved symbol")


def _facts(facts: dict[Any, Any]) -> dict[str, bool]:
    for name, value in facts.items():
        if name not in _assume_defined or not isinstance(value, bool):
            raise SavingError(f"{name!r}: {shortened(value)} is not an assumption about a symbol")
    return facts


# ---- dimensions ----------------------------------------------------------------------------------


def write_dim(dim: sympy.Expr) -> Json:
    """A dimension in prefix notation: ``["+", ["*", 2, n], 1]``."""
    if isinstance(dim, (int, sympy.Integer)):
        return int(dim)
    if isinstance(dim, sympy.Symbol):
        return write_symbol(dim)
    if isinstance(dim, sympy.Rational):
        return ["fraction", int(dim.p), int(dim.q)]
    if isinstance(dim, sympy.Pow) and isinstance(dim.exp, sympy.Integer):
        return ["^", write_dim(dim.base), int(dim.exp)]
    for name, head in OPERATORS.items():
        if isinstance(dim, head):
            return [name, *map(write_dim, dim.args)]
    raise SavingError(f"the dimension {dim} cannot be saved: it is not made of + * ^ floor max mod")


def read_dim(saved: Json) -> Dim:
    """A dimension from its prefix notation."""
    match saved:
        case bool():
            pass
        case int():
            return saved
        case ["symbol" | "dummy", *_]:
            return read_symbol(saved)
        case ["fraction", int(p), int(q)] if q:
            return _checked(sympy.Rational(p, q))
        case ["^", base, int(exponent)] if abs(exponent) <= MAX_POWER:
            read = sympy.sympify(read_dim(base), strict=True)
            if power_terms(read, exponent) <= MAX_DIMENSION_TERMS:
                return _checked(read**exponent)
        case [str(name), *parts] if name in OPERATORS and parts:
            if name not in "+*" and len(parts) > MAX_HARD_FUNCTIONS:
                raise SavingError(f"{name} of {len(parts)} dimensions; at most {MAX_HARD_FUNCTIONS} are read")
            return _checked(OPERATORS[name](*map(read_dim, parts)))
    raise SavingError(f"{shortened(saved)} is not a saved dimension")


def _checked(dim: sympy.Expr) -> sympy.Expr:
    check_dim(dim)
    return _as_int(dim)


def _as_int(dim: sympy.Expr) -> sympy.Expr:
    return int(dim) if isinstance(dim, sympy.Integer) else dim


# ---- numbers -------------------------------------------------------------------------------------


NUMBERS = (int, float, Fraction, sympy.NumberSymbol, sympy.Float)
"""The types that `write_number` accepts."""


def write_number(value: Any) -> Json:
    """A number as JSON, exact to its last bit."""
    if isinstance(value, int):
        return value if isinstance(value, bool) or abs(value) <= MAX_DECIMAL_INT else ["int", hex(value)]
    if isinstance(value, float):
        return ["float", value.hex()]
    if isinstance(value, Fraction):
        return ["fraction", hex(value.numerator), hex(value.denominator)]
    if isinstance(value, sympy.NumberSymbol):
        return ["constant", str(value)]
    sign, mantissa, exponent, bits = (int(v) for v in value._mpf_)
    return ["Float", sign, hex(mantissa), exponent, bits, value._prec]


def read_number(saved: Json) -> Number:
    """A number from its saved form."""
    match saved:
        case int():
            return saved
        case ["float", str(digits)]:
            return float.fromhex(digits)
        case ["int", str(digits)]:
            return read_digits(digits)
        case ["fraction", str(p), str(q)]:
            return Fraction(read_digits(p), read_digits(q))
        case ["constant", str(name)] if name in NUMBER_SYMBOLS:
            return NUMBER_SYMBOLS[name]
        case ["Float", int(sign), str(mantissa), int(exponent), int(bits), int(precision)]:
            return _float(sign, read_digits(mantissa), exponent, bits, precision)
    raise SavingError(f"{shortened(saved)} is not a saved number")


def _float(sign: int, mantissa: int, exponent: int, bits: int, precision: int) -> sympy.Expr:
    """A SymPy Float; infinities and NaN have a mantissa of 0."""
    if max(abs(exponent), bits, precision) > NUMBER_BITS or precision < 1:
        raise SavingError("a number is too large, or has too many digits")
    if sign not in (0, 1) or (mantissa and (bits != mantissa.bit_length() or mantissa % 2 == 0)):
        raise SavingError("the parts of a number do not fit together")
    return sympy.Float((sign, mantissa, exponent, bits), precision=precision)

"""Limits of a saved graph: size, depth, and numbers that are small enough for computations.

SymPy computes while it builds: 10**(64**6) is a number of 6·10¹⁰ digits, expand((n + 1)**10**6) has a
million terms. Therefore the contents of a file are checked before they are built. The limits are far above
the needs of models.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import sympy

from symad.core.dims import Dim
from symad.core.signatures import Json
from symad.errors import SavingError

MAX_TEXT = 2**30
"""The largest number of characters of a file."""

MAX_ERROR = 2000
"""The largest number of characters of an error: texts of a damaged file may have any length."""

DEEPEST = 150
"""The largest nesting depth of lists."""

MAX_NAME = 1000
"""The largest number of characters of a symbol's name."""

NUMBER_BITS = 2**16
"""The largest number of bits of a number in an expression, or of a number computed from those in it."""

DIM_BITS = 63
"""The largest number of bits of a dimension."""

MAX_DIMENSION_TERMS = 4096
"""The largest number of terms of the expanded product of the dimensions of an array."""

MAX_HARD_FUNCTIONS = 6
"""The largest number of functions such as max and floor in a dimension: SymPy compares pairs of arguments."""

MAX_COMPARED_ARGUMENTS = 50
"""The largest number of arguments of logical functions, max and min: SymPy compares them in pairs."""

FORMULA_PARTS = 2000
"""The largest number of parts of an expression."""

ALL_TERMS = 20_000
"""The largest sum of terms and weighted functions over the different dimensions of a file."""

HARD_WEIGHT = 50
"""The weight of a function such as max in this sum."""


@dataclass
class DimensionBudget:
    """The remaining budget for the dimensions of one file."""

    terms: int = ALL_TERMS


BUDGET: ContextVar[DimensionBudget | None] = ContextVar("BUDGET", default=None)
"""The budget of the file that is being read."""


def check_document(document: Json) -> None:
    """Raise SavingError if lists are nested deeper than `DEEPEST`."""
    level: list[Any] = [document]
    for _ in range(DEEPEST):
        level = [
            part
            for value in level
            for part in (value.values() if isinstance(value, dict) else value)
            if isinstance(part, (list, dict))
        ]
        if not level:
            return
    raise SavingError(f"values are nested too deeply; at most {DEEPEST} levels are read")


def shortened(value: object) -> str:
    """A value of a file, shortened for messages."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def read_digits(digits: str) -> int:
    """An integer in hexadecimal, of bounded length."""
    if len(digits) > NUMBER_BITS // 4 + 4:
        raise SavingError(f"a number has {len(digits)} digits, which is too many")
    return int(digits, 16)


# ---- dimensions ----------------------------------------------------------------------------------


def terms(dim: sympy.Expr) -> int:
    """An upper bound on the number of terms of an expanded dimension."""
    if isinstance(dim, sympy.Add):
        return sum(map(terms, dim.args))
    if isinstance(dim, sympy.Mul):
        return math.prod(map(terms, dim.args))
    if isinstance(dim, sympy.Pow):
        return power_terms(dim.base, dim.exp)
    return 1


def power_terms(base: sympy.Expr, exponent: Dim) -> int:
    """The number of terms of an expanded power."""
    count, times = terms(base), abs(int(exponent)) if getattr(exponent, "is_Integer", True) else 1
    return math.comb(count + times - 1, times)


def check_dim(dim: sympy.Expr) -> None:
    """Raise SavingError if a dimension is negative, a number beyond `DIM_BITS`, or too complicated."""
    if isinstance(dim, int):
        if dim.bit_length() > DIM_BITS:
            raise SavingError(f"a dimension has {dim.bit_length()} bits, which is too many")
        return
    numbers = dim.atoms(sympy.Rational)
    if any(int(part).bit_length() > DIM_BITS for r in numbers for part in (r.p, r.q)):
        raise SavingError("a number in a dimension is too large")
    hard = len(dim.atoms(sympy.floor, sympy.ceiling, sympy.Max, sympy.Min, sympy.Mod))
    demanded = terms(dim) + HARD_WEIGHT * hard
    budget = BUDGET.get() or DimensionBudget()
    budget.terms -= demanded
    if hard > MAX_HARD_FUNCTIONS or demanded > MAX_DIMENSION_TERMS or budget.terms < 0:
        raise SavingError("the dimensions are too complicated to be read")


def check_shape(dims: Sequence[Dim]) -> None:
    """Raise SavingError if a dimension is negative, or the product of all is too complicated."""
    for dim in dims:
        if dim < 0 if isinstance(dim, int) else dim.is_negative:
            raise SavingError(f"the dimension {dim} is negative")
        if isinstance(dim, int) and dim.bit_length() > DIM_BITS:
            raise SavingError(f"a dimension has {dim.bit_length()} bits, which is too many")
    if math.prod(terms(d) for d in dims if not isinstance(d, int)) > MAX_DIMENSION_TERMS:
        raise SavingError("the dimensions are too complicated to be read")


# ---- numbers in expressions ----------------------------------------------------------------------


@dataclass(frozen=True)
class Extent:
    """Upper bounds for a value without symbols: log₂ of its magnitude, and its number of bits."""

    magnitude: float
    bits: float

    def __post_init__(self) -> None:
        if self.bits > NUMBER_BITS or self.magnitude > NUMBER_BITS:
            raise SavingError("an expression contains a number that is too large")


SLOW = {
    "abs", "floor", "ceiling", "max", "min", "mod", "if", "cases", "<", "<=", ">", ">=", "==", "!=", "and",
    "or", "xor", "not", *(f"sympy.{name}" for name in (
        "sin", "cos", "tan", "cot", "sec", "csc", "sinc", "asin", "acos", "atan", "acot", "asec", "acsc",
        "atan2", "tanh", "coth", "sech", "csch", "asinh", "acosh", "atanh", "acoth", "asech", "acsch", "log",
        "erf", "erfc", "erfinv", "erfcinv", "sign", "Heaviside", "Abs", "floor", "ceiling", "frac", "Max",
        "Min", "Mod", "LambertW", "re", "im", "arg", "conjugate", "sqrt", "cbrt", "DiracDelta",
    )),
}  # fmt: skip
"""Functions whose values are not much larger than their arguments."""

FAST_ARGUMENT = 7.0
"""log₂ of the maximum magnitude of arguments of SymPy's other functions, such as factorials."""


def number_extent(number: sympy.Expr) -> Extent:
    """The bounds for a SymPy number."""
    if isinstance(number, sympy.Rational):
        p, q = abs(int(number.p)).bit_length(), int(number.q).bit_length()
        return Extent(max(p - q + 1, 0), p + q)
    if isinstance(number, sympy.Float):
        _, mantissa, exponent, bits = number._mpf_
        return Extent(max(exponent + bits, 0), abs(exponent) + int(mantissa).bit_length())
    return Extent(2, 2)


def extent(name: str, parts: Sequence[Extent | None]) -> Extent | None:
    """The bounds for a function by its saved name; None if a part has symbols.

    Raises:
        SavingError: it is too large.
    """
    known = [part for part in parts if part is not None]
    if name == "^" and len(parts) == 2 and parts[1] is not None and parts[1].bits > NUMBER_BITS:
        raise SavingError("an expression contains a number that is too large")
    if len(known) < len(parts):
        return None
    bits, magnitude = sum(p.bits for p in known), max(p.magnitude for p in known)
    if name == "+":
        return Extent(magnitude + math.log2(len(known)), bits)
    if name == "*":
        return Extent(sum(p.magnitude for p in known), bits)
    if name in ("^", "sympy.exp"):
        if known[-1].magnitude > math.log2(NUMBER_BITS):
            raise SavingError("an expression contains a power that is too large")
        size = (known[0].bits + 1 if name == "^" else 2) * 2 ** known[-1].magnitude
        return Extent(size, size + known[-1].bits)
    if name in SLOW or not name.startswith("sympy."):
        return Extent(max(magnitude, 64), bits + 64)
    if magnitude > FAST_ARGUMENT:
        raise SavingError(f"{name[6:]} of a number above 2**{FAST_ARGUMENT:.0f} is too large")
    return Extent(1024, bits + 1024)

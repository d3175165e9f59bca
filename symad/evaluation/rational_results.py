"""Evaluation at Python integers: exact if every output is a rational function of them.

A bound on the digits is computed first, so that no call takes long: repeated squares soon have more digits
than memory can hold, and are computed as floats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import sympy
from numpy.typing import DTypeLike

from symad.core.arrays import Array, Number
from symad.core.graph import Node, topological
from symad.numbers.number_domains import UndefinedValue, as_float
from symad.numbers.values import unchecked
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.sources import Constant, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Condition, Select

MAX_EXACT_BITS = 4096
"""The maximum number of bits of the numerator or denominator of a value that is computed exactly."""

RATIONAL_HEADS = (sympy.Abs, sympy.sign, sympy.Max, sympy.Min, sympy.floor, sympy.ceiling)
"""Functions that map a rational number to itself, up to sign, or to an integer that is not larger."""


class Bits(NamedTuple):
    """Bounds on a fraction: its numerator is at most 2^above, its denominator at most 2^below."""

    above: int
    below: int

    def power(self, exponent: int) -> Bits:
        """The bounds of its power; for a negative power the two are swapped."""
        above, below = self.above * abs(exponent), self.below * abs(exponent)
        return Bits(above, below) if exponent >= 0 else Bits(below, above)


ONE_BIT = Bits(1, 0)


class Exact(NamedTuple):
    """An evaluation on fractions: the values of the inputs, and the results."""

    point: dict[Node, Number]
    results: list[Fraction | bool]


def evaluate_exactly(outputs: Sequence[Node], point: Mapping[Node, Number]) -> Exact | None:
    """The evaluation at integers; None if a value is not an integer, or an output not a fraction, as 1/0."""
    whole = {node: value for node, value in point.items() if type(value) is int}
    if not point or len(whole) < len(point) or not _are_rational(outputs, whole):
        return None
    fractions: dict[Node, Number] = {node: Fraction(value) for node, value in whole.items()}
    results = unchecked(outputs, fractions)
    return None if any(isinstance(r, UndefinedValue) for r in results) else Exact(fractions, results)


def _are_rational(outputs: Sequence[Node], point: Mapping[Node, int]) -> bool:
    """True if scalar outputs at integers are fractions of bounded size, by the ops that lead to them."""
    bits = {node: Bits(value.bit_length(), 0) for node, value in point.items()}
    for node in topological(outputs):
        if node in bits:
            continue
        found = _bits(node, [bits[a] for a in node.args])
        if found is None or max(found) > MAX_EXACT_BITS:
            return False
        bits[node] = found
    return True


def _bits(node: Node, args: Sequence[Bits]) -> Bits | None:
    """Bounds on the value of a node, from those of its arguments; None if it may not be a fraction."""
    op = node.op
    if node.shape:
        return None
    if isinstance(op, Constant):
        if op.kind not in ("int", "fraction", "bool"):
            return None
        number = Fraction(op.value)
        return Bits(number.numerator.bit_length(), (number.denominator - 1).bit_length())
    if isinstance(op, Add):
        below = sum(a.below for a in args)
        return Bits(max(a.above + below - a.below for a in args) + len(args).bit_length(), below)
    if isinstance(op, Mul):
        powers = [a.power(power) for a, power in zip(args, op.powers, strict=True)]
        return Bits(sum(p.above for p in powers), sum(p.below for p in powers))
    if isinstance(op, Pow):
        exponent = constant_value(node.args[1])
        return args[0].power(exponent) if type(exponent) is int else None
    if isinstance(op, Condition):
        return ONE_BIT
    if isinstance(op, Select) or (isinstance(op, Apply) and op.head in RATIONAL_HEADS):
        return Bits(max(a.above for a in args) + 1, max(a.below for a in args))
    return None


class ExactResult(Fraction):
    """A fraction that NumPy reads as the nearest float, so that results of integers enter its functions."""

    __slots__ = ()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.asarray(as_float(self), dtype)

    def __repr__(self) -> str:
        return f"Fraction({self.numerator}, {self.denominator})"


def as_result(value: Fraction | bool) -> ExactResult | int | bool:
    """An exact value as a call returns it: integers as ints."""
    if isinstance(value, bool):
        return value
    return value.numerator if value.denominator == 1 else ExactResult(value)

"""Functions at fixed numbers as exact numbers: binomial(4, [0, 1, 2]) is [1, 4, 6].

SymPy computes such a value when an expression with numbers is made; of an array of indices nobody has. The
arguments are bounded, because SymPy's work cannot be counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import sympy

from symad.core.graph import Node, op_of
from symad.ops.arrays.stacking import pack_scalars
from symad.ops.basic.arithmetic import add, mul
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import Apply
from symad.verification.terms.exact_steps import exact_values

COUNTING = (
    sympy.factorial, sympy.binomial, sympy.gamma, sympy.fibonacci, sympy.lucas, sympy.catalan, sympy.harmonic,
    sympy.polygamma,
)  # fmt: skip
"""Functions that are rational, or sums of a few known constants, at integers that are not negative."""

ROUNDING = (sympy.floor, sympy.ceiling, sympy.Mod)
"""Functions that are rational at all fractions."""

MAX_ELEMENTS, MAX_ARGUMENT = 256, 256
"""The maximum numbers of elements, and of numerators and denominators of arguments."""


def at_numbers(node: Node) -> Node | None:
    """A function of fixed numbers as an array of exact numbers; None if it is not one."""
    head = op_of(node, Apply).head
    known = exact_values(node.args, MAX_ELEMENTS) if head in COUNTING + ROUNDING else None
    if known is None or 0 in node.shape:
        return None
    columns = [np.broadcast_to(v, node.shape).ravel().tolist() for v in known]
    found = [_value(head, tuple(map(Fraction, arguments))) for arguments in zip(*columns, strict=True)]
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return None
    return pack_scalars(parts, node.shape) if node.shape else parts[0]


def _value(head: type[sympy.Basic], arguments: Sequence[Fraction]) -> Node | None:
    small = all(max(abs(v.numerator), v.denominator) <= MAX_ARGUMENT for v in arguments)
    if not small or (head not in ROUNDING and any(v < 0 for v in arguments)):
        return None
    if head is sympy.polygamma and arguments[0]:
        return None
    return _closed(head(*[sympy.Rational(v.numerator, v.denominator) for v in arguments]))


def _closed(value: sympy.Basic) -> Node | None:
    """A number as SymPy writes it: sums and products of fractions and known constants."""
    if isinstance(value, (sympy.Rational, sympy.NumberSymbol)):
        return constant(value)
    args = [part for part in map(_closed, value.args) if part is not None]
    if len(args) < len(value.args) or not isinstance(value, (sympy.Add, sympy.Mul)):
        return None
    return (add if isinstance(value, sympy.Add) else mul)(*args)

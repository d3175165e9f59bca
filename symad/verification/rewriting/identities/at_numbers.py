"""Functions at fixed numbers as exact numbers: binomial(4, [0, 1, 2]) is [1, 4, 6].

SymPy computes such a value when an expression with numbers is made; of an array of indices nobody has. The
arguments are bounded, because SymPy's work cannot be counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod

import numpy as np
import sympy

from symad.core.graph import Node, op_of, rebuild, topological
from symad.core.questions import evaluate
from symad.ops.arrays.gathering import Gather, ScatterAdd
from symad.ops.arrays.stacking import pack_scalars
from symad.ops.basic.arithmetic import Add, Mul, add, mul
from symad.ops.basic.shaping import ShapingOp
from symad.ops.basic.sources import ArrayConstant, Constant, Iota, constant
from symad.ops.elementwise.apply import Apply
from symad.verification.fields.prime_fields import Array

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
    head, fixed = op_of(node, Apply).head, all(isinstance(d, int) for d in node.shape)
    if head not in COUNTING + ROUNDING or not fixed or not 0 < prod(node.shape) <= MAX_ELEMENTS:
        return None
    known = [_fractions(arg) for arg in node.args]
    columns = [np.broadcast_to(v, node.shape).ravel().tolist() for v in known if v is not None]
    if len(columns) < len(known):
        return None
    found = [_value(head, arguments) for arguments in zip(*columns, strict=True)]
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return None
    return pack_scalars(parts, node.shape) if node.shape else parts[0]


def with_whole_parts(outputs: Sequence[Node]) -> tuple[Node, ...]:
    """The nodes with whole parts of fixed fractions as numbers: ⌈1 − 1/3 − 2/3⌉ is 0, and no jump."""

    def exact(node: Node, args: tuple[Node, ...]) -> Node:
        new = node if args == node.args else Node.of(node.op, args)
        rounds = isinstance(node.op, Apply) and node.op.head in ROUNDING
        return (at_numbers(new) if rounds else None) or new

    return rebuild(outputs, {}, exact)


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


def _fractions(output: Node) -> Array | None:
    """The values of a node; None if it has inputs, or is no plain arithmetic."""
    made: dict[Node, Array] = {}
    for node in topological([output]):
        value = _values(node, [made[a] for a in node.args])
        if value is None:
            return None
        made[node] = np.asarray(value, dtype=object)
    return made[output]


def _values(node: Node, args: Sequence[Array]) -> Array | None:
    op = node.op
    if not all(isinstance(d, int) for d in node.shape) or prod(node.shape) > MAX_ELEMENTS:
        return None
    if isinstance(op, Constant) and op.kind in ("int", "fraction"):
        return np.array(Fraction(op.value), dtype=object)
    if isinstance(op, Iota) or (isinstance(op, ArrayConstant) and op.array.dtype.kind in "iu"):
        numbers = np.arange(node.shape[0]) if isinstance(op, Iota) else op.array
        return np.frompyfunc(lambda v: Fraction(int(v)), 1, 1)(numbers)
    if isinstance(op, Add):
        return np.asarray(sum(a if sign == 1 else -a for sign, a in zip(op.signs, args, strict=True)))
    if isinstance(op, Mul):
        if any(p < 0 and 0 in a.ravel().tolist() for p, a in zip(op.powers, args, strict=True)):
            return None
        return np.asarray(prod([a if p == 1 else 1 / a for p, a in zip(op.powers, args, strict=True)]))
    if isinstance(op, ShapingOp) and not isinstance(op, (Gather, ScatterAdd)):
        return evaluate(op, tuple(args))
    return None

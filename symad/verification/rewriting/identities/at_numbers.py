"""Functions of integers at fixed arguments, as exact numbers: binomial(4, [0, 1, 2]) is [1, 4, 6].

SymPy computes such a value when an expression with numbers is made; of an array of indices nobody has. The
arguments are bounded, because SymPy's work cannot be counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import prod

import numpy as np
import sympy

from symad.core.graph import Node, op_of, topological
from symad.ops.arrays.stacking import pack_scalars
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import ArrayConstant, Constant, Iota, constant
from symad.ops.elementwise.apply import Apply

COUNTING = (sympy.factorial, sympy.binomial, sympy.gamma, sympy.fibonacci, sympy.lucas, sympy.catalan)
"""Functions that are rational at integers that are not negative."""

ROUNDING = (sympy.floor, sympy.ceiling, sympy.Mod)
"""Functions that are rational at all fractions."""

MAX_ELEMENTS, MAX_ARGUMENT = 256, 256
"""The maximum numbers of elements, and of numerators and denominators, of arguments."""


def at_numbers(node: Node) -> Node | None:
    """A function of fixed fractions as an array of exact numbers; None if it is not one, or not rational."""
    head = op_of(node, Apply).head
    fixed = all(isinstance(d, int) for d in node.shape)
    if head not in COUNTING + ROUNDING or not fixed or not 0 < prod(node.shape) <= MAX_ELEMENTS:
        return None
    columns = []
    for arg in node.args:
        values = _fractions(arg)
        if values is None:
            return None
        columns.append(np.broadcast_to(values, node.shape).ravel().tolist())
    found = []
    for arguments in zip(*columns, strict=True):
        if any(max(abs(v.numerator), v.denominator) > MAX_ARGUMENT for v in arguments):
            return None
        if head in COUNTING and any(v < 0 for v in arguments):
            return None
        value = head(*[sympy.Rational(v.numerator, v.denominator) for v in arguments])
        if not isinstance(value, sympy.Rational):
            return None
        found.append(constant(value))
    return pack_scalars(found, node.shape) if node.shape else found[0]


def _fractions(output: Node) -> np.ndarray | None:
    """The values of a node as an array of fractions; None if it has inputs, or is no plain arithmetic."""
    made: dict[Node, np.ndarray] = {}
    for node in topological([output]):
        value = _values(node, [made[a] for a in node.args])
        if value is None:
            return None
        made[node] = value
    return made[output]


def _values(node: Node, args: list[np.ndarray]) -> np.ndarray | None:
    op = node.op
    if not all(isinstance(d, int) for d in node.shape) or prod(node.shape) > MAX_ELEMENTS:
        return None
    if isinstance(op, Constant) and op.kind in ("int", "fraction"):
        return np.array(Fraction(op.value), dtype=object)
    if isinstance(op, Iota):
        return _exact(range(node.shape[0]))
    if isinstance(op, ArrayConstant) and op.array.dtype.kind in "iu":
        return _exact(op.array.ravel().tolist()).reshape(op.shape)
    if isinstance(op, Add):
        return np.asarray(sum(a if sign == 1 else -a for sign, a in zip(op.signs, args, strict=True)))
    if isinstance(op, Mul):
        if any(p < 0 and 0 in a.ravel().tolist() for p, a in zip(op.powers, args, strict=True)):
            return None
        return np.asarray(prod([a if p == 1 else 1 / a for p, a in zip(op.powers, args, strict=True)]))
    if isinstance(op, Broadcast):
        free = [node.args[0].shape[op.axes.index(k)] if k in op.axes else 1 for k in range(len(op.shape))]
        return np.broadcast_to(args[0].reshape(free), op.shape)
    return None


def _exact(values: Iterable[int]) -> np.ndarray:
    return np.array([Fraction(v) for v in values], dtype=object)

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

from symad.core.arrays import Array
from symad.core.graph import Node, op_of, topological
from symad.ops.arrays.stacking import pack_scalars
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import ArrayConstant, Constant, Iota, constant
from symad.ops.elementwise.apply import Apply

HEADS = frozenset(
    (
        sympy.factorial, sympy.factorial2, sympy.binomial, sympy.RisingFactorial, sympy.FallingFactorial,
        sympy.gamma, sympy.fibonacci, sympy.lucas, sympy.catalan, sympy.harmonic, sympy.bernoulli,
        sympy.floor, sympy.ceiling, sympy.Mod, sympy.Abs, sympy.sign,
    )
)  # fmt: skip
"""Functions that are rational at integers."""

MAX_ELEMENTS, MAX_ARGUMENT = 256, 256
"""The maximum numbers of elements, and of numerators and denominators, of arguments."""


def at_numbers(node: Node) -> Node | None:
    """A function of fixed fractions as an array of exact numbers; None if it is not one, or not rational."""
    head = op_of(node, Apply).head
    fixed = all(isinstance(d, int) for d in node.shape)
    if head not in HEADS or not fixed or not 0 < prod(node.shape) <= MAX_ELEMENTS:
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
        value = head(*[sympy.Rational(v.numerator, v.denominator) for v in arguments])
        if not isinstance(value, sympy.Rational):
            return None
        found.append(constant(value))
    return pack_scalars(found, node.shape) if node.shape else found[0]


def _fractions(output: Node) -> Array | None:
    """The values of a node as an array of fractions; None if it has inputs, or is no plain arithmetic."""
    made: dict[Node, Array] = {}
    for node in topological([output]):
        value = _values(node, [made[a] for a in node.args])
        if value is None:
            return None
        made[node] = value
    return made[output]


def _values(node: Node, args: list[Array]) -> Array | None:
    op = node.op
    if isinstance(op, Constant) and op.kind in ("int", "fraction"):
        return np.array(Fraction(op.value), dtype=object)
    if isinstance(op, Iota) and isinstance(op.size, int) and op.size <= MAX_ELEMENTS:
        return _exact(range(op.size))
    if isinstance(op, ArrayConstant) and op.array.dtype.kind in "iu" and op.array.size <= MAX_ELEMENTS:
        return _exact(op.array.ravel().tolist()).reshape(op.shape)
    if isinstance(op, Add):
        return np.asarray(sum(a if sign == 1 else -a for sign, a in zip(op.signs, args, strict=True)))
    if isinstance(op, Mul) and not any((a == 0).any() for p, a in zip(op.powers, args, strict=True) if p < 0):
        return np.asarray(prod([a if p == 1 else 1 / a for p, a in zip(op.powers, args, strict=True)]))
    if (
        isinstance(op, Broadcast)
        and all(isinstance(d, int) for d in op.shape)
        and prod(op.shape) <= MAX_ELEMENTS
    ):
        free = [node.args[0].shape[op.axes.index(k)] if k in op.axes else 1 for k in range(len(op.shape))]
        return np.broadcast_to(args[0].reshape(free), op.shape)
    return None


def _exact(values: Iterable[int]) -> Array:
    return np.array([Fraction(v) for v in values], dtype=object)

"""Functions at fixed numbers as exact numbers, and of fixed orders as polynomials: indices enumerated.

binomial(4, [0, 1, 2]) is [1, 4, 6], and legendre([0, 1, 2], t) is [1, t, (3 t² − 1)/2]. SymPy computes such
a value when an expression with numbers is made; of an array of indices nobody has. The arguments are bounded,
because SymPy's work cannot be counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
import sympy

from symad.core.graph import Node, op_of, rebuild, topological
from symad.ops.arrays.stacking import element, pack_scalars
from symad.ops.basic.arithmetic import Add, Mul, add, mul
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import ArrayConstant, Constant, Iota, constant
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import power

COUNTING = (
    sympy.factorial, sympy.binomial, sympy.gamma, sympy.fibonacci, sympy.lucas, sympy.catalan,
    sympy.harmonic, sympy.polygamma, sympy.zeta,
)  # fmt: skip
"""Functions that are rational, or sums of a few known constants, at integers that are not negative."""

ROUNDING = (sympy.floor, sympy.ceiling, sympy.Mod)
"""Functions that are rational at all fractions."""

CIRCULAR = (sympy.cos, sympy.sin, sympy.tan)
"""Functions that SymPy writes with roots, or in one form, at fractions of π."""

POLYNOMIALS = (
    sympy.legendre, sympy.chebyshevt, sympy.chebyshevu, sympy.hermite, sympy.laguerre, sympy.assoc_laguerre,
    sympy.gegenbauer, sympy.jacobi, sympy.binomial,
)  # fmt: skip
"""Functions that are polynomials of one argument if the others are fixed, the orders not negative."""

COSTLY = (*set(POLYNOMIALS).difference(COUNTING), sympy.polygamma, sympy.zeta)
"""Functions that take long where the first argument is large."""

MAX_ELEMENTS, MAX_ARGUMENT, MAX_DEGREE = 256, 256, 32
"""The maximum numbers of elements, of numerators and denominators of arguments, and of degrees."""


def at_numbers(node: Node) -> Node | None:
    """A function of fixed numbers as an array of exact numbers or polynomials; None if it is not one."""
    head = op_of(node, Apply).head
    fixed = all(isinstance(d, int) for d in node.shape)
    known = COUNTING + ROUNDING + CIRCULAR + POLYNOMIALS
    if head not in known or not fixed or not 0 < prod(node.shape) <= MAX_ELEMENTS:
        return None
    columns, free = list[list[Exact | Node]](), list[Node]()
    for arg in node.args:
        known_values = _fractions(arg)
        if known_values is None:
            free.append(arg)
            columns.append([element(arg, *at) if arg.shape else arg for at in np.ndindex(node.shape)])
        else:
            values, of_pi = known_values
            each = np.broadcast_to(values, node.shape).ravel().tolist()
            columns.append([Exact(v, bool(of_pi)) for v in each])
    if free and (len(free) > 1 or head not in POLYNOMIALS):
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


class Exact(NamedTuple):
    """A fraction, or a fraction of π."""

    value: Fraction
    of_pi: bool

    @property
    def number(self) -> sympy.Expr:
        """The same for SymPy."""
        return sympy.Rational(self.value.numerator, self.value.denominator) * (sympy.pi if self.of_pi else 1)


def _value(head: type[sympy.Basic], arguments: Sequence[Exact | Node]) -> Node | None:
    """The function at numbers, or at numbers and one node."""
    fixed = [v for v in arguments if isinstance(v, Exact)]
    small = all(max(abs(v.value.numerator), v.value.denominator) <= MAX_ARGUMENT for v in fixed)
    if not small or any(v.of_pi for v in fixed) != (head in CIRCULAR):
        return None
    if len(fixed) < len(arguments):
        return _polynomial(head, arguments)
    if head not in (*ROUNDING, *CIRCULAR) and any(v.value < 0 for v in fixed):
        return None
    if head in COSTLY and fixed[0].value > MAX_DEGREE:
        return None
    return _closed(head(*[v.number for v in fixed]))


def _polynomial(head: type[sympy.Basic], arguments: Sequence[Exact | Node]) -> Node | None:
    """A polynomial of the node among the arguments, by Horner's rule."""
    at, of = (0, 1) if head is sympy.binomial else (len(arguments) - 1, 0)
    node, order = arguments[at], arguments[of]
    if not isinstance(node, Node) or not isinstance(order, Exact) or order.value.denominator > 1:
        return None
    if order.value < 0:
        return constant(0) if _is_zero(head, arguments) else None
    if order.value > MAX_DEGREE:
        return None
    unknown = sympy.Dummy()
    made = head(*[v.number if isinstance(v, Exact) else unknown for v in arguments])
    made = sympy.expand_func(made) if made.has(head) else made
    if not made.is_polynomial(unknown):
        return None
    terms = sympy.Poly(made, unknown).all_coeffs()
    if not all(isinstance(c, sympy.Rational) for c in terms):
        return None
    return reduce(lambda total, c: add(mul(total, node), constant(c)), terms[1:], constant(terms[0]))


def _is_zero(head: type[sympy.Basic], arguments: Sequence[Exact | Node]) -> bool:
    """Whether a polynomial of a negative order, which derivatives of others have, is 0 (DLMF 18.9)."""
    order, *more = [v.value for v in arguments if isinstance(v, Exact)]
    if head is sympy.gegenbauer:  # Γ(n + 2a)/n! is
        return order + 2 * more[0] > 0
    return order == -1 and head is sympy.chebyshevu


def _closed(value: sympy.Basic) -> Node | None:
    """A number as SymPy writes it: of fractions, known constants, roots, and functions of such."""
    if isinstance(value, (sympy.Rational, sympy.NumberSymbol)):
        return constant(value)
    parts = [_closed(part) for part in value.args]
    args = [part for part in parts if part is not None]
    if not parts or len(args) < len(parts):
        return None
    if isinstance(value, (sympy.Add, sympy.Mul)):
        return (add if isinstance(value, sympy.Add) else mul)(*args)
    if isinstance(value, sympy.Pow) and isinstance(value.exp, sympy.Rational):
        return power(*args)
    return apply(value.func, *args) if isinstance(value, (*CIRCULAR, sympy.zeta)) else None


Fixed: TypeAlias = "tuple[np.ndarray, int]"
"""Fractions, and the power of π, 0 or 1, that they all are multiples of."""


def _fractions(output: Node) -> Fixed | None:
    """The values of a node; None if it has inputs, or is no plain arithmetic."""
    made: dict[Node, Fixed] = {}
    for node in topological([output]):
        value = _values(node, [made[a] for a in node.args])
        if value is None or value[1] not in (0, 1):
            return None
        made[node] = value
    return made[output]


def _values(node: Node, known: list[Fixed]) -> Fixed | None:
    op, args, turns = node.op, [values for values, _ in known], [turn for _, turn in known]
    if not all(isinstance(d, int) for d in node.shape) or prod(node.shape) > MAX_ELEMENTS:
        return None
    if isinstance(op, Constant) and op.value is sympy.pi:
        return np.array(Fraction(1), dtype=object), 1
    if isinstance(op, Constant) and op.kind in ("int", "fraction"):
        return np.array(Fraction(op.value), dtype=object), 0
    if isinstance(op, Iota):
        return _exact(range(node.shape[0])), 0
    if isinstance(op, ArrayConstant) and op.array.dtype.kind in "iu":
        return _exact(op.array.ravel().tolist()).reshape(op.shape), 0
    if isinstance(op, Add):
        if len(set(turns)) > 1:
            return None
        return np.asarray(sum(a if sign == 1 else -a for sign, a in zip(op.signs, args, strict=True))), turns[
            0
        ]
    if isinstance(op, Mul):
        if any(p < 0 and 0 in a.ravel().tolist() for p, a in zip(op.powers, args, strict=True)):
            return None
        total = prod([a if p == 1 else 1 / a for p, a in zip(op.powers, args, strict=True)])
        return np.asarray(total), sum(p * turn for p, turn in zip(op.powers, turns, strict=True))
    if isinstance(op, Broadcast):
        free = [node.args[0].shape[op.axes.index(k)] if k in op.axes else 1 for k in range(len(op.shape))]
        return np.broadcast_to(args[0].reshape(free), op.shape), turns[0]
    return None


def _exact(values: Iterable[int]) -> np.ndarray:
    return np.array([Fraction(v) for v in values], dtype=object)

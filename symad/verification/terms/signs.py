"""Which nodes are positive or negative everywhere, as far as structure and assumptions tell.

A square counts as positive; whether it is 0 on an open set is asked of `vanishing`. A node that is
undefined somewhere (a root of something negative) counts by the points where it is defined.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import sympy

from symad.core.graph import Node, Op, topological
from symad.core.questions import question
from symad.facts.functions import ALWAYS, OF_ARGUMENT, OF_POSITIVE, fact
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.reduction import Extreme, Product
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape, Slice
from symad.ops.basic.sources import ArrayConstant, Constant, Dimension, Input, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select
from symad.verification.terms.discontinuities import SIGNS, unseen

Signs: TypeAlias = "tuple[int, ...]"


@question
def sign_of(op: Op, y: Node, signs: Signs) -> int:
    """1 if every element of ``y`` is positive, −1 if negative, 0 if that is not known."""


def known_signs(outputs: Iterable[Node]) -> dict[Node, int]:
    """The signs of all nodes that the outputs need."""
    found: dict[Node, int] = {}
    for node in topological(outputs):
        weak_sign(node, found)
    return found


def weak_sign(node: Node, known: dict[Node, int]) -> int:
    """1 if a node is nowhere negative, −1 if nowhere positive, or 0; ``known`` keeps what is found."""
    if node not in known:
        for n in unseen(node, known):
            known[n] = sign_of(n.op, n, tuple([known[a] for a in n.args]))
    return known[node]


@sign_of.dispatch
def unknown_sign(op: Op, y: Node, signs: Signs) -> int:
    return 0


@sign_of.dispatch
def input_sign(op: Input, y: Node, signs: Signs) -> int:
    if getattr(op.symbol, "is_nonnegative", None):
        return 1
    return -1 if getattr(op.symbol, "is_nonpositive", None) else 0


@sign_of.dispatch
def constant_sign(op: Constant, y: Node, signs: Signs) -> int:
    if isinstance(op.value, (int, float, Fraction)):
        return (op.value > 0) - (op.value < 0)
    return int(sympy.sign(op.value))


@sign_of.dispatch
def array_constant_sign(op: ArrayConstant, y: Node, signs: Signs) -> int:
    return 1 if np.all(op.array > 0) else -1 if np.all(op.array < 0) else 0


@sign_of.dispatch
def dimension_sign(op: Dimension, y: Node, signs: Signs) -> int:
    size = op.expression
    if isinstance(size, int):
        return int(size > 0)
    return int(isinstance(size, sympy.Symbol) or bool(size.is_positive))


@sign_of.dispatch
def add_sign(op: Add, y: Node, signs: Signs) -> int:
    total = {sign * known for sign, known in zip(op.signs, signs, strict=True)}
    if len(total) == 1 and total != {0}:
        return total.pop()
    return _root_sign(op, y) if len(y.args) == 2 else 0


def _root_sign(op: Add, y: Node) -> int:
    """The sign of ±√(a² + b) ± a for a positive b: that of the root."""
    for k, (root, other) in enumerate((y.args, y.args[::-1])):
        under = root.args[0] if isinstance(root.op, Pow) and _is_half(root.args[1]) else None
        if under is None or not isinstance(under.op, Add) or any(n.shape for n in (*y.args, *under.args)):
            continue
        rest = [(s, a) for s, a in zip(under.op.signs, under.args, strict=True) if not _is_square(a, other)]
        known = known_signs([a for _, a in rest])
        if len(rest) == len(under.args) - 1 and all(s * known[a] == 1 for s, a in rest):
            return op.signs[k]
    return 0


def _is_half(exponent: Node) -> bool:
    return constant_value(exponent) in (Fraction(1, 2), 0.5)


def _is_square(node: Node, of: Node) -> bool:
    if isinstance(node.op, Pow):
        return node.args[0] is of and constant_value(node.args[1]) == 2
    return isinstance(node.op, Mul) and node.op.powers == (1, 1) and node.args == (of, of)


@sign_of.dispatch
def mul_sign(op: Mul, y: Node, signs: Signs) -> int:
    """The product of the signs; unknown ones must occur in pairs, where sign(x) pairs with x."""
    result = 1
    odd: set[Node] = set()
    for arg, known in zip(y.args, signs, strict=True):
        if known:
            result *= known
        else:
            odd ^= {arg.args[0] if isinstance(arg.op, Apply) and arg.op.head in SIGNS else arg}
    return 0 if odd else result


@sign_of.dispatch
def pow_sign(op: Pow, y: Node, signs: Signs) -> int:
    """Positive for a positive base, an even power, or a power that only a positive base has."""
    value = constant_value(y.args[1])
    if signs[0] == 1:
        return 1
    if not isinstance(value, (int, float, Fraction)):
        return 0
    if Fraction(value).denominator != 1 or value % 2 == 0:
        return 1
    return signs[0]


@sign_of.dispatch
def apply_sign(op: Apply, y: Node, signs: Signs) -> int:
    sign = fact(op.head).sign
    if sign == ALWAYS:
        return 1
    if sign == OF_ARGUMENT:
        return int(signs[0])
    if sign == OF_POSITIVE and all(s == 1 for s in signs):
        return 1
    if op.head in (sympy.Max, sympy.Min):
        wins = 1 if op.head is sympy.Max else -1
        return wins if wins in signs else -wins if all(s == -wins for s in signs) else 0
    return 0


@sign_of.dispatch
def select_sign(op: Select, y: Node, signs: Signs) -> int:
    return int(signs[1]) if signs[1] == signs[2] else 0


@sign_of.dispatch
def einsum_sign(op: Einsum, y: Node, signs: Signs) -> int:
    """A sum of products of equal signs; x[...] x[...] with the same labels is a sum of squares."""
    result = 1
    odd: set[tuple[Node, tuple[int, ...]]] = set()
    for arg, labels, known in zip(y.args, op.inputs, signs, strict=True):
        if known:
            result *= known
        else:
            odd ^= {(arg, labels)}
    return 0 if odd else result


@sign_of.dispatch
def product_sign(op: Product, y: Node, signs: Signs) -> int:
    return 1 if signs[0] == 1 else 0


@sign_of.dispatch
def moved_sign(op: Broadcast | Reshape | Slice | Concatenate | Stack | Extreme, y: Node, signs: Signs) -> int:
    """The sign that all parts have."""
    common = set(signs)
    return int(common.pop()) if len(common) == 1 else 0


@sign_of.dispatch
def gather_sign(op: Gather, y: Node, signs: Signs) -> int:
    return int(signs[0])

"""Powers of powers, and of sums of squares, in forms whose derivatives at 0 are those of the function.

The chain rule by way of b^m multiplies a slope that vanishes at b = 0 by one that does not exist there.
Therefore (b^m)^p is differentiated as b^(mp) for b ≥ 0, and as |b|^(mp) for even m; q^p of a sum of squares
q as r^(2p) with the radius r = √q, for which `radius_limits` has limits. √(q²) is q, and (√q)^4 is q².
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction

import sympy

from symad.core.graph import Node, rebuild, topological
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import Mul
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import HALF, Pow, is_sum_of_squares, power, sqrt
from symad.ops.elementwise.radius import inside

Number = int | Fraction | float


def with_joined_powers(
    outputs: Sequence[Node], order: Sequence[Node], roots: Collection[Node]
) -> tuple[tuple[Node, ...], Sequence[Node]]:
    """The outputs with powers of powers joined, and the order of their nodes; arguments as `with_limits`."""
    if not any(_joined(node, node.args) for node in order):
        return tuple(outputs), order

    def made(node: Node, args: Nodes) -> Node:
        kept = node if args == node.args else Node.of(node.op, args)
        return _joined(node, args) or kept

    made_outputs = rebuild(outputs, {n: n for n in order if n in roots or not n.args}, made)
    return made_outputs, topological(made_outputs)


def _joined(node: Node, args: Nodes) -> Node | None:
    """A power, or an absolute value, of a power or of a sum of squares; None for what stays."""
    op = node.op
    if isinstance(op, Apply) and op.head is sympy.Abs:
        return args[0] if _is_positive(args[0]) else None
    outer = _exponent(args[1]) if isinstance(op, Pow) else None
    if outer is None:
        return None
    base, inner = _powered(args[0])
    total = inner * outer
    if total % 2 == 0 and (inner == HALF or outer % 1):
        return power(base, constant(_tidy(total))) if inner % 2 == 0 or _is_positive(base) else None
    if inner != 1 and not inside(args[0]) and (inner % 1 or outer % 1):
        if _is_positive(base):
            return power(base, constant(_tidy(total)))
        return power(apply(sympy.Abs, base), constant(_tidy(total))) if inner % 2 == 0 else None
    if outer > HALF and 2 * outer % 1 and is_sum_of_squares(args[0]):
        return power(sqrt(args[0]), constant(2 * outer))
    return None


def _powered(node: Node) -> tuple[Node, Number]:
    """The base and the exponent of a power with a number as exponent, or of a product of equal factors."""
    op, args = node.op, node.args
    exponent = _exponent(args[1]) if isinstance(op, Pow) else None
    if exponent is not None:
        return args[0], exponent
    if isinstance(op, Mul) and set(op.powers) == {1} and len(set(args)) == 1:
        return args[0], len(args)
    return node, 1


def _exponent(node: Node) -> Number | None:
    value = constant_value(node)
    return value if type(value) in (int, Fraction, float) else None


def _tidy(exponent: Number) -> Number:
    return int(exponent) if exponent % 1 == 0 else exponent


def _is_positive(node: Node) -> bool:
    """True if a value is known not to be negative."""
    return bool(inside(node)) or is_sum_of_squares(node)

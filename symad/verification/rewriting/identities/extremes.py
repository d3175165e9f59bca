"""The largest of several values, by signs of their differences."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import add, mul, sub
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import constant, constant_value
from symad.verification.rewriting.basis import Basis
from symad.verification.rewriting.identities.elementary import sign, steps

MAX_COMPARED_ARGUMENTS = 6
"""The maximum number of arguments of an extreme that are compared: whether one is never below another."""


def largest(args: Sequence[Node], basis: Basis) -> tuple[Node, list[Node]]:
    """The maximum, one argument after the other, and an indicator for each that none is larger.

    Arguments that another one exceeds everywhere never win.
    """
    kept = _undominated(args, basis)
    best, winning = _largest([args[k] for k in kept], basis)
    indicators = dict(zip(kept, winning, strict=True))
    return best, [indicators.get(k, constant(0)) for k in range(len(args))]


def _undominated(args: Sequence[Node], basis: Basis) -> list[int]:
    """The positions of the arguments that are not known to be below another one."""
    if not 2 < len(args) <= MAX_COMPARED_ARGUMENTS:
        return list(range(len(args)))
    below = {k for k, a in enumerate(args) for b in args if constant_value(sign(sub(a, b), basis)) == -1}
    return [k for k in range(len(args)) if k not in below]


def _largest(args: Sequence[Node], basis: Basis) -> tuple[Node, list[Node]]:
    one = constant(1)
    best, reaches, exceeds = args[0], [one], [one]
    for arg in args[1:]:
        gap = sub(arg, best)
        reach, exceed, beat = steps(gap, (1, 0, Fraction(1, 2)), basis)
        reaches.append(reach)
        exceeds.append(exceed)
        best = add(best, mul(beat, gap))
    indicators, rest = [], one
    for reach, exceed in zip(reversed(reaches), reversed(exceeds), strict=True):
        indicators.append(mul(reach, rest))
        rest = mul(rest, sub(one, exceed))
    return best, indicators[::-1]


def elementwise_extreme(args: Nodes, kind: str, y: Node, basis: Basis) -> Node:
    """Max or Min of several arguments."""
    turned = args if kind == "max" else tuple(sub(constant(0), a) for a in args)
    best, indicators = largest(turned, basis)
    basis.winners[y] = dict(zip(y.args, indicators, strict=True))
    if len(indicators) == 2:
        basis.opponents |= {(indicators[0], indicators[1]), (indicators[1], indicators[0])}
    return broadcast_to(best if kind == "max" else sub(constant(0), best), y.shape)

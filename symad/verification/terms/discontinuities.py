"""Where values jump: what depends on signs, conditions, rounding or integer inputs."""

from __future__ import annotations

from collections.abc import Container

import mpmath
import sympy

from symad.core.graph import Node, topological
from symad.facts.functions import ODD, OF_ARGUMENT, fact, state
from symad.ops.basic.sources import Input
from symad.ops.elementwise.apply import Apply


class WeakSign(sympy.Function):
    """The sign of what may be 0 on an open set, as max(x, 0) is: its square need not be 1."""


class LooseSign(sympy.Function):
    """The same for what depends on roundings or integer inputs: it is 0 for reasons no region shows."""


class Rounded(sympy.Function):
    """⌊x⌋ + 1/2, an odd function away from the integers."""


class PowerOfJump(sympy.Function):
    """b ** e without relations, where b may be 0, or e an integer, on an open set only."""


for _head in (WeakSign, LooseSign):  # of numbers they are the sign
    state(_head, digits=mpmath.sign, total=True, parity=ODD, sign=OF_ARGUMENT, range=(-1, 1), kink="zero",
          jumps=True, flat=True)  # fmt: skip
state(Rounded, digits=lambda x: mpmath.floor(x) + 0.5, total=True, parity=ODD, sign=OF_ARGUMENT, kink="whole",
      jumps=True)  # fmt: skip
state(PowerOfJump, digits=mpmath.power, kink="ties")

SIGNS = {sympy.sign, WeakSign}
"""Functions with exact values in a region of the inputs."""


def is_jump(node: Node) -> bool:
    """Whether a node may do what an analytic function cannot: be constant on an open set only."""
    if isinstance(node.op, Apply):
        return bool(fact(node.op.head).kink)
    if isinstance(node.op, Input):
        return bool(getattr(node.op.symbol, "is_integer", False))
    return bool(node.op.kinked)


def is_loose(node: Node) -> bool:
    """Whether a node jumps for other reasons than signs."""
    if isinstance(node.op, Apply):
        return bool(fact(node.op.head).kink) and node.op.head not in SIGNS
    return isinstance(node.op, Input) and is_jump(node)


def jumps(node: Node) -> bool:
    """Whether a node depends on what jumps."""
    return any(map(is_jump, topological([node])))


def unseen(root: Node, known: Container[Node]) -> list[Node]:
    """The nodes that ``root`` needs and that are not known, arguments first; what known ones need is."""
    order: dict[Node, None] = {}
    stack = [root]
    while stack:
        node = stack[-1]
        missing = [a for a in node.args if a not in known and a not in order]
        if missing and node not in known:
            stack.extend(missing)
            continue
        stack.pop()
        if node not in known:
            order.setdefault(node)
    return list(order)

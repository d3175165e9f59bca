"""Numbers that are known when code is printed, such as log Γ(4) or sums of zeros: no kernel computes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symad.core.graph import Node, rebuild
from symad.core.questions import Nodes, evaluate
from symad.numbers.number_domains import as_float
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.shaping import Broadcast, Reshape, Slice, broadcast_to
from symad.ops.basic.sources import Constant, constant
from symad.ops.elementwise.apply import Apply


def known_numbers(outputs: Sequence[Node]) -> Nodes:
    """Outputs with functions of constants replaced by their values in double precision."""
    return rebuild(outputs, {}, _known)


def _known(node: Node, args: Nodes) -> Node:
    values = [as_float(a.op.value) for a in args if isinstance(a.op, Constant)]
    if isinstance(node.op, Apply) and len(values) == len(args):
        with np.errstate(all="ignore"):
            return constant(float(evaluate(node.op, tuple(values))))
    made = node if args == node.args else Node.of(node.op, args)
    if isinstance(node.op, (Add, Mul, Reshape, Slice)) and node.shape:
        number = filled(made)
        if number is not None:
            return broadcast_to(constant(number), made.shape)
    return made


def filled(node: Node) -> Any:
    """The number that all elements of an array equal by construction; None if there is no such number.

    In a sum or product, only operands are seen that show their number; `known_numbers` makes all such.
    """
    op = node.op
    if not isinstance(op, (Add, Mul)) or not node.shape:
        return _shown(node)
    values = [_shown(arg) for arg in node.args]
    if not all(isinstance(value, (int, float)) for value in values):
        return None
    with np.errstate(all="ignore"):
        return float(evaluate(op, tuple(map(float, values))))


def _shown(node: Node) -> Any:
    """The number that an array repeats; None for others."""
    while isinstance(node.op, (Broadcast, Reshape, Slice)):
        node = node.args[0]
    return node.op.value if isinstance(node.op, Constant) and not isinstance(node.op.value, bool) else None

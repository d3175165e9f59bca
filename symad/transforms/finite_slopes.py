"""Which ops have finite partial derivatives wherever their arguments are finite.

Only where a slope may be infinite or NaN does its product with a tangent of 0 have to be masked.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from symad.core.graph import Node
from symad.core.questions import chosen
from symad.facts.functions import fact
from symad.ops.basic.arithmetic import Mul
from symad.ops.basic.sources import Constant, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow


def flat_nodes(order: Sequence[Node]) -> set[Node]:
    """The nodes of an order without a derivative: numbers, comparisons, steps, and what is made of these."""
    flat: set[Node] = set()
    for node in order:
        if isinstance(node.op, Constant) or (
            node.args and all(a in flat or _never(node, k) for k, a in enumerate(node.args))
        ):
            flat.add(node)
    return flat


def _never(node: Node, k: int) -> bool:
    """True if argument k has no part in the derivative of a node."""
    taken = chosen(node.op, node, k) if node.op.branches else None
    return taken is not None and constant_value(taken) is False


def has_finite_slopes(node: Node, flat: Collection[Node]) -> bool:
    """True if all partial derivatives of the op, by arguments that have one, are finite where these are."""
    op = node.op
    if op.linear or node in flat or op.finite_slopes:
        return True
    if isinstance(op, Mul):
        return all(a in flat for p, a in zip(op.powers, node.args, strict=True) if p == -1)
    if isinstance(op, Pow):
        exponent = constant_value(node.args[1])
        return isinstance(exponent, int) and exponent >= 1
    return isinstance(op, Apply) and fact(op.head).total


def may_overflow(node: Node, flat: Collection[Node]) -> bool:
    """True if the value or a slope of the op may not be finite where its arguments are."""
    growing = isinstance(node.op, Apply) and fact(node.op.head).grows and node not in flat
    return growing or not has_finite_slopes(node, flat)

"""Equalities that hold whatever a maximum is, such as that which a softmax subtracts.

What is equal for all values of a part is equal for the values that it has. The maxima of a pair become
inputs, and so do the factors exp(−m) of a maximum m, and the weights, 1 or 0, of the conditions on them by
which their derivatives choose elements: there is no region for each order of elements then. The converse does
not hold: if this finds nothing, nothing is known.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np
import sympy

from symad.core.graph import Node, rebuild
from symad.core.nodes import Moved
from symad.ops.arrays.reduction import Extreme
from symad.ops.basic.arithmetic import Add, add, mul, sub
from symad.ops.basic.sources import ArrayConstant, input_node
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.selection import Compare, Select
from symad.verification.terms.depending import depending


def with_free_choices(sides: Sequence[Node]) -> tuple[Node, ...] | None:
    """The sides with inputs in place of maxima, minima, and conditions on these; None if there are none.

    A condition with an infinite branch has no weight: infinity times 0 is no value.
    """
    above = depending(sides, _is_extreme)
    if not above or any(_is_choice(n, above) and any(map(_is_infinite, n.args[1:])) for n in above):
        return None
    weights, factors = dict[Node, Node](), dict[Node, Node]()

    def free(node: Node, args: tuple[Node, ...]) -> Node:
        if _is_extreme(node):
            return input_node(sympy.Dummy("extreme", real=True), node.shape)
        if _is_choice(node, above):
            condition, a, b = node.args[0], *args[1:]
            if condition not in weights:
                weights[condition] = input_node(sympy.Dummy("weight", real=True), condition.shape)
            return add(mul(weights[condition], sub(a, b)), b)
        if (shift := _shift(node)) is not None:
            if shift not in factors:
                factors[shift] = input_node(sympy.Dummy("factor", real=True), shift.shape)
            return mul(apply(sympy.exp, args[0].args[0]), factors[shift])
        return node.over(args)

    return rebuild(sides, {}, free)


def _is_choice(node: Node, above: Container[Node]) -> bool:
    """Whether a node chooses by a comparison with a maximum or minimum."""
    return isinstance(node.op, Select) and node.args[0] in above and isinstance(node.args[0].op, Compare)


def _is_infinite(node: Node) -> bool:
    if isinstance(node.op, ArrayConstant):
        return not np.all(np.isfinite(node.op.array))
    value = getattr(node.op, "value", 0)
    return value in (sympy.oo, -sympy.oo) or (isinstance(value, float) and not np.isfinite(value))


def _shift(node: Node) -> Node | None:
    """m of exp(x − m) where m is a maximum or minimum: exp(−m) is a factor of its own then."""
    if not isinstance(node.op, Apply) or node.op.head is not sympy.exp:
        return None
    (inner,) = node.args
    if not isinstance(inner.op, Add) or inner.op.signs != (1, -1):
        return None
    m = inner.args[1]
    while m.op.moves is Moved.IN_ORDER:
        (m,) = m.args
    return inner.args[1] if _is_extreme(m) else None


def _is_extreme(node: Node) -> bool:
    """Whether a node is a maximum or minimum, of an array or of several numbers."""
    return isinstance(node.op, Extreme) or (
        isinstance(node.op, Apply) and node.op.head in (sympy.Max, sympy.Min)
    )

"""Selections inside of selections: where a condition is known to hold, or not to.

A branch is taken only where its condition holds, so in Select(c, a, b) a selection by c inside of a is its
first branch, and inside of b its second. A gradient of np.where has one for each path.
"""

from __future__ import annotations

import numpy as np

from symad.core.graph import Node
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.shaping import Broadcast, Reshape
from symad.ops.basic.sources import ArrayConstant, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.selection import Select
from symad.verification.rewriting.basis import Basis

MAX_DEPTH, MAX_NODES = 6, 64
"""The maximum depth of a selection inside another, and of nodes between, that is rewritten."""


def taken(node: Node, condition: Node, holds: bool, basis: Basis) -> Node:
    """A branch in which selections by the condition, element for element, are what they are there."""
    made: dict[Node, Node] = {}
    return _taken(node, condition, holds, basis, made, MAX_DEPTH)


def _taken(
    node: Node, condition: Node, holds: bool, basis: Basis, made: dict[Node, Node], depth: int
) -> Node:
    if node in made:
        return made[node]
    if isinstance(node.op, (Broadcast, Reshape)) and node.op == condition.op:  # moved as the condition is
        (inner,) = node.args
        found = _taken(inner, condition.args[0], holds, basis, {}, depth - 1) if depth else inner
        made[node] = node if found is inner else Node.of(node.op, (found,))
        return made[node]
    elementwise = node.shape == condition.shape or not condition.shape
    taken_apart = elementwise and isinstance(node.op, (Add, Mul, Select, Apply))
    if not taken_apart or not depth or len(made) > MAX_NODES:
        return node
    if isinstance(node.op, Select):
        same = node.args[0] is condition
        if same or _are_opposite(node.args[0], condition):
            chosen = node.args[1] if same is holds else node.args[2]
            made[node] = _taken(chosen, condition, holds, basis, made, depth - 1)
            return made[node]
    args: Nodes = tuple([_taken(a, condition, holds, basis, made, depth - 1) for a in node.args])
    changed = node if args == node.args else Node.of(node.op, args)
    made[node] = basis.rewritten(changed) if isinstance(node.op, Apply) and changed is not node else changed
    return made[node]


def _are_opposite(one: Node, other: Node) -> bool:
    """Whether one indicator is 1 minus the other; both may be moved in the same way."""
    if isinstance(one.op, ArrayConstant) and isinstance(other.op, ArrayConstant):
        return one.shape == other.shape and bool(np.all(one.op.array + other.op.array == 1))
    while isinstance(one.op, (Broadcast, Reshape)) and one.op == other.op:
        one, other = one.args[0], other.args[0]
    return _is_complement(one, other) or _is_complement(other, one)


def _is_complement(one: Node, other: Node) -> bool:
    return (
        isinstance(one.op, Add)
        and one.op.signs == (1, -1)
        and constant_value(one.args[0]) == 1
        and one.args[1] is other
    )

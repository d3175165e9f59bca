"""Values that a kernel recomputes instead of reading them.

A backward pass reads values of the forward pass, for example σ(x) as well as x σ(x). Reading an array from
memory costs a kernel as much as several operations on values that it has anyway, so a value is recomputed if
its operands are available. A value that no other kernel reads is not stored at all, and takes no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import sympy

from symad.core.dims import same_shape
from symad.core.graph import Node
from symad.ops.basic.arithmetic import Add, Mul
from symad.ops.basic.sources import Constant
from symad.ops.elementwise.apply import Apply
from symad.sympy_functions.scalar_functions import sigmoid

FUNCTIONS = (sympy.exp, sigmoid)
"""Functions whose vector code takes no longer than writing a value and reading it."""


def computed_again(
    order: Iterable[Node],
    users: Mapping[Node, Sequence[Node]],
    kept: set[Node],
    group_of: Callable[[Node], Any],
) -> dict[Node, set[Node]]:
    """The values that each kernel recomputes, by the root of its group.

    Args:
        order: the nodes, operands first.
        users: for each node, the nodes that read it.
        kept: the results of the graph.
        group_of: a function to the group of a node (with ``members``, ``leaves`` and ``root``), or to None.
    """
    again: dict[Node, set[Node]] = {}

    def at_hand(node: Node, group: Any) -> bool:
        inside = group.members | group.leaves | again.get(group.root, set())
        reads = all(a in inside or isinstance(a.op, Constant) for a in node.args)
        return reads and same_shape(node.shape, group.root.shape)

    for node in order:
        home = group_of(node)
        if home is None or not node.shape:
            continue
        readers = {id(group): group for group in map(group_of, users[node])}
        readers.pop(id(home), None)
        able = [group for group in readers.values() if group is not None and at_hand(node, group)]
        everywhere = node not in kept and len(able) == len(readers)
        if isinstance(node.op, (Add, Mul)) or (everywhere and _is_function(node)):
            for group in able:
                again.setdefault(group.root, set()).add(node)
    return again


def _is_function(node: Node) -> bool:
    return isinstance(node.op, Apply) and node.op.head in FUNCTIONS

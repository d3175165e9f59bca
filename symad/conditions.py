"""Under which condition each value of a graph is used.

A value that is needed only by an untaken branch may be undefined (``log(x)`` at x = 0), and so may
its derivative. Linearization masks the tangents that enter such nodes by the condition under which
the node is used. Transposed, the mask removes ``0 · inf`` after the coefficient was applied, on the
whole path from the branch down to the inputs, whatever ops lie on it.
"""

from __future__ import annotations

from collections.abc import Sequence

from symad.graph import Node
from symad.ops.arithmetic import ElementwiseOp
from symad.ops.selection import Compare, Select, logic

MOST = 8
"""With more distinct uses than this a node counts as used unconditionally."""


def use_conditions(order: Sequence[Node], outputs: Sequence[Node]) -> dict[Node, Node]:
    """The nodes that are used only under a condition, with that condition.

    Args:
        order: all nodes, arguments first.
        outputs: the nodes that are used unconditionally.
    """
    if not any(isinstance(node.op, Select) for node in order):
        return {}
    uses: dict[Node, list[Node] | None] = {node: [] for node in order}
    for output in outputs:
        uses[output] = None
    found: dict[Node, Node] = {}
    for node in reversed(order):
        condition = _any_of(uses[node])
        if condition is not None:
            found[node] = condition
        if isinstance(node.op, Compare) and node.args[0] is node.args[1]:
            continue  # whether it is NaN is asked of a value to leave it out where it is
        for position, arg in enumerate(node.args):
            _add_use(uses, arg, _through(node, position, arg, condition))
    return found


def _any_of(conditions: list[Node] | None) -> Node | None:
    return logic("or", *conditions) if conditions else None


def _through(node: Node, position: int, arg: Node, condition: Node | None) -> Node | None:
    """The condition of a use as argument of a node that is itself used under ``condition``."""
    if isinstance(node.op, Select) and position:
        branch = node.args[0] if position == 1 else logic("not", node.args[0])
        condition = branch if condition is None else logic("and", condition, branch)
    if condition is None:
        return None
    fits = not condition.shape or (
        isinstance(node.op, ElementwiseOp) and len(arg.shape) == len(condition.shape)
    )
    return condition if fits else None


def _add_use(uses: dict[Node, list[Node] | None], arg: Node, condition: Node | None) -> None:
    known = uses[arg]
    if known is None:
        return
    if condition is None or len(known) >= MOST:
        uses[arg] = None
    elif condition not in known:
        known.append(condition)

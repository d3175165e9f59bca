"""The condition under which each value of a graph is used.

A value that only an untaken branch needs may be undefined (``log(x)`` at x = 0), and so may
its derivative. Linearization masks the tangents that enter such nodes by the condition under which
the node is used. Transposed, the mask removes ``0 · inf`` after the coefficient was applied, on the
whole path from the branch down to the inputs, for all ops on this path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from symad.core.graph import Node
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.elementwise.selection import Compare, Select, logic
from symad.ops.elementwise.undefined import Undefined


def use_conditions(order: Sequence[Node], outputs: Sequence[Node]) -> dict[Node, Node]:
    """The nodes that are used only under a condition, each with this condition.

    Args:
        order: all nodes, arguments first.
        outputs: the nodes that are used unconditionally.
    """
    if not any(isinstance(node.op, Select) for node in order):
        return {}
    uses: dict[Node, Uses] = {node: Uses() for node in order}
    for output in outputs:
        uses[output].add(None)
    found: dict[Node, Node] = {}
    branches = Branches()
    for node in reversed(order):
        condition = uses[node].condition(branches)
        if condition is not None and not isinstance(node.op, Undefined):  # its slopes are 0 or NaN anyway
            found[node] = condition
        if isinstance(node.op, Compare) and node.args[0] is node.args[1]:
            continue  # isnan tests a value in order to mask it where it is NaN
        for position, arg in enumerate(node.args):
            uses[arg].add(_through(node, position, arg, condition, branches))
    return found


@dataclass(frozen=True)
class Branch:
    """The condition of one branch of a selection: ``outside`` holds, and ``decision`` is ``taken``."""

    outside: Node | None
    decision: Node
    taken: bool


class Branches(dict[Node, Branch]):
    """A map from conditions to the branches that they select."""

    def __init__(self) -> None:
        """An empty map."""
        super().__init__()
        self._conditions: dict[Branch, Node] = {}

    def __setitem__(self, condition: Node, branch: Branch) -> None:
        super().__setitem__(condition, branch)
        self._conditions[branch] = condition

    def twin(self, branch: Branch) -> Node | None:
        """The condition of the other branch of the same selection, if there is one."""
        return self._conditions.get(replace(branch, taken=not branch.taken))


@dataclass
class Uses:
    """The conditions under which a value is used; None among them is an unconditional use."""

    conditions: dict[Node | None, None] = field(default_factory=dict)

    def add(self, condition: Node | None) -> None:
        """Record a use."""
        if None not in self.conditions:
            self.conditions[condition] = None

    def condition(self, branches: Branches) -> Node | None:
        """The condition that at least one of the uses happens; None if this is always so, or without uses.

        A value that is used in both branches of a selection is used whenever the selection is used.
        """
        alive, waiting = dict(self.conditions), [*self.conditions]
        while waiting:
            condition = waiting.pop()
            if condition is None:
                return None
            branch = branches.get(condition)
            if branch is None or condition not in alive:
                continue
            other = branches.twin(branch)
            if other in alive:
                del alive[condition], alive[other]
                alive[branch.outside] = None
                waiting.append(branch.outside)
        return logic("or", *(c for c in alive if c is not None)) if alive else None


def _through(node: Node, position: int, arg: Node, condition: Node | None, branches: Branches) -> Node | None:
    """The condition of a use as argument of a node that is itself used under ``condition``."""
    if isinstance(node.op, Select) and position:
        outside, branch = condition, node.args[0] if position == 1 else logic("not", node.args[0])
        condition = branch if condition is None else logic("and", condition, branch)
        branches[condition] = Branch(outside, node.args[0], position == 1)
    return _fitting(condition, node, arg)


def _fitting(condition: Node | None, node: Node, arg: Node) -> Node | None:
    """A condition on the elements of a node as one on those of an argument; None if there is no such."""
    if condition is None:
        return None
    fits = not condition.shape or (
        isinstance(node.op, ElementwiseOp) and len(arg.shape) == len(condition.shape)
    )
    return condition if fits else None

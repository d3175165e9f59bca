"""The condition under which each value of a graph is used, and where it matters: at ops with infinite slopes.

A value that only an untaken branch needs may be undefined (``log(x)`` at x = 0), and so may
its derivative. Linearization masks the tangents that enter such nodes by the condition under which
the node is used. Transposed, the mask removes ``0 · inf`` after the coefficient was applied, on the
whole path from the branch down to the inputs, for all ops on this path.

What counts is the use of the derivative: a comparison uses a value but no derivative. An extreme uses
those of its arguments that attain it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import sympy

from symad.core.dims import Shape
from symad.core.graph import Node, Op
from symad.core.questions import chosen, transpose
from symad.facts.functions import fact
from symad.ops.arrays.reduction import Extreme
from symad.ops.basic.arithmetic import ElementwiseOp, Mul
from symad.ops.basic.contraction import Einsum, sum_axes
from symad.ops.basic.shaping import Broadcast, ShapingOp
from symad.ops.basic.sources import Constant, constant, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.radius import inside
from symad.ops.elementwise.selection import Condition, Select, compare, indicator, logic
from symad.ops.elementwise.undefined import Undefined

# ---- which ops have finite partial derivatives wherever their arguments are finite ---------------

# Only where a slope may be infinite or NaN does its product with a tangent of 0 have to be masked.


def flat_nodes(order: Sequence[Node]) -> set[Node]:
    """The nodes of an order without a derivative: numbers, comparisons, steps, and what is made of these."""
    flat: set[Node] = set()
    for node in order:
        if isinstance(node.op, Constant) or (
            node.args and all(a in flat or never(node, k) for k, a in enumerate(node.args))
        ):
            flat.add(node)
    return flat


def never(node: Node, k: int) -> bool:
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


def has_branches(order: Sequence[Node]) -> bool:
    """True if some value depends on arguments under conditions."""
    kinds = (Select, Extreme)
    return any(isinstance(n.op, kinds) or (isinstance(n.op, Apply) and n.op.branches) for n in order)


def use_conditions(
    order: Sequence[Node], outputs: Sequence[Node], rough: Collection[Node] | None = None
) -> dict[Node, Node]:
    """The nodes whose derivatives are used only under a condition, each with this condition.

    Args:
        order: all nodes, arguments first.
        outputs: the nodes that are used unconditionally.
        rough: nodes with tangents that may be infinite, if they are known.
    """
    if not has_branches(order):
        return {}
    if rough is None:
        flat = flat_nodes(order)
        rough = upwards(order, lambda node: may_overflow(node, flat))
    curved = upwards(order, lambda node: not node.op.linear)
    uses: dict[Node, ConditionalUses] = {node: ConditionalUses() for node in order}
    for output in outputs:
        uses[output].add(None)
    found: dict[Node, Node] = {}
    branches = Branches()
    for node in reversed(order):
        if not uses[node].conditions:
            continue  # only conditions read it
        condition = uses[node].condition(branches)
        if condition is not None and not isinstance(node.op, Undefined):  # its slopes are 0 or NaN anyway
            found[node] = condition
        for k, arg in enumerate(node.args):
            taken = taken_branch(node, k, rough)
            if taken is None or constant_value(taken) is not False:
                use = _through(node, k, condition, taken, branches)
                uses[arg].add(use if arg in curved else None)
    return found


def upwards(order: Sequence[Node], holds: Callable[[Node], bool]) -> set[Node]:
    """The nodes for which something holds, and all that depend on one of them."""
    found: set[Node] = set()
    for node in order:
        if holds(node) or not found.isdisjoint(node.args):
            found.add(node)
    return found


def taken_branch(node: Node, k: int, rough: Collection[Node]) -> Node | None:
    """The condition under which argument k counts, as in `chosen`; None if it need not be known.

    An argument of an extreme whose tangents are finite is multiplied by 0 where it is not attained.
    """
    if not node.op.branches or inside(node):
        return None
    taken = chosen(node.op, node, k)
    matters = isinstance(node.op, Select) or node.args[k] in rough
    return taken if matters or taken is None or constant_value(taken) is False else None


@dataclass(frozen=True)
class Branch:
    """The condition of one of ``count`` branches of a decision, which is made where ``outside`` holds."""

    outside: Node | None
    decision: Node
    index: int
    count: int
    place: object = None
    """Where a condition on other elements comes from; branches of the same place are alternatives."""


class Branches(dict[Node, Branch]):
    """A map from conditions to the branches that they select."""

    def __init__(self) -> None:
        """An empty map."""
        super().__init__()
        self._conditions: dict[Branch, Node] = {}

    def __setitem__(self, condition: Node, branch: Branch) -> None:
        super().__setitem__(condition, branch)
        self._conditions[branch] = condition

    def carried(self, condition: Node | None, node: Node, k: int) -> Node | None:
        """The condition on the elements of an argument, as a branch if that on those of the node is one."""
        made = carried(condition, node, k)
        branch = None if condition is None or made is None or made is condition else self.get(condition)
        if branch is not None and made is not None and made not in self:
            place = "somewhere" if isinstance(node.op, ElementwiseOp) else (node, k)
            self[made] = replace(branch, outside=carried(branch.outside, node, k), place=place)
        return made

    def all_of(self, branch: Branch) -> list[Node | None]:
        """The conditions of all branches of a decision; None for those that are not known."""
        return [self._conditions.get(replace(branch, index=k)) for k in range(branch.count)]


@dataclass
class ConditionalUses:
    """The conditions under which a value is used; None among them is an unconditional use."""

    conditions: dict[Node | None, None] = field(default_factory=dict)

    def add(self, condition: Node | None) -> None:
        """Record a use."""
        if None not in self.conditions:
            self.conditions[condition] = None

    def condition(self, branches: Branches) -> Node | None:
        """The condition that at least one of the uses happens; None if this is always so, or without uses.

        A value that is used in all branches of a decision is used whenever the decision is made.
        """
        alive, waiting = dict(self.conditions), [*self.conditions]
        while waiting:
            condition = waiting.pop()
            if condition is None:
                return None
            branch = branches.get(condition)
            if branch is None or condition not in alive:
                continue
            every = branches.all_of(branch)
            if all(c in alive for c in every):
                for c in every:
                    alive.pop(c, None)
                alive[branch.outside] = None
                waiting.append(branch.outside)
        return logic("or", *(c for c in alive if c is not None)) if alive else None


def _through(
    node: Node, k: int, condition: Node | None, taken: Node | None, branches: Branches
) -> Node | None:
    """The condition of a use as argument k of a node that is itself used under ``condition``."""
    if taken is None:
        return branches.carried(condition, node, k)
    if not isinstance(node.op, ElementwiseOp):
        return both(carried(condition, node, k), taken)
    made = taken if condition is None else logic("and", condition, taken)
    if isinstance(node.op, Select):
        branches[made] = Branch(condition, node.args[0], k - 1, 2)
    elif is_decision(node):
        branches[made] = Branch(condition, node, k, len(node.args))
    return branches.carried(made, node, k)


def is_decision(node: Node) -> bool:
    """True if one of the branches of a node is always taken: of a selection, of an extreme of some values."""
    extremes = (sympy.Max, sympy.Min)
    return isinstance(node.op, Select) or (isinstance(node.op, Apply) and node.op.head in extremes)


def both(a: Node | None, b: Node | None) -> Node | None:
    """The condition that both hold; None holds always."""
    return b if a is None else a if b is None else logic("and", a, b)


def carried(condition: Node | None, node: Node, k: int) -> Node | None:
    """A condition on the elements of a node as one on those of argument k; None if there is no such.

    An element of the argument is used if an element of the node that contains it is: for ops that move or
    add up elements, where the transpose of the condition's 0 and 1 is positive.
    """
    if condition is None or not condition.shape:
        return condition
    arg = node.args[k]
    if isinstance(node.op, ElementwiseOp):
        return condition if len(arg.shape) == len(condition.shape) else somewhere(condition)
    if isinstance(node.op, Broadcast) and (same := _before(condition, node.op, arg.shape)) is not None:
        return same  # the same for all elements that one of the argument becomes
    if moves_or_sums(node) and condition.shape == node.shape:
        flags = tuple(i == k for i in range(len(node.args)))
        count = transpose(node.op, node, indicator(condition), flags)[k]
        return compare("<", constant(0), count) if isinstance(count, Node) else None
    return None


def _before(condition: Node, op: Op, shape: Shape) -> Node | None:
    """The condition on fewer axes that becomes this one by a broadcast; None if there is none."""
    if condition.op == op and condition.args[0].shape == shape:
        return condition.args[0]
    if not isinstance(condition.op, Condition) or all(not a.shape for a in condition.args):
        return None
    found = [_before(a, op, shape) if a.shape else a for a in condition.args]
    args = [a for a in found if a is not None]
    return Node.of(condition.op, tuple(args)) if len(args) == len(found) else None


def moves_or_sums(node: Node) -> bool:
    """True if the elements of a node are elements of its arguments, or sums of some of them."""
    return isinstance(node.op, ShapingOp) or (isinstance(node.op, Einsum) and len(node.args) == 1)


def somewhere(condition: Node) -> Node:
    """The condition that another holds for some element."""
    return compare("<", constant(0), sum_axes(indicator(condition), tuple(range(len(condition.shape)))))

"""Where tangents are masked, so that an infinite slope of a branch that is not taken makes no NaN.

A product of a slope and a tangent is masked by two conditions: that the value is used (`branch_masks`),
and that the tangent is not 0 by construction. In ``sqrt(max(x, 0))`` the tangent of the maximum is 0 for
x < 0, where the slope of the root is infinite. The product that leaves a node is masked, and so is the
tangent that enters it: transposed, that mask is the one on the product.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite
from typing import Any

import sympy

from symad.core.graph import ZERO, Node, Tangent
from symad.core.questions import chosen, jvp
from symad.facts.functions import fact
from symad.ops.arrays.reduction import Extreme
from symad.ops.arrays.softmax import Softmax
from symad.ops.arrays.stacking import Concatenate, Stack
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul, add_tangents, mul
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import Source, constant, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.radius import RADIAL, inside
from symad.ops.elementwise.selection import Condition, Logic, Select, compare, indicator, logic, select
from symad.transforms.branch_masks import (
    both,
    flat_nodes,
    has_branches,
    has_finite_slopes,
    is_decision,
    may_overflow,
    moves_or_sums,
    never,
    upwards,
    use_conditions,
)

Conditions = tuple["Node | None", ...]


@dataclass(frozen=True)
class TangentGuard:
    """For each argument of a node the conditions on its tangent, and on the product with its slope."""

    entering: Conditions
    leaving: Conditions

    def push(self, node: Node, tangents: Sequence[Tangent]) -> Tangent:
        """The tangent of the node, with both masks."""
        entering = [mask(c, t) for c, t in zip(self.entering, tangents, strict=True)]
        terms = []
        for condition in dict.fromkeys(self.leaving):
            own = [t if c is condition else ZERO for c, t in zip(self.leaving, entering, strict=True)]
            if any(isinstance(t, Node) for t in own):
                terms.append(mask(condition, jvp(node.op, node, tuple(own))))
        return add_tangents(terms)


def mask(condition: Node | None, tangent: Tangent) -> Tangent:
    """The tangent where the condition holds, 0 elsewhere."""
    if condition is None or not isinstance(tangent, Node):
        return tangent
    if isinstance(condition.op, Logic) and condition.op.kind == "not":
        return select(condition.args[0], constant(0), tangent)
    return select(condition, tangent, constant(0))


@dataclass(frozen=True)
class Guards:
    """The masks of a graph, as far as they do not depend on what it is differentiated by."""

    uses: Mapping[Node, Node] = field(default_factory=dict)
    rough: Collection[Node] = ()
    """Nodes with tangents that may be infinite."""
    steep: Collection[Node] = ()
    """Nodes whose tangents may be multiplied by an infinite slope."""
    infinite: Collection[Node] = ()
    """Nodes with slopes that may be infinite."""
    grown: Set[Node] = frozenset()
    """Nodes with values that may overflow although the inputs are finite."""
    slopes: dict[tuple[Node, tuple[Tangent, ...]], Tangent] = field(default_factory=dict)
    """The slopes of functions of a radius, by those of their arguments: they serve all directions."""

    @staticmethod
    def of(order: Sequence[Node], outputs: Sequence[Node]) -> Guards:
        """The masks of the nodes of an order, arguments first."""
        if not has_branches(order) and not any(_size_of(node) is not None for node in order):
            return Guards()
        flat = flat_nodes(order)
        infinite = {node for node in order if not has_finite_slopes(node, flat)}
        rough = upwards(order, lambda node: may_overflow(node, flat))
        return Guards(
            use_conditions(order, outputs, rough), rough, _steep(order, infinite), infinite, _grown(order)
        )

    def along(self, order: Sequence[Node], roots: Collection[Node]) -> dict[Node, TangentGuard]:
        """The guards of the nodes of an order that depend on some nodes; nodes without masks have none."""
        if not self.uses and not self.rough and not self.steep:
            return {}
        alive = _alive(order, roots, self.steep)
        found = {}
        for node in order:
            masked = node in self.uses or node in self.infinite or node.op.branches
            if masked and node in alive and node not in roots:
                guard = self._guard(node, alive)
                if any(guard.entering) or any(guard.leaving):
                    found[node] = guard
        return found

    def _guard(self, node: Node, alive: Mapping[Node, Node | None]) -> TangentGuard:
        used = self.uses.get(node)
        whole = used if used is not None and masks_entering(used, node) and not self._is_tame(node) else None
        entering, leaving = [], []
        for k, arg in enumerate(node.args):
            outer = alive.get(arg) if node in self.infinite else None
            inner = self._attained(node, k) if arg in alive else None
            entering.append(both(whole, both(outer, inner)))
            whole_too = outer is None or not outer.shape or isinstance(node.op, ElementwiseOp)
            leaving.append(outer if whole_too else None)  # a condition on elements of the argument alone
        return TangentGuard(tuple(entering), tuple(leaving))

    def _is_tame(self, node: Node) -> bool:
        """Whether a node is a product of two values that do not overflow, with tangents that are finite."""
        two = isinstance(node.op, Mul) and node.op.powers == (1, 1)
        return two and node not in self.rough and self.grown.isdisjoint(node.args)

    def _attained(self, node: Node, k: int) -> Node | None:
        """The condition under which an extreme attains argument k, if it may have to remove 0 · inf."""
        if not node.op.branches or isinstance(node.op, Select):
            return None
        return chosen(node.op, node, k) if node.args[k] in self.rough or node in self.steep else None


def _grown(order: Sequence[Node]) -> set[Node]:
    """The nodes of which the values may be larger than a multiple of the inputs; probabilities are not."""
    found: set[Node] = set()
    for node in order:
        if not isinstance(node.op, Softmax) and (_grows(node) or not found.isdisjoint(node.args)):
            found.add(node)
    return found


def _grows(node: Node) -> bool:
    op = node.op
    if isinstance(op, Einsum):
        return sum(not isinstance(a.op, Softmax) for a in node.args) > 1
    if isinstance(op, Apply):
        return not fact(op.head).total or fact(op.head).grows
    known = op.linear or isinstance(op, (Source, Select, Condition, Extreme))
    return not known and not _is_multiple(node)


def masks_entering(condition: Node, node: Node) -> bool:
    """True if a condition on the elements of a node is also one on the elements of its arguments."""
    linear = node.op.linear or _is_multiple(node)
    return not linear and (not condition.shape or isinstance(node.op, ElementwiseOp))


def _is_multiple(node: Node) -> bool:
    """Whether a node is a number times another, which is not divided by."""
    if not isinstance(node.op, Mul):
        return False
    rest = [p for p, a in zip(node.op.powers, node.args, strict=True) if not _is_finite_number(a)]
    zero = any(p < 0 and constant_value(a) == 0 for p, a in zip(node.op.powers, node.args, strict=True))
    return rest == [1] and not zero


def _is_finite_number(node: Node) -> bool:
    value = constant_value(node)
    return isinstance(value, (int, Fraction)) or (isinstance(value, float) and isfinite(value))


def _steep(order: Sequence[Node], infinite: Collection[Node]) -> set[Node]:
    """The nodes whose tangents reach an op with infinite slopes element by element, or as sums."""
    found: set[Node] = set()
    for node in reversed(order):
        if (node in found or node in infinite) and (
            isinstance(node.op, ElementwiseOp) or moves_or_sums(node)
        ):
            found.update(node.args)
    return found


# ---- where tangents are not 0 ---------------------------------------------------------------------


def _alive(
    order: Sequence[Node], roots: Collection[Node], wanted: Collection[Node]
) -> dict[Node, Node | None]:
    """For each node with a tangent the condition on its elements outside of which it is 0; None: nowhere."""
    alive: dict[Node, Node | None] = {}
    sizes = any(_size_of(node) is not None for node in order)
    for node in order:
        if node in roots:
            alive[node] = None
            continue
        active = [k for k, arg in enumerate(node.args) if arg in alive]
        below = inside(node) if type(node.op) in RADIAL else ()
        if len(below) == 1 and below[0] is node.args[0]:
            if below[0] in alive:
                alive[node] = alive[below[0]]
            continue
        if active and node.op.branches:
            active = [k for k in active if not never(node, k)]
        if active:
            args = node.args
            may = node in wanted and (sizes or node.op.branches or any([alive[args[k]] for k in active]))
            alive[node] = _alive_node(node, active, alive) if may else None
    return alive


def _alive_node(node: Node, active: Sequence[int], alive: Mapping[Node, Node | None]) -> Node | None:
    if isinstance(node.op, ElementwiseOp):
        return _alive_elements(node, active, alive)
    if moves_or_sums(node):
        return _alive_moved(node, active, alive)
    parts = [alive[node.args[k]] for k in active]
    known = [c for c in parts if c is not None and not c.shape]
    return logic("or", *known) if len(known) == len(parts) else None


def _alive_elements(node: Node, active: Sequence[int], alive: Mapping[Node, Node | None]) -> Node | None:
    """Where some argument that counts is alive."""
    flat = _one_sided(node, active, alive)
    if flat is not None:
        return flat
    parts = [alive[node.args[k]] for k in active]
    every = len(active) == len(node.args) - isinstance(node.op, Select)
    if node.op.branches and not (every and is_decision(node) and not any(parts)):
        parts = [both(c, chosen(node.op, node, k)) for c, k in zip(parts, active, strict=True)]
    found = [c for c in parts if c is not None]
    return logic("or", *found) if len(found) == len(parts) else None


def _one_sided(node: Node, active: Sequence[int], alive: Mapping[Node, Node | None]) -> Node | None:
    """u < 0 for |u| − u, and u > 0 for |u| + u, which have the tangent 0 on the other side, and multiples.

    Terms without a tangent do not matter: |x − 1| + x is flat for x < 1.
    """
    if not isinstance(node.op, Add) or len(active) < 2:
        return None
    for k in active:
        (size, factor), *others = _linear(node.args[k], node.op.signs[k]).items()
        below = _size_of(size)
        if below is None or others:
            continue
        inner = {n: c for n, c in _linear(below, 1).items() if n in alive}
        rest: Counter[Node] = Counter()
        for j in active:
            if j != k:
                rest.update(_linear(node.args[j], node.op.signs[j]))
        for sign in (1, -1):
            if rest == {n: sign * factor * c for n, c in inner.items()}:
                return logic("not", compare("<=" if sign == 1 else ">=", below, constant(0)))
    return None


def _size_of(node: Node) -> Node | None:
    """u of |u|."""
    return node.args[0] if isinstance(node.op, Apply) and node.op.head is sympy.Abs else None


def _linear(node: Node, factor: Any) -> Counter[Node]:
    """The terms of a sum with the numbers that multiply them."""
    if isinstance(node.op, Add):
        total: Counter[Node] = Counter()
        for sign, term in zip(node.op.signs, node.args, strict=True):
            total.update(_linear(term, factor * sign))
        return total
    if isinstance(node.op, Mul) and set(node.op.powers) == {1} and len(node.args) > 1:
        value = constant_value(node.args[0])
        if isinstance(value, (int, float, Fraction)):
            return _linear(mul(*node.args[1:]), factor * value)
    return Counter({node: factor})


def _alive_moved(node: Node, active: Sequence[int], alive: Mapping[Node, Node | None]) -> Node | None:
    """Where an alive element arrives: where the same op makes a positive number of their 0 and 1."""
    if all(alive[node.args[k]] is None for k in active):
        return None
    joined = isinstance(node.op, (Concatenate, Stack))  # other ops have no second array
    args = [_indicator(arg, alive) if k in active or joined else arg for k, arg in enumerate(node.args)]
    return compare("<", constant(0), Node.of(node.op, tuple(args)))


def _indicator(node: Node, alive: Mapping[Node, Node | None]) -> Node:
    """1 for the elements of a node that are alive, else 0, as an array of its shape."""
    if node not in alive:
        return broadcast_to(constant(0), node.shape)
    condition = alive[node]
    return broadcast_to(constant(1) if condition is None else indicator(condition), node.shape)

"""Functions of a norm or an absolute value: their derivatives at 0.

Let r = √q for a sum of squares q, or r = |u|. At r = 0 a radius has no derivative, but F(r) has two if
F'(0) = 0. The chain rule by way of r would multiply F'(r) = 0 by the slope of r, which does not exist.
Therefore the tangents of functions of r are kept as multiples of that of r,

    y_dot = (F'(r) / 2r) q_dot,    or (F'(r) sign u) u_dot,

and before such a product v = F'(r) · slope is differentiated again, it gets its limit at r = 0, which is
F''(0)/2, or F''(0) u. With q_dot = 2⟨u, u_dot⟩ the second derivative at 0 is F''(0) ⟨u_dot, u_dot'⟩.
This holds for even functions (cosh r, exp(−r²/2)), which are functions of r², and for all others with
F'(0) = 0, such as the Matérn kernel (1 + r) exp(−r). Where F' is known to vanish nowhere, as for exp(−r),
nothing is changed.

Transposed tangents are multiplied in the order that is needed anyway: that of r gets the cotangent F'(r).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import sympy

from symad.core.graph import ZERO, Node, Tangent, rebuild, topological
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import (
    Add,
    ElementwiseOp,
    Mul,
    add_tangents,
    div,
    mul,
    scale_tangent,
    signed_product,
)
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import Apply
from symad.ops.elementwise.radius import inside, is_zero, slope_of
from symad.ops.elementwise.selection import Compare, Logic, Select, equal, logic, select
from symad.transforms.branch_masks import upwards, use_conditions
from symad.transforms.guards import mask

Rule = Callable[["tuple[Tangent, ...]"], Tangent]


# ---- tangents of functions of a radius --------------------------------------------------------------


@dataclass
class Radial:
    """The tangents of a sweep, with those of functions of one radius as multiples of that of the radius."""

    dots: Mapping[Node, Tangent]
    """Tangents by other ways than a radius."""
    uses: Mapping[Node, Node]
    """The conditions under which nodes are used."""
    multiples: dict[Node, tuple[Node, Node]] = field(default_factory=dict)
    """For y = F(r) the radius r and F'(r)."""
    _inner: dict[Node, Tangent] = field(default_factory=dict)
    """The tangent of q or of u, for each radius."""
    _whole: dict[Node, Tangent] = field(default_factory=dict)

    def start(self, radius: Node, inner: Tangent) -> None:
        """r is 1 times itself."""
        self.multiples[radius] = radius, broadcast_to(constant(1), radius.shape)
        self._inner[radius] = inner

    def push(self, node: Node, rule: Rule) -> bool:
        """Whether a node is a function of one radius, whose multiple is then made by its rule."""
        radii = {self.multiples[a][0] for a in node.args if a in self.multiples} if self.multiples else ()
        if len(radii) != 1 or not isinstance(node.op, ElementwiseOp):
            return False
        (radius,) = radii
        if node.shape != radius.shape:
            return False
        slopes = [self.multiples[a][1] if a in self.multiples else ZERO for a in node.args]
        multiple = rule(tuple(slopes))
        if isinstance(multiple, Node):
            self.multiples[node] = radius, multiple
        return True

    def whole(self, node: Node) -> Tangent:
        """The tangent of a node by all ways."""
        own = self.dots.get(node, ZERO)
        if node not in self.multiples:
            return own
        if node not in self._whole:
            radius, multiple = self.multiples[node]
            inner, used = self._inner[radius], self.uses.get(node)
            if used is not None and len(used.shape) in (0, len(radius.shape)):
                inner = mask(used, inner)
            through = scale_tangent(mul(multiple, slope_of(radius)), inner)
            self._whole[node] = add_tangents([own, through])
        return self._whole[node]


# ---- their limits ------------------------------------------------------------------------------------

Push = Callable[["Sequence[Node]", "Mapping[Node, Tangent]"], "list[Tangent]"]


def with_limits(
    outputs: Sequence[Node], order: Sequence[Node], roots: Collection[Node], push: Push
) -> tuple[tuple[Node, ...], Sequence[Node]]:
    """The outputs with the limits of products F'(r) · slope at r = 0, and the order of their nodes.

    Args:
        outputs: what is to be differentiated.
        order: its nodes, arguments first.
        roots: by what.
        push: differentiates nodes by others.
    """
    radii = {slope_of(r): r for r in order if inside(r) is not None}
    if not any(_factors(node, radii) for node in order):
        return tuple(outputs), order
    moving, uses = upwards(order, lambda node: node in roots), use_conditions(order, outputs)

    def limited(node: Node, args: Nodes) -> Node:
        made = node if args == node.args else Node.of(node.op, args)
        if isinstance(node.op, Select):
            made = select(*args)  # one limit of each product
        found = _factors(node, radii) if node in moving else None
        if found is None:
            return made
        radius, rest = found
        if radius not in moving or rest not in moving or _excludes(uses.get(node), radius):
            return made
        (slope,) = push([rest], {radius: broadcast_to(constant(1), radius.shape)})
        if not isinstance(slope, Node):  # F' is a function of r², or constant on pieces
            if inside(radius) not in topological([rest]):
                return made
            return select(logic("and", is_zero(radius), equal(rest, constant(0))), constant(0), made)
        limit = mul(slope, radius.args[0]) if isinstance(radius.op, Apply) else div(slope, constant(2))
        return select(is_zero(radius), limit, made)

    made = rebuild(outputs, {n: n for n in order if n in roots or not n.args}, limited)
    return made, order if made == tuple(outputs) else topological(made)


def _excludes(condition: Node | None, radius: Node) -> bool:
    """True if a condition is, or contains, that r or its square is not 0."""
    if condition is None:
        return False
    op, args = condition.op, condition.args
    if isinstance(op, Logic):
        if op.kind == "not":
            return isinstance(args[0].op, Compare) and args[0].op.relation == "==" and _is_of(args[0], radius)
        return op.kind == "and" and any(_excludes(part, radius) for part in args)
    return isinstance(op, Compare) and op.relation in ("<", "!=") and _is_of(condition, radius)


def _is_of(comparison: Node, radius: Node) -> bool:
    values = {n for n in comparison.args if constant_value(n) != 0}
    return len(values) == 1 and values <= {radius, inside(radius)}


def _factors(node: Node, radii: Mapping[Node, Node]) -> tuple[Node, Node] | None:
    """For F'(r) · slope of r the radius and F'(r), if that may vanish; None for other nodes."""
    if not isinstance(node.op, Mul):
        return None
    for k, (power, factor) in enumerate(zip(node.op.powers, node.args, strict=True)):
        radius = radii.get(factor) if power == 1 else None
        if radius is not None and radius.shape == node.shape:
            others = [
                (p, a) for i, (p, a) in enumerate(zip(node.op.powers, node.args, strict=True)) if i != k
            ]
            if all(p == -1 or _never_zero(a) for p, a in others):
                return None
            return radius, signed_product(others)
    return None


def _never_zero(node: Node) -> bool:
    value = constant_value(node)
    if isinstance(value, (int, float, Fraction)):
        return value != 0
    if isinstance(node.op, Mul):
        return all(p == -1 or _never_zero(a) for p, a in zip(node.op.powers, node.args, strict=True))
    if isinstance(node.op, Add):
        return len(node.args) == 1 and _never_zero(node.args[0])
    return isinstance(node.op, Apply) and node.op.head in (sympy.exp, sympy.cosh, sympy.sech)

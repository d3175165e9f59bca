"""Products F'(r) · slope of r, for a radius r, with their limits at r = 0; see `tangents`.

The limit is used where r = 0 and F'(r) = 0. Elsewhere on r = 0 the function is a cone, without derivative,
and the product stays what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from symad.core.dims import Shape
from symad.core.graph import Node, Op, Tangent, rebuild, topological
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import ElementwiseOp, Mul, signed_product
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.radius import inside, parts, slopes_of
from symad.ops.elementwise.selection import Select, equal, logic, select
from symad.transforms.at_zero import vanishes
from symad.transforms.branch_masks import upwards
from symad.transforms.guards import Guards
from symad.transforms.radius_series import fixed, repeating, series, where_zero

PushAlong = Callable[["Sequence[Node]", "Mapping[Node, Tangent]", Guards, "Sequence[Node]"], "list[Tangent]"]

Factors = list[tuple[int, Node]]
"""Factors of a product with their powers 1 and −1."""


def with_limits(
    outputs: Sequence[Node], order: Sequence[Node], roots: Collection[Node], push_along: PushAlong
) -> tuple[tuple[Node, ...], Sequence[Node]]:
    """The outputs with the limits of products F'(r) · slope at r = 0, and the order of their nodes.

    Args:
        outputs: what is to be differentiated.
        order: its nodes, arguments first.
        roots: by what.
        push_along: differentiates nodes along an order.
    """
    radii = {slope: (r, k) for r in order if inside(r) for k, slope in enumerate(slopes_of(r))}
    products: dict[Node, tuple[Node, int, Node]] = {}
    for node in order if radii else ():
        if isinstance(node.op, Mul):
            found = _slope_among(list(zip(node.op.powers, node.args, strict=True)), node.shape, radii)
            products |= {} if found is None else {node: found}
    if not products:
        return tuple(outputs), order
    limits = RadiusLimits.of(order, outputs, roots, {radius for radius, *_ in products.values()}, push_along)

    def limited(node: Node, args: Nodes) -> Node:
        if isinstance(node.op, Select):
            return select(*args)  # one limit of each product
        made = node.over(args)
        return limits.selected(node, made, *products[node]) if node in products else made

    made = rebuild(outputs, {n: n for n in order if n in roots or not n.args}, limited)
    return made, order if made == tuple(outputs) else topological(made)


@dataclass(frozen=True)
class RadiusLimits:
    """What is known about a graph with radii."""

    moving: Collection[Node]
    """The nodes that depend on what the graph is differentiated by."""
    above: Mapping[Node, int]
    """For each node the set of radii, as bits, on which it depends, or on their q or u; by elements alone."""
    bits: Mapping[Node, int]
    uses: Mapping[Node, Node]
    """The conditions under which nodes are used."""
    push_along: PushAlong

    @staticmethod
    def of(
        order: Sequence[Node],
        outputs: Sequence[Node],
        roots: Collection[Node],
        radii: Collection[Node],
        push_along: PushAlong,
    ) -> RadiusLimits:
        """Look at all nodes of an order once."""
        bits = {radius: 1 << k for k, radius in enumerate(radii)}
        inner: dict[Node, int] = {}
        spread: dict[Op, int] = {}
        for radius, bit in bits.items():
            for below in _below(radius):
                inner[below] = inner.get(below, 0) | bit
            for op in repeating(radius):
                spread[op] = spread.get(op, 0) | bit
        alone = sum(bit for radius, bit in bits.items() if not radius.shape)
        above: dict[Node, int] = {}
        for node in order:
            found = 0
            for arg in node.args:
                found |= above[arg]
            if not isinstance(node.op, ElementwiseOp):
                found &= alone | spread.get(node.op, 0)
            above[node] = found | bits.get(node, 0) | inner.get(node, 0)
        moving = upwards(order, lambda node: node in roots)
        return RadiusLimits(moving, above, bits, Guards.of(order, outputs).uses, push_along)

    def selected(self, node: Node, made: Node, radius: Node, k: int, rest: Node) -> Node:
        """A product F'(r) · slope by the k-th value inside of r, with its limit where that is needed."""
        zero = vanishes(rest) if radius in self.moving and self._depends(rest, radius) else None
        if zero is None or self._is_excluded(self.uses.get(node), radius):
            return made
        known = where_zero(zero, radius)
        limit = None if constant_value(known) is False else series(radius, k, rest, self._slope)
        if limit is None:
            return made
        where = logic("and", equal(radius, constant(0)), *self._sums_that_stay(radius, rest))
        return select(logic("and", parts(radius)[k].spread(where), known), limit, made)

    def _is_excluded(self, used: Node | None, radius: Node) -> bool:
        """Whether a use is only where r is not 0."""
        return used is not None and constant_value(where_zero(used, radius)) is False

    def _sums_that_stay(self, radius: Node, rest: Node) -> list[Node]:
        """The conditions that norms are not 0 of which a product has a power: at 0 it may have no limit."""
        below = topological(fixed(radius, rest))
        norms = [n for n in below if not n.shape and isinstance(n.op, Pow) and inside(n)]
        return [broadcast_to(logic("not", equal(norm, constant(0))), radius.shape) for norm in norms]

    def _depends(self, rest: Node, radius: Node) -> bool:
        if rest in self.above:
            return bool(self.above[rest] & self.bits[radius])
        # a product with one factor less is a new node
        return any(self._depends(arg, radius) for arg in rest.args)

    def _slope(self, function: Node, at: Node) -> Tangent:
        """The slope of a function of a radius."""
        order = topological([function])
        ones = {at: broadcast_to(constant(1), at.shape)}
        (slope,) = self.push_along(order, ones, Guards.of(order, [function]), [function])
        return slope


def _below(radius: Node) -> Nodes:
    """q of a norm q^(1/d), and what is inside of other radii."""
    return radius.args[:1] if isinstance(radius.op, Pow) else inside(radius)


def _slope_among(
    factors: Factors, shape: Shape, radii: Mapping[Node, tuple[Node, int]]
) -> tuple[Node, int, Node] | None:
    """For F'(r) · slope of r the radius, by which value inside, and F'(r); None for other products."""
    for k, (sign, factor) in enumerate(factors):
        if sign == 1 and factor in radii and factor.shape == shape:
            return *radii[factor], signed_product(factors[:k] + factors[k + 1 :])
    return None

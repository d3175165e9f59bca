"""Products F'(r) · slope of r, for a radius r, with their limits at r = 0; see `radii`.

The limit is used where r = 0 and F'(r) = 0. Elsewhere on r = 0 the function is a cone, without derivative,
and the product stays what it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite

import numpy as np
import sympy

from symad.core.graph import Node, Tangent, rebuild, topological
from symad.core.questions import Nodes, evaluate
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul, add, div, mul, signed_product, signed_sum
from symad.ops.basic.shaping import Broadcast, broadcast_to
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.radius import inside, is_zero, slopes_of
from symad.ops.elementwise.selection import Compare, Logic, Select, compare, equal, logic, select
from symad.transforms.branch_masks import upwards
from symad.transforms.guards import Guards

PushAlong = Callable[["Sequence[Node]", "Mapping[Node, Tangent]", Guards, "Sequence[Node]"], "list[Tangent]"]

ROUNDING = Fraction(1, 10**6)
"""A sum is taken to be 0 if it is smaller than this part of its terms; larger than rounding in float32."""

SCALAR = (ElementwiseOp, Broadcast)
"""Ops that on numbers make a number."""

NEVER_ZERO = (sympy.exp, sympy.cosh, sympy.sech)


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
    products = (
        {node: found for node in order if (found := _factors(node, radii)) is not None} if radii else {}
    )
    if not products:
        return tuple(outputs), order
    limits = Limits.of(order, outputs, roots, {radius for radius, *_ in products.values()}, push_along)

    def limited(node: Node, args: Nodes) -> Node:
        if isinstance(node.op, Select):
            return select(*args)  # one limit of each product
        made = node if args == node.args else Node.of(node.op, args)
        return limits.selected(node, made, *products[node]) if node in products else made

    made = rebuild(outputs, {n: n for n in order if n in roots or not n.args}, limited)
    return made, order if made == tuple(outputs) else topological(made)


@dataclass(frozen=True)
class Limits:
    """What is known about a graph with radii."""

    rank: Mapping[Node, int]
    moving: Collection[Node]
    """The nodes that depend on what the graph is differentiated by."""
    above: Mapping[Node, int]
    """For each node the set of radii, as bits, on which it depends, or on their q or u."""
    bits: Mapping[Node, int]
    guards: Guards
    push_along: PushAlong

    @staticmethod
    def of(
        order: Sequence[Node],
        outputs: Sequence[Node],
        roots: Collection[Node],
        radii: Collection[Node],
        push_along: PushAlong,
    ) -> Limits:
        """Look at all nodes of an order once."""
        bits = {radius: 1 << k for k, radius in enumerate(radii)}
        inner: dict[Node, int] = {}
        for radius, bit in bits.items():
            for below in inside(radius):
                inner[below] = inner.get(below, 0) | bit
        above: dict[Node, int] = {}
        for node in order:
            found = bits.get(node, 0) | inner.get(node, 0)
            for arg in node.args:
                found |= above[arg]
            above[node] = found
        moving = upwards(order, lambda node: node in roots)
        rank = {node: k for k, node in enumerate(order)}
        return Limits(rank, moving, above, bits, Guards.of(order, outputs), push_along)

    def selected(self, node: Node, made: Node, radius: Node, k: int, rest: Node) -> Node:
        """A product F'(r) · slope by the k-th value inside of r, with its limit where that is needed."""
        if radius not in self.moving or _excludes(self.guards.uses.get(node), radius):
            return made
        zero = vanishes(rest)
        if zero is None or not self._depends(rest, radius):
            return made
        limit = self._limit(radius, k, rest)
        if limit is None:
            return made
        return select(logic("and", is_zero(radius), zero), limit, made)

    def _depends(self, rest: Node, radius: Node) -> bool:
        known = [rest] if rest in self.above else rest.args  # a product with one factor less is a new node
        return any(self.above.get(node, 0) & self.bits[radius] for node in known)

    def _limit(self, radius: Node, k: int, rest: Node) -> Node | None:
        """F''(0)/2, or F''(0) u; None if the product is 0 at 0 anyway, as sign u is, with all its slopes."""
        (slope,) = self.push_along(
            self._between(radius, rest),
            {radius: broadcast_to(constant(1), radius.shape)},
            self.guards,
            [rest],
        )
        if not isinstance(slope, Node):  # F' is a step
            return None if isinstance(radius.op, Apply) else constant(0)
        (at_zero,) = rebuild([slope], {radius: broadcast_to(constant(0), radius.shape)}, _remade)
        if not has_values(at_zero):
            return None
        return mul(at_zero, inside(radius)[k]) if isinstance(radius.op, Apply) else div(at_zero, constant(2))

    def _between(self, radius: Node, rest: Node) -> list[Node]:
        """The nodes between a radius and a function of it, arguments first."""
        bit = self.bits[radius]
        found, waiting = {rest}, [rest]
        while waiting:
            for arg in waiting.pop().args:
                if self.above.get(arg, 0) & bit and arg not in found:
                    found.add(arg)
                    waiting.append(arg)
        return sorted(found, key=lambda node: self.rank.get(node, len(self.rank)))


def vanishes(node: Node) -> Node | None:
    """The condition that a value is 0, but for the rounding of a sum; None if it never is."""
    op = node.op
    if _is_never_zero(node):
        return None
    if isinstance(op, Add) and len(node.args) == 1:
        return vanishes(node.args[0])
    if isinstance(op, Add):
        size = add(*[apply(sympy.Abs, term) for term in node.args])
        return compare("<=", apply(sympy.Abs, node), mul(constant(ROUNDING), size))
    if isinstance(op, Mul):
        parts = [vanishes(a) for p, a in zip(op.powers, node.args, strict=True) if p == 1]
        known = [part for part in parts if part is not None]
        return logic("or", *known) if known else None
    return equal(node, constant(0))


def _remade(node: Node, args: Nodes) -> Node:
    """A node of other arguments, where conditions on numbers are decided and zeros leave."""
    op = node.op
    if isinstance(op, Add):
        return broadcast_to(signed_sum(zip(op.signs, args, strict=True)), node.shape)
    if isinstance(op, Mul):
        return broadcast_to(signed_product(zip(op.powers, args, strict=True)), node.shape)
    if isinstance(op, Compare):
        return compare(op.relation, *args)
    if isinstance(op, Logic):
        return logic(op.kind, *args)
    return select(*args) if isinstance(op, Select) else Node.of(op, args)


def has_values(node: Node) -> bool:
    """False if a node contains a scalar function of numbers that has no finite value, such as 1/0."""
    known: dict[Node, float] = {}
    for part in topological([node]):
        args = [known[a] for a in part.args if a in known]
        if constant_value(part) is None and not (isinstance(part.op, SCALAR) and len(args) == len(part.args)):
            continue
        try:
            with np.errstate(all="ignore"):
                value = args[0] if isinstance(part.op, Broadcast) else evaluate(part.op, tuple(args))
                known[part] = np.float64(value)
        except ArithmeticError:
            return False
    return all(map(isfinite, known.values()))


def _is_never_zero(node: Node) -> bool:
    value = constant_value(node)
    if isinstance(value, (int, float, Fraction)):
        return value != 0
    return isinstance(node.op, Apply) and node.op.head in NEVER_ZERO


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
    return len(values) == 1 and values <= {radius, *(inside(radius) if len(inside(radius)) == 1 else ())}


def _factors(node: Node, radii: Mapping[Node, tuple[Node, int]]) -> tuple[Node, int, Node] | None:
    """For F'(r) · slope of r the radius, by which value inside, and F'(r); None for other nodes."""
    if not isinstance(node.op, Mul):
        return None
    for k, (power, factor) in enumerate(zip(node.op.powers, node.args, strict=True)):
        found = radii.get(factor) if power == 1 else None
        if found is not None and factor.shape == node.shape:
            pairs = enumerate(zip(node.op.powers, node.args, strict=True))
            return *found, signed_product([pair for i, pair in pairs if i != k])
    return None

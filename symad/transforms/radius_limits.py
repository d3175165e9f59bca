"""Products F'(r) · slope of r, for a radius r, with their limits at r = 0; see `tangents`.

The limit is used where r = 0 and F'(r) = 0. Elsewhere on r = 0 the function is a cone, without derivative,
and the product stays what it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from symad.core.dims import Shape
from symad.core.graph import Node, Op, Tangent, rebuild, topological
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul, div, mul, signed_product, signed_sum
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.radius import inside, order_of, parts, slopes_of
from symad.ops.elementwise.selection import Compare, Logic, Select, equal, logic, select
from symad.transforms.at_zero import vanishes
from symad.transforms.branch_masks import upwards
from symad.transforms.guards import Guards
from symad.transforms.radius_series import fixed, is_zero_at_zero, repeating, series

PushAlong = Callable[["Sequence[Node]", "Mapping[Node, Tangent]", Guards, "Sequence[Node]"], "list[Tangent]"]

Factors = list[tuple[int, Node]]
"""Factors of a product with their powers 1 and −1."""

MAX_DEPTH = 5
"""Products in products are multiplied out down to this depth: x^(2^k) by repeated squares has no end."""


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
    sums = {node: cases for node in order if (cases := limits.of_sum(node, radii))}
    for node in _only_in_sums(order, outputs, sums):
        products.pop(node, None)

    def limited(node: Node, args: Nodes) -> Node:
        if isinstance(node.op, Select):
            return select(*args)  # one limit of each product
        if node in sums:
            return _summed(node, args, sums[node])
        made = node.over(args)
        return limits.selected(node, made, *products[node]) if node in products else made

    made = rebuild(outputs, {n: n for n in order if n in roots or not n.args}, limited)
    return made, order if made == tuple(outputs) else topological(made)


@dataclass(frozen=True)
class SumCase:
    """Terms of a sum that are F'(r) · slope only together; they are ``limit`` under a condition."""

    terms: tuple[int, ...]
    condition: Node
    limit: Node


def _only_in_sums(
    order: Sequence[Node], outputs: Sequence[Node], sums: Mapping[Node, Sequence[SumCase]]
) -> list[Node]:
    """The products that are used in terms of such sums alone: the sums have the limits."""
    users = Counter([*outputs, *[arg for node in order for arg in node.args]])
    terms = [node.args[i] for node, cases in sums.items() for case in cases for i in case.terms]
    return [n for term in terms for n in _multiplied(term) if users[n] == 1]


def _summed(node: Node, args: Nodes, cases: Sequence[SumCase]) -> Node:
    """A sum with the limits of its cases; one term may belong to cases of several radii."""
    assert isinstance(node.op, Add)
    terms = dict(enumerate(zip(node.op.signs, args, strict=True)))
    groups: list[tuple[set[int], list[SumCase]]] = []
    for case in cases:
        joined = [g for g in groups if not g[0].isdisjoint(case.terms)]
        groups = [g for g in groups if g[0].isdisjoint(case.terms)]
        shared = set(case.terms).union(*(indices for indices, _ in joined))
        groups.append((shared, [*(c for _, old in joined for c in old), case]))
    limited = []
    for shared, joint in groups:
        made = signed_sum([terms[i] for i in sorted(shared)])
        for case in joint:
            others = [terms[i] for i in sorted(shared.difference(case.terms))]
            made = select(case.condition, signed_sum([(1, case.limit), *others]), made)
        limited.append((1, made))
        terms = {i: term for i, term in terms.items() if i not in shared}
    return signed_sum([*terms.values(), *limited])


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
        zero = vanishes(rest) if self._depends(rest, radius) else None
        case = None if zero is None else self._case(node, radius, k, rest, zero)
        return made if case is None else select(*case, made)

    def of_sum(self, node: Node, radii: Mapping[Node, tuple[Node, int]]) -> list[SumCase]:
        """The terms of a sum that have the slope of one radius, with those that have u = r · slope of r.

        In (1 + r + r²/3) exp(−r), written with u² for r², F'(r) is in both.
        """
        if not isinstance(node.op, Add) or len(node.args) == 1 or not self.above[node]:
            return []
        terms = [_flat(arg) for arg in node.args]
        groups: dict[tuple[Node, int], dict[int, Node]] = {}
        for i, factors in enumerate(terms):
            found = _slope_among(factors, node.shape, radii)
            if found is not None:
                groups.setdefault(found[:2], {})[i] = found[2]
        return [c for (r, k), found in groups.items() if (c := self._joint(node, r, k, found, terms))]

    def _joint(
        self, node: Node, radius: Node, k: int, found: Mapping[int, Node], terms: Sequence[Factors]
    ) -> SumCase | None:
        assert isinstance(node.op, Add)
        part, signs = parts(radius)[k], node.op.signs
        round_ = order_of(radius) == 2 == part.exponent
        if not round_ or not any(self._depends(rest, radius) for rest in found.values()):
            return None
        rests, r = dict(found), part.spread(radius)
        for i, factors in enumerate(terms):
            j = next((j for j, f in enumerate(factors) if f == (1, part.node)), None)
            if i in rests or j is None or part.node.shape != node.shape:
                continue
            rest = signed_product(factors[:j] + factors[j + 1 :])
            if self._depends(rest, radius):
                rests[i] = div(mul(r, rest), constant(part.weight))
        if len(rests) == 1:
            return None
        zero = vanishes(signed_sum([(signs[i], rest) for i, rest in found.items()]))
        whole = signed_sum([(signs[i], rest) for i, rest in rests.items()])
        case = None if zero is None else self._case(node, radius, k, whole, zero)
        return None if case is None else SumCase(tuple(rests), *case)

    def _case(self, node: Node, radius: Node, k: int, rest: Node, zero: Node) -> tuple[Node, Node] | None:
        """The limit of F'(r) · slope, and the condition under which it is taken; ``zero`` is that F' is 0."""
        if radius not in self.moving or _excludes(self.uses.get(node), radius):
            return None
        known = is_zero_at_zero(zero, radius)
        limit = None if known is False else series(radius, k, rest, self._slope)
        if limit is None:
            return None
        where = logic("and", equal(radius, constant(0)), *self._sums_that_stay(radius, rest))
        return logic("and", parts(radius)[k].spread(where), constant(True) if known else zero), limit

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
    below = _below(radius)
    return len(values) == 1 and values <= {radius, *(below if len(below) == 1 else ())}


def _slope_among(
    factors: Factors, shape: Shape, radii: Mapping[Node, tuple[Node, int]]
) -> tuple[Node, int, Node] | None:
    """For F'(r) · slope of r the radius, by which value inside, and F'(r); None for other products."""
    for k, (sign, factor) in enumerate(factors):
        if sign == 1 and factor in radii and factor.shape == shape:
            return *radii[factor], signed_product(factors[:k] + factors[k + 1 :])
    return None


def _multiplied(term: Node, depth: int = MAX_DEPTH) -> list[Node]:
    """A product, those in it, and negations."""
    if not depth or not (isinstance(term.op, Mul) or (isinstance(term.op, Add) and len(term.args) == 1)):
        return []
    return [term, *[node for arg in term.args for node in _multiplied(arg, depth - 1)]]


def _flat(term: Node, depth: int = MAX_DEPTH) -> Factors:
    """The factors of a product, of products in it and of negations, with their powers 1 and −1."""
    op = term.op
    if depth and isinstance(op, Add) and len(term.args) == 1:
        return [(1, constant(op.signs[0])), *_flat(term.args[0], depth - 1)]
    if not depth or not isinstance(op, Mul):
        return [(1, term)]
    pairs = zip(op.powers, term.args, strict=True)
    return [(power * inner, factor) for power, arg in pairs for inner, factor in _flat(arg, depth - 1)]

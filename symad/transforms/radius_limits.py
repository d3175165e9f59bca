"""Products F'(r) · slope of r, for a radius r, with their limits at r = 0; see `tangents`.

The limit is used where r = 0 and F'(r) = 0. Elsewhere on r = 0 the function is a cone, without derivative,
and the product stays what it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import factorial, isfinite, nan, sqrt

import numpy as np
import sympy

from symad.core.dims import Shape
from symad.core.graph import ZERO, Node, Op, Tangent, rebuild, topological
from symad.core.questions import Nodes, evaluate
from symad.facts.functions import fact
from symad.ops.basic.arithmetic import Add, ElementwiseOp, Mul, add, div, mul, signed_product, signed_sum
from symad.ops.basic.shaping import Broadcast, broadcast_to
from symad.ops.basic.sources import constant, constant_value, fresh_input
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow, power
from symad.ops.elementwise.radius import half_slope, inside, order_of, parts, slopes_of, square_of
from symad.ops.elementwise.selection import Compare, Logic, Select, compare, equal, logic, select
from symad.transforms.branch_masks import upwards
from symad.transforms.guards import Guards

PushAlong = Callable[["Sequence[Node]", "Mapping[Node, Tangent]", Guards, "Sequence[Node]"], "list[Tangent]"]

Factors = list[tuple[int, Node]]
"""Factors of a product with their powers 1 and −1."""

MAX_DEPTH = 5
"""Products in products are multiplied out down to this depth: x^(2^k) by repeated squares has no end."""

ROUNDING = Fraction(1, 10**6)
"""A sum is taken to be 0 if it is smaller than this part of its terms; larger than rounding in float32."""

MAX_NODES = 150
"""Derivatives of more nodes have no more terms in their limits: each term doubles what it differentiates."""

SCALAR = (ElementwiseOp, Broadcast)
"""Ops that on numbers make a number."""


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
            for op in _repeating(radius):
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
        limit = self._limit(radius, k, rest)
        if limit is None:
            return None
        where = logic("and", equal(radius, constant(0)), *self._sums_that_stay(radius, rest))
        return logic("and", parts(radius)[k].spread(where), zero), limit

    def _sums_that_stay(self, radius: Node, rest: Node) -> list[Node]:
        """The conditions that norms are not 0 of which a product has a power: at 0 it may have no limit."""
        below = topological(_fixed(radius, rest))
        norms = [n for n in below if not n.shape and isinstance(n.op, Pow) and inside(n)]
        return [broadcast_to(logic("not", equal(norm, constant(0))), radius.shape) for norm in norms]

    def _depends(self, rest: Node, radius: Node) -> bool:
        if rest in self.above:
            return bool(self.above[rest] & self.bits[radius])
        # a product with one factor less is a new node
        return any(self._depends(arg, radius) for arg in rest.args)

    def _limit(self, radius: Node, k: int, rest: Node) -> Node | None:
        """The product near r = 0; None if it is 0 at 0 anyway, as sign u is, or F has no second derivative.

            F'(r) u/r = (F^(2)(0) + F^(4)(0) r²/3! + F^(6)(0) r⁴/5! + …) u

        has two derivatives more if F^(3)(0) = 0, and four if F^(5)(0) = 0, too. For norms of other orders
        F^(2)(0) has to be 0.
        """
        at, root, part = fresh_input(radius.shape), isinstance(radius.op, Pow), parts(radius)[k]
        (made,) = rebuild([rest], _fixed(radius, rest) | {radius: at} | _even_powers(radius, rest, at))
        even = self._slope(made, at)
        if not isinstance(even, Node):  # F' is a step
            return constant(0) if root else None
        value = _at_zero(even, at)
        if value is None or order_of(radius) != 2:
            return constant(0) if value is not None and _number(value) == 0 else None
        square, total = part.spread(square_of(radius)), value
        for n in (1, 2):
            if len(topological([even])) > MAX_NODES:
                break
            higher = self._second(even, at)
            if higher is None:
                break
            even, value = higher
            term = mul(value, power(square, constant(n)))
            total = add(total, div(term, constant(factorial(2 * n + 1))))
        return mul(total, half_slope(part))

    def _second(self, even: Node, at: Node) -> tuple[Node, Node] | None:
        """The second derivative by r of an even one, and its value at 0; None where no more terms follow.

        None follow if the first derivative is not 0, but for rounding.
        """
        odd = self._slope(even, at)
        higher = self._slope(odd, at) if isinstance(odd, Node) else ZERO
        if not (isinstance(odd, Node) and isinstance(higher, Node)):
            return None
        known = [_at_zero(function, at) for function in (even, odd, higher)]
        f2, f3, f4 = [nan if value is None else _number(value) for value in known]
        if f3 is None or not abs(f3) <= ROUNDING * sqrt(abs(f2 or 0)) * sqrt(abs(f4 or 0)):
            return None
        return None if known[2] is None else (higher, known[2])

    def _slope(self, function: Node, at: Node) -> Tangent:
        """The slope of a function of a radius."""
        order = topological([function])
        ones = {at: broadcast_to(constant(1), at.shape)}
        (slope,) = self.push_along(order, ones, Guards.of(order, [function]), [function])
        return slope


def _below(radius: Node) -> Nodes:
    """q of a norm q^(1/d), and what is inside of other radii."""
    return radius.args[:1] if isinstance(radius.op, Pow) else inside(radius)


def _repeating(radius: Node) -> set[Op]:
    """The ops that repeat the elements of a radius for those that it is made of."""
    one = fresh_input(radius.shape)
    return {n.op for part in parts(radius) for n in topological([part.spread(one)]) if n.args}


def _even_powers(radius: Node, rest: Node, at: Node) -> dict[Node, Node]:
    """What a product has of r², and of even powers of u for r = |u|, as powers of another r."""
    if isinstance(radius.op, Pow):
        return {radius.args[0]: power(at, constant(2))} if order_of(radius) == 2 else {}
    found, (u, *others) = dict[Node, Node](), inside(radius)
    for node in topological([rest]) if not others else ():
        exponent = constant_value(node.args[1]) if isinstance(node.op, Pow) and node.args[0] is u else None
        if isinstance(exponent, int) and exponent % 2 == 0:
            found[node] = power(at, constant(exponent))
    return found


def _fixed(radius: Node, rest: Node) -> dict[Node, Node]:
    """Nodes that stay: of an array of radii, each limit is by one of them, and sums keep the others."""
    if not radius.shape:
        return {}
    fixed, waiting, seen, repeating = dict[Node, Node](), [rest], {radius}, _repeating(radius)
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if (isinstance(node.op, ElementwiseOp) and node.shape) or node.op in repeating:
            waiting += node.args
        else:
            fixed[node] = node
    return fixed


def _at_zero(function: Node, at: Node) -> Node | None:
    """The value of a function of a radius at 0; None if it has none."""
    (value,) = rebuild([function], {at: broadcast_to(constant(0), at.shape)}, _remade)
    return value if has_values(value) else None


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
    """A node of other arguments in its shape, where conditions on numbers are decided and zeros leave."""
    return broadcast_to(_decided(node, args), node.shape)


def _decided(node: Node, args: Nodes) -> Node:
    op = node.op
    if isinstance(op, Add):
        return signed_sum(zip(op.signs, args, strict=True))
    if isinstance(op, Mul):
        return signed_product(zip(op.powers, args, strict=True))
    if isinstance(op, Compare):
        return compare(op.relation, *args)
    if isinstance(op, Logic):
        return logic(op.kind, *args)
    if isinstance(op, Select):
        taken = _number(args[0])
        return select(*args) if taken is None else args[1 if taken else 2]
    made = Node.of(op, args)
    return constant(0) if isinstance(op, (Pow, Apply)) and _number(made) == 0 else made


def has_values(node: Node) -> bool:
    """False if a node contains a scalar function of numbers that has no finite value, such as 1/0."""
    return all(map(isfinite, _numbers(node).values()))


def _number(node: Node) -> float | None:
    """The value of a node made of numbers; None for others."""
    return _numbers(node).get(node)


def _numbers(node: Node) -> dict[Node, float]:
    """The values of those nodes below that are made of numbers."""
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
            known[part] = nan
    return known


def _is_never_zero(node: Node) -> bool:
    value = constant_value(node)
    if isinstance(value, (int, float, Fraction)):
        return value != 0
    return isinstance(node.op, Apply) and fact(node.op.head).never_zero


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

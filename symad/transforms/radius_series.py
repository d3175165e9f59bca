"""Products F'(r) · slope of a radius r as series at r = 0.

For an even F the product is a polynomial in u but for higher powers, with the same derivatives at 0:

    F'(r) u/r = (F^(2)(0) + F^(4)(0) r²/3! + F^(6)(0) r⁴/5! + …) u.

It has no more derivatives than its first odd power of r, as r = ‖u‖ has none, and no more are known than
terms have been computed. A last term says so: it is 0, and its derivatives from that order on are NaN. Where
F' depends on u by other ways, as that of x exp(−r) does, its coefficients are functions of u. Then an odd
power of r has as many derivatives more as its coefficient has zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, inf, nan, sqrt

from symad.core.graph import Node, Op, Tangent, rebuild, topological
from symad.ops.basic.arithmetic import ElementwiseOp, add, div, mul
from symad.ops.basic.sources import Fresh, Input, constant, constant_value, fresh_input
from symad.ops.elementwise.powers import Pow, power
from symad.ops.elementwise.radius import (
    half_slope,
    inside,
    is_size,
    order_of,
    parts,
    square_of,
)
from symad.ops.elementwise.undefined import Undefined
from symad.transforms.at_zero import ROUNDING, NumbersBelow, at_zero, decided, near_zero, vanishes, zeros_like

Slope = Callable[[Node, Node], Tangent]
"""The derivative of a function by an input, for each element."""

ORDER = 6
"""The first derivative of F' that has no term."""

MAX_NODES = 1000
"""Derivatives of more nodes have no terms: each differentiation doubles the nodes."""

FALSE = constant(False)


def series(radius: Node, k: int, rest: Node, slope: Slope) -> Node | None:
    """F'(r) · slope near r = 0, for F'(r) = ``rest`` and the slope by the k-th value inside of r.

    None if it has none: F' has no value or no slope at 0, or r = |u| and the product is a step.
    """
    at, part = fresh_input(radius.shape), parts(radius)[k]
    (made,) = rebuild([rest], by_radius(radius, rest, at))
    values = Derivatives(near_zero(made, at), at, slope)
    value, first = values(0), values(1)
    if value is None or first is None:
        return None
    if is_size(radius) and (values.end == 1 or _zeros(value, radius, slope)):
        return None
    if order_of(radius) != 2 and NumbersBelow()(first) != 0:
        return None
    square = part.spread(square_of(radius))
    terms, lasts = _terms(radius, square, values, slope)
    total = mul(add(constant(0), *terms), half_slope(part)) if terms else constant(0)
    return add(total, *[Node.of(Undefined(order), (zero, square)) for order, zero in lasts])


def _terms(
    radius: Node, square: Node, values: Derivatives, slope: Slope
) -> tuple[list[Node], list[tuple[int, Node]]]:
    """The terms that multiply u; orders of derivatives that do not exist, but where a condition holds.

    All powers of |u| have terms: its derivatives at 0 are 0.
    """
    terms, lasts, bound = list[Node](), list[tuple[int, Node]](), inf
    for j in range(ORDER):
        value = values(j)
        if j >= bound or j >= values.end:
            return terms, lasts
        if value is None:
            return terms, [*lasts, (j, FALSE)]
        if order_of(radius) == 2 and (j % 2 or (j and is_size(radius))):
            even = power(square, constant((j - 1) // 2))
            terms.append(mul(div(value, constant(factorial(j))), even, *[] if j % 2 else [radius]))
        elif (last := _missing(values, j, radius, slope)) is not None:
            lasts.append(last)
            bound = min(bound, last[0] if last[1] is FALSE else inf)
    return terms, [*lasts, (ORDER, FALSE)]


def _missing(values: Derivatives, j: int, radius: Node, slope: Slope) -> tuple[int, Node] | None:
    """The order of the derivative that does not exist for a power r^j, but where its coefficient is 0."""
    number = NumbersBelow()
    before, here, after = [
        nan if v is None else number(v) for v in (values(max(j - 1, 0)), values(j), values(j + 1))
    ]
    if here is not None:
        small = not here or abs(here) <= ROUNDING * sqrt(abs(before or 0)) * sqrt(abs(after or 0))
        return None if j == 0 or small else (j, FALSE)
    value = values(j)
    assert value is not None
    zeros = _zeros(value, radius, slope)
    if zeros:
        return None if zeros == inf else (j + int(zeros), FALSE)
    if _has_other_ways(value, radius):
        return max(j, 1), FALSE
    return (j, vanishes(value) or FALSE) if j else None


class Derivatives:
    """The values at 0 of a function and of its derivatives, computed on demand."""

    end: float = inf
    """The order from which on they are 0."""

    def __init__(self, function: Node, at: Node, slope: Slope) -> None:
        self._values: list[Node | None] = []
        self._next: Tangent = function
        self._at, self._slope = at, slope

    def __call__(self, order: int) -> Node | None:
        """That of an order; None if it or one before has none, or is too long."""
        while len(self._values) <= order:
            self._values.append(self._computed(len(self._values)))
        return self._values[order]

    def _computed(self, order: int) -> Node | None:
        function = self._next
        if not isinstance(function, Node):
            self.end = min(self.end, order)
            return constant(0)
        if None in self._values or (order > 1 and len(topological([function])) > MAX_NODES):
            return None
        self._next = self._slope(function, self._at)
        return at_zero(function, self._at)


def _zeros(value: Node, radius: Node, slope: Slope) -> float:
    """The number of zeros at u = 0 of a function of what is inside of a radius, along any line."""
    at = fresh_input(())
    lines = {u: mul(at, fresh_input(u.shape)) for u in inside(radius)}
    (along,) = rebuild([value], lines)
    if along is value:
        return 0
    values = Derivatives(along, at, slope)
    kinked = any(inside(node) for node in topological([along]))
    for zeros in range(1 if kinked else ORDER):
        found = values(zeros)
        if zeros >= values.end:
            return inf
        if found is None or NumbersBelow()(found) != 0:
            return zeros
    return 1 if kinked else ORDER


def _has_other_ways(value: Node, radius: Node) -> bool:
    """Whether a value depends on what the values inside of a radius are made of, but not by them."""
    below = {node for node in topological(inside(radius)) if isinstance(node.op, (Input, Fresh))}
    return not below.isdisjoint(topological([value], inside(radius)))


# ---- functions of r alone -------------------------------------------------------------------------


def is_zero_at_zero(condition: Node, radius: Node) -> bool | None:
    """Whether a condition holds where r = 0; None if it depends on others."""
    at = zeros_like(radius)
    zero = by_radius(radius, condition, at) | {u: zeros_like(u) for u in inside(radius)}
    holds = NumbersBelow()(*decided([condition], zero))
    return None if holds is None else bool(holds)


def by_radius(radius: Node, rest: Node, at: Node) -> dict[Node, Node]:
    """What a product has of r, r² and even powers of u for r = |u|, by another r; and what stays."""
    q = radius.args[0] if isinstance(radius.op, Pow) else square_of(radius)
    found = fixed(radius, rest) | {radius: at, q: power(at, constant(order_of(radius)))}
    for node in topological([rest]) if is_size(radius) else ():
        exponent = constant_value(node.args[1]) if isinstance(node.op, Pow) else None
        if isinstance(exponent, int) and exponent % 2 == 0 and node.args[0] is inside(radius)[0]:
            found[node] = power(at, constant(exponent))
    return found


def fixed(radius: Node, rest: Node) -> dict[Node, Node]:
    """Nodes that stay: of an array of radii, each limit is by one of them, and sums keep the others."""
    if not radius.shape:
        return {}
    found, waiting, seen, repeats = dict[Node, Node](), [rest], {radius}, repeating(radius)
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if (isinstance(node.op, ElementwiseOp) and node.shape) or node.op in repeats:
            waiting += node.args
        else:
            found[node] = node
    return found


def repeating(radius: Node) -> set[Op]:
    """The ops that repeat the elements of a radius for those that it is made of."""
    one = fresh_input(radius.shape)
    return {n.op for part in parts(radius) for n in topological([part.spread(one)]) if n.args}

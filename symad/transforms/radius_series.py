"""Products F'(r) · slope of a radius r as series at r = 0.

For an even F the product is a polynomial in u but for higher powers, with the same derivatives at 0:

    F'(r) u/r = (F^(2)(0) + F^(4)(0) r²/3! + F^(6)(0) r⁴/5! + …) u.

Odd powers of r have no terms: where they have no derivative any more, that of the even part of F counts, if
it is a number. The polynomial ends where no more derivatives are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from symad.core.graph import Node, Op, Tangent, rebuild, topological
from symad.ops.basic.arithmetic import ElementwiseOp, add, div, mul
from symad.ops.basic.sources import constant, constant_value, fresh_input
from symad.ops.elementwise.powers import Pow, power
from symad.ops.elementwise.radius import half_slope, inside, is_size, order_of, parts, square_of
from symad.ops.elementwise.selection import Select
from symad.transforms.at_zero import (
    NumbersBelow,
    at_zero,
    by_cases,
    decided,
    near_zero,
    vanishes,
    zeros_like,
)
from symad.transforms.series import Coefficients

Slope = Callable[[Node, Node], Tangent]
"""The derivative of a function by an input, for each element."""

ORDERS = (2, 4)
"""The orders of the terms of F'' that follow F''(0): derivatives of F up to the sixth are right."""

FALSE = constant(False)

MAX_NODES = 60
"""Terms of more nodes are left out, as are those behind: those of a norm of norms fill a graph."""


def series(radius: Node, k: int, rest: Node, slope: Slope) -> Node | None:
    """F'(r) · slope near r = 0, for F'(r) = ``rest`` and the slope by the k-th value inside of r.

    None if it has none: F' has no value or no slope at 0, or r = |u| and the product is a step.
    """
    at, part = fresh_input(radius.shape), parts(radius)[k]
    made = rebuild([rest], by_radius(radius, rest, at))
    function = slope(near_zero(made, zeros_by(radius, rest) | {at: zeros_like(at)}, {})[0], at)
    if not isinstance(function, Node):  # F' is a step
        return None if is_size(radius) else constant(0)
    total = at_zero(function, at)
    if total is None or order_of(radius) != 2:
        return constant(0) if total is not None and NumbersBelow()(total) == 0 else None
    square, terms, even = part.spread(square_of(radius)), Coefficients.along(at, ORDERS[-1]), True
    for order in ORDERS:
        even = even and bool(_vanish([terms.of(function, order - 1)], [at]))
        # no derivative exists behind an odd power of r: terms but numbers would only lengthen the text
        value = _coefficient(terms.of(function, order), at, MAX_NODES if even else 0)
        if value is None:
            break
        term = div(value, constant(order + 1))
        total = add(total, mul(term, power(square, constant(order // 2))))
    return mul(total, half_slope(part))


def _coefficient(term: Tangent, at: Node, most: int) -> Node | None:
    """The value of a term at 0, if it is one of few nodes, or a number by cases."""
    value = at_zero(term, at) if isinstance(term, Node) else constant(0)
    if value is None or len(topological([value])) <= most:
        return value
    cases = by_cases(value)
    return cases if _is_number(cases) or len(topological([cases])) <= most else None


def _is_number(value: Node) -> bool:
    """Whether a value is a number, or a selection of such."""
    cases = value.args[1:] if isinstance(value.op, Select) else ()
    return all(map(_is_number, cases)) if cases else NumbersBelow()(value) is not None


# ---- functions of r alone -------------------------------------------------------------------------


def where_zero(condition: Node, radius: Node) -> Node:
    """The condition where r = 0; a truth value if it depends on no others."""
    at = zeros_like(radius)
    (known,) = decided([condition], by_radius(radius, condition, at) | zeros_by(radius, condition))
    holds = NumbersBelow()(known)
    return known if holds is None else constant(bool(holds))


def zeros_by(radius: Node, rest: Node) -> dict[Node, Node]:
    """What is 0 where r = 0; and what stays."""
    return fixed(radius, rest) | {u: zeros_like(u) for u in inside(radius)}


def has_slope_zero(outputs: Sequence[Node], radius: Node, fixed: Mapping[Node, Node]) -> bool | None:
    """Whether functions F(r) have F'(0) = 0; None if that depends on others. Fixed nodes do not."""
    at = fresh_input(radius.shape)
    powers = powers_by_base(topological(outputs, fixed))
    made = rebuild(outputs, {**fixed, radius: at, **even_powers(radius, powers, at)})
    terms = Coefficients.along(at, 1, fixed)
    return _vanish([terms.of(y, 1) for y in made], [at, *inside(radius)])


def _vanish(values: Sequence[Tangent], zeros: Sequence[Node]) -> bool | None:
    """Whether values are all 0 where some nodes are 0; None if that depends on others."""
    conditions = [vanishes(value) or FALSE for value in values if isinstance(value, Node)]
    there = set(map(NumbersBelow(), decided(conditions, {node: zeros_like(node) for node in zeros})))
    return False if 0 in there else None if None in there else True


def by_radius(radius: Node, rest: Node, at: Node) -> dict[Node, Node]:
    """What a product has of r, and of even powers of r, by another r; and what stays."""
    powers = powers_by_base(topological([rest]))
    return fixed(radius, rest) | {radius: at, **even_powers(radius, powers, at)}


def powers_by_base(order: Sequence[Node]) -> dict[Node, list[Node]]:
    """The powers with exact exponents among some nodes."""
    found: dict[Node, list[Node]] = {}
    for node in order:
        if isinstance(node.op, Pow) and type(constant_value(node.args[1])) in (int, Fraction):
            found.setdefault(node.args[0], []).append(node)
    return found


def even_powers(radius: Node, powers: Mapping[Node, Sequence[Node]], at: Node) -> dict[Node, Node]:
    """Powers of q for norms r = q^(1/d), and even powers of u for r = |u|, as powers of another r."""
    root, d = isinstance(radius.op, Pow), order_of(radius)
    q = radius.args[0] if root else square_of(radius)
    base, degree = (inside(radius)[0], 1) if is_size(radius) else (q, d)
    found = {q: power(at, constant(d))}
    for node in powers.get(base, ()):
        total = constant_value(node.args[1]) * degree
        if node is not radius and (root or total % 2 == 0):
            found[node] = power(at, constant(int(total) if total % 1 == 0 else total))
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

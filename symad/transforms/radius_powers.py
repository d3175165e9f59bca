"""Powers of powers, and of sums of squares, in forms whose derivatives at 0 are those of the function.

The chain rule by way of b^m multiplies a slope that vanishes at b = 0 by one that does not exist there.
Therefore (b^m)^p is differentiated as b^(mp) for b ≥ 0, and as |b|^(mp) for even m; q^p of a sum q of powers
of degree d as r^(dp) with the radius r = q^(1/d), for which `radius_limits` has limits. √(q²) is q, and
(√q)^4 is q². An even power in all terms under a root is taken out of it: √(x⁴ + x²) = |x| √(x² + 1).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import sympy
from sympy.codegen.cfunctions import hypot

from symad.core.graph import Node, rebuild, topological
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import Add, Mul, mul, signed_sum
from symad.ops.basic.shaping import Broadcast, Slice
from symad.ops.basic.sources import constant, constant_value, fresh_input
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import HALF, Pow, power
from symad.ops.elementwise.radius import (
    RADIAL,
    Number,
    Part,
    degree,
    inside,
    is_size,
    order_of,
    parts,
    powers_in,
    slopes_of,
    source_of,
    square_of,
    terms_of,
)
from symad.ops.elementwise.selection import Select, equal, select
from symad.transforms.at_zero import near_zero, zeros_like
from symad.transforms.radius_series import even_powers, has_slope_zero, powers_by_base

NO_HIGHER = 1e-14
"""How far the product of a degree and of an exponent that is a float may be above 1 and count as 1."""


def with_joined_powers(
    outputs: Sequence[Node], order: Sequence[Node], roots: Collection[Node]
) -> tuple[tuple[Node, ...], Sequence[Node]]:
    """The outputs with powers of powers joined, and the order of their nodes; arguments as `with_limits`."""

    def made(node: Node, args: Nodes) -> Node:
        kept = node.over(args)
        return _joined(node, args) or kept

    fixed = {n: n for n in order if n in roots or not n.args}
    if any(_joined(node, node.args) for node in order):
        outputs = rebuild(outputs, fixed, made)
        order = topological(outputs)
    radii = _round(order)
    replaced = _other_spellings(order, radii) if radii else {}
    if replaced:
        outputs = rebuild(outputs, replaced | fixed)
        order = topological(outputs)
    if radii and _joint(order, _round(order))[0]:
        outputs = rebuild(outputs, fixed, lambda node, args: _by_branches(node, args, fixed))
        outputs = _beside_their_squares(outputs, fixed)
        order = topological(outputs)
    return tuple(outputs), order


def _round(order: Sequence[Node]) -> list[Node]:
    """The radii of order 2."""
    return [n for n in order if type(n.op) in RADIAL and inside(n) and order_of(n) == 2]


def _by_branches(node: Node, args: Nodes, fixed: Mapping[Node, Node]) -> Node:
    """A selection whose branches are functions of radii of their own."""
    if not isinstance(node.op, Select):
        return node.over(args)
    return select(args[0], *[_beside_their_squares([branch], fixed)[0] for branch in args[1:]])


def _other_spellings(order: Sequence[Node], radii: Sequence[Node]) -> dict[Node, Node]:
    """Squares of radii that are written in another form than that of the radius, also among terms of sums."""
    lengths = {node.shape: fresh_input(node.shape) for node in radii}
    alike: dict[object, list[Node]] = {}
    for r in radii:
        alike.setdefault(_sources(parts(r)), []).append(r)

    def square(terms: Sequence[Part], like: Node) -> Node | None:
        for r in alike.get(_sources(terms), ()):
            if r.shape == like.shape and terms_of(parts(r), like) == terms_of(terms, like):
                return _square(r)
        return None

    replaced, known = dict[Node, Node](), set(map(_square, radii))
    for node in order:
        like = None if node in known else lengths.get(node.shape)
        if like is not None:
            found = square(powers_in(node) or [], like) or _among_terms(node, square, like)
            if found is not None and found is not node:
                (replaced[node],) = rebuild([found], replaced)
    return replaced


def _sources(terms: Sequence[Part]) -> frozenset[Node]:
    """The arrays of which sums of powers have elements: those of equal sums are the same."""
    return frozenset(source_of(part.node) for part in terms)


def _among_terms(
    node: Node, square_by: Callable[[Sequence[Part], Node], Node | None], like: Node
) -> Node | None:
    """A sum with c r² in place of the terms of r² times a number c, as 5x²/3 + 5y²/3 are."""
    groups: dict[Number, list[tuple[int, Node, list[Part]]]] = {}
    for sign, arg in zip(node.op.signs, node.args, strict=True) if isinstance(node.op, Add) else ():
        factor, powers = _multiple(arg)
        found = powers_in(powers) or []
        weight = found[0].weight if len({part.weight for part in found}) == 1 else 0
        groups.setdefault(sign * factor * weight, []).append((sign, arg, found))
    terms, joined = list[tuple[int, Node]](), False
    for total, group in groups.items():
        inner = [replace(part, weight=1) for *_, found in group for part in found]
        square = square_by(inner, like) if total and len(group) > 1 else None
        joined = joined or square is not None
        kept = [(sign, arg) for sign, arg, _ in group]
        terms += kept if square is None else [(1, mul(constant(total), square))]
    return signed_sum(terms) if joined else None


def _beside_their_squares(outputs: Sequence[Node], kept: Mapping[Node, Node]) -> Nodes:
    """Powers of r for those of r², where a function F has both near r = 0, F'(0) = 0, and no slopes of r.

    The slopes by r and by r² alone may have no derivatives at r = 0. What stands in branches that are not
    taken there needs none.
    """
    order = topological(outputs, kept)
    replaced, known = dict[Node, Node](), set(order)
    joint, depend = _joint(order, _round(order))
    for r, bit in joint.items():
        if not known.isdisjoint(slopes_of(r)):
            continue
        fixed = {**kept, **{node: node for node in order if not depend[node] & bit}}
        near = near_zero(outputs, {node: zeros_like(node) for node in (r, *inside(r))}, fixed)
        if near == tuple(outputs) or _joint(topological(near, fixed), [r])[0]:
            flat = has_slope_zero(near, r, fixed)
            if flat or (flat is None and not is_size(r)):
                replaced |= {r: r, **even_powers(r, powers_by_base(order), r)}
    return rebuild(outputs, {**kept, **replaced}) if replaced else tuple(outputs)


def _joint(order: Sequence[Node], radii: Sequence[Node]) -> tuple[dict[Node, int], dict[Node, int]]:
    """The radii r for which a node has r and r² by two arguments that are not branches of one selection.

    Each with its bit; and for each node the bits of the radii on which, or on what is inside, it depends.
    """
    bits, powers = {r: 1 << k for k, r in enumerate(radii)}, powers_by_base(order)
    owners = {node: bits[r] for r in radii for node in even_powers(r, powers, r)}
    below, above, depend, both = dict[Node, int](), dict[Node, tuple[int, int]](), dict[Node, int](), 0
    for r, bit in bits.items():
        below |= {u: below.get(u, 0) | bit for u in inside(r)}
    for node in order:
        bit = bits.get(node, 0)
        own, square, depends = bit, owners.get(node, 0), bit | owners.get(node, 0) | below.get(node, 0)
        for arg in node.args:
            roots, squares = above.get(arg, (0, 0))
            if not isinstance(node.op, Select):
                both |= (own & squares & ~bit) | (roots & square)
            own, square, depends = own | roots, square | (squares & ~bit), depends | depend.get(arg, 0)
        above[node], depend[node] = (own, square), depends
    return {r: bit for r, bit in bits.items() if both & bit}, depend


def _square(radius: Node) -> Node:
    return power(radius.args[0], constant(2)) if is_size(radius) else square_of(radius)


def _joined(node: Node, args: Nodes) -> Node | None:
    """A power, or an absolute value, of a power or of a sum of squares; None for what stays."""
    op = node.op
    if isinstance(op, Select):
        return _with_its_value_at_zero(args)
    if isinstance(op, Apply) and op.head is hypot:
        return _of_multiples(*args)
    if isinstance(op, Apply) and op.head is sympy.Abs:
        return args[0] if _is_positive(args[0]) else _of_negation(args[0])
    outer = _exponent(args[1]) if isinstance(op, Pow) else None
    if outer is None:
        return None
    if outer % 2 == 0 and _is_negation(args[0]):
        return power(args[0].args[0], args[1])
    if isinstance(args[0].op, (Broadcast, Slice)) and 0 < outer < 1:
        return Node.of(args[0].op, (power(args[0].args[0], args[1]),))
    return _of_power(args[0], outer) or _taken_out(args[0], outer) or _by_radius(args[0], outer)


def _of_negation(node: Node) -> Node | None:
    """|u| for |−u|, so that a function has one radius where stable sums have written it as |u|."""
    return apply(sympy.Abs, node.args[0]) if _is_negation(node) else None


def _is_negation(node: Node) -> bool:
    return isinstance(node.op, Add) and node.op.signs == (-1,)


def _of_multiples(first: Node, second: Node) -> Node | None:
    """√(a² + b²) |u| for hypot(a u, b u), whose slopes by a u and by b u would cancel with rounding."""
    (a, u), (b, other) = _multiple(first), _multiple(second)
    if u is not other or constant_value(u) is not None:
        return None
    return mul(power(constant(a * a + b * b), constant(HALF)), apply(sympy.Abs, u))


def _multiple(node: Node) -> tuple[int | Fraction, Node]:
    """The exact number a and u of a u."""
    op, args = node.op, node.args
    if isinstance(op, Add) and len(args) == 1:
        a, u = _multiple(args[0])
        return op.signs[0] * a, u
    factor = constant_value(args[0]) if isinstance(op, Mul) and op.powers == (1, 1) else None
    if isinstance(factor, (int, Fraction)) and not isinstance(factor, bool):
        return factor, args[1]
    return 1, node  # also for floats, whose squares are rounded


def _with_its_value_at_zero(args: Nodes) -> Node | None:
    """√q for √q that is 0 where q = 0."""
    same = args[0] is equal(_under_root(args[2]), constant(0)) and constant_value(args[1]) == 0
    return args[2] if same else None


def _of_power(node: Node, outer: Number) -> Node | None:
    """b^(kp) for (b^k)^p where it has the same value, |b|^(kp) for even k."""
    base, inner = _powered(node)
    total = inner * outer
    joined = constant(_tidy(total))
    if inner == 1 and total % 2 == 0 and is_size(base):
        return power(base.args[0], joined)
    if total % 1 == 0 == outer % 1 and inside(node):
        return power(base, joined)
    if total % 2 == 0 and (inner == HALF or outer % 1):
        return power(base, joined) if inner % 2 == 0 or _is_positive(base) else None
    if inner == 1 or inside(node) or inner % 1 == 0 == outer % 1:
        return None
    if _is_positive(base):
        return power(base, joined)
    return power(apply(sympy.Abs, base), joined) if inner % 2 == 0 else None


def _under_root(node: Node) -> Node:
    """q of a root of a sum of powers; other nodes unchanged."""
    return node.args[0] if isinstance(node.op, Pow) and inside(node) else node


def _taken_out(base: Node, outer: Number) -> Node | None:
    """|b|^(kp) q^p for (b^k q)^p, where k is even and all terms of a sum have b^k."""
    signs, added = _terms(base)
    if len(added) < 2 or outer % 1 == 0:
        return None
    terms = [_factors(term) for term in added]
    for b in terms[0]:
        least = min(term.get(b, 0) for term in terms)
        common = int(least - least % 2)
        if common:
            left = signed_sum([(sign, _without(t, b, common)) for sign, t in zip(signs, terms, strict=True)])
            taken = power(apply(sympy.Abs, b), constant(_tidy(common * outer)))
            return mul(taken, power(left, constant(outer)))
    return None


def _terms(node: Node) -> tuple[list[int], list[Node]]:
    """The terms of a sum, and of sums in it, with their signs."""
    signs, found, waiting = [], [], [(1, node)]
    while waiting:
        sign, term = waiting.pop()
        if isinstance(term.op, Add):
            waiting += [(sign * s, a) for s, a in zip(term.op.signs, term.args, strict=True)]
        else:
            signs.append(sign)
            found.append(term)
    return signs, found


def _without(factors: Mapping[Node, Number], base: Node, exponent: int) -> Node:
    """The product of powers, divided by a power of one base."""
    left = [(f, m - exponent if f is base else m) for f, m in factors.items()]
    return mul(*[power(f, constant(_tidy(m))) for f, m in left])


def _factors(term: Node) -> dict[Node, Number]:
    """The bases of a product, with their exponents; a quotient is one factor."""
    product = isinstance(term.op, Mul) and -1 not in term.op.powers
    found: dict[Node, Number] = {}
    for factor in term.args if product else (term,):
        base, exponent = _powered(factor)
        found[base] = found.get(base, 0) + exponent
    return found


def _by_radius(base: Node, outer: Number) -> Node | None:
    """q^p as r^(dp), where q^(p−1) is infinite at 0 and p has derivatives by way of the radius."""
    d = degree(base) if outer % 1 else None
    if d is None or d * outer <= 1 + NO_HIGHER or (d == 2 and outer > 1 and d * outer % 1 == 0):
        return None
    return power(power(base, constant(Fraction(1) / d)), constant(_tidy(d * outer)))


def _powered(node: Node) -> tuple[Node, Number]:
    """The base and the exponent of a power with a number as exponent, or of a product of equal factors."""
    op, args = node.op, node.args
    exponent = _exponent(args[1]) if isinstance(op, Pow) else None
    if exponent is not None:
        return args[0], exponent
    if isinstance(op, Mul) and set(op.powers) == {1} and len(set(args)) == 1:
        return args[0], len(args)
    return node, 1


def _exponent(node: Node) -> Number | None:
    value = constant_value(node)
    return value if type(value) in (int, Fraction, float) else None


def _tidy(exponent: Number) -> Number:
    return int(exponent) if exponent % 1 == 0 else exponent


def _is_positive(node: Node) -> bool:
    """True if a value is known not to be negative."""
    return bool(inside(node)) or degree(node) is not None

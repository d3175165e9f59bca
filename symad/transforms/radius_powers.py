"""Powers of powers, and of sums of squares, in forms whose derivatives at 0 are those of the function.

The chain rule by way of b^m multiplies a slope that vanishes at b = 0 by one that does not exist there.
Therefore (b^m)^p is differentiated as b^(mp) for b ≥ 0, and as |b|^(mp) for even m; q^p of a sum q of powers
of degree d as r^(dp) with the radius r = q^(1/d), for which `radius_limits` has limits. √(q²) is q, and
(√q)^4 is q². An even power in all terms under a root is taken out of it: √(x⁴ + x²) = |x| √(x² + 1).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

import sympy
from sympy.codegen.cfunctions import hypot

from symad.core.graph import Node, rebuild, topological
from symad.core.questions import Nodes
from symad.ops.basic.arithmetic import Add, Mul, mul, signed_sum
from symad.ops.basic.shaping import Broadcast, Slice
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import HALF, Pow, power
from symad.ops.elementwise.radius import Number, degree, inside, is_size, order_of
from symad.ops.elementwise.selection import Select, equal

NO_HIGHER = 1e-14
"""How far the product of a degree and of an exponent that is a float may be above 1 and count as 1."""


def with_joined_powers(
    outputs: Sequence[Node], order: Sequence[Node], roots: Collection[Node]
) -> tuple[tuple[Node, ...], Sequence[Node]]:
    """The outputs with powers of powers joined, and the order of their nodes; arguments as `with_limits`."""
    if not any(_joined(node, node.args) for node in order):
        return tuple(outputs), order

    def made(node: Node, args: Nodes) -> Node:
        kept = node.over(args)
        return _joined(node, args) or kept

    made_outputs = rebuild(outputs, {n: n for n in order if n in roots or not n.args}, made)
    return made_outputs, topological(made_outputs)


def _joined(node: Node, args: Nodes) -> Node | None:
    """A power, or an absolute value, of a power or of a sum of squares; None for what stays."""
    op = node.op
    if isinstance(op, Select):
        return _with_its_value_at_zero(args)
    if isinstance(op, Apply) and op.head is hypot:
        return _of_multiples(*args)
    if isinstance(op, Apply) and op.head is sympy.Abs:
        return args[0] if _is_positive(args[0]) else None
    outer = _exponent(args[1]) if isinstance(op, Pow) else None
    if outer is None:
        return None
    if isinstance(args[0].op, (Broadcast, Slice)) and 0 < outer < 1:
        return Node.of(args[0].op, (power(args[0].args[0], args[1]),))
    return _of_power(args[0], outer) or _taken_out(args[0], outer) or _by_radius(args[0], outer)


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
    if total % 1 == 0 == outer % 1 and inside(node) and order_of(node) != 2:
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

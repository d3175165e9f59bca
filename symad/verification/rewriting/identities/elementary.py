"""Exponentials, logarithms, powers, sines and signs of composite arguments, in terms of atoms.

exp(Σ c m) = Π exp(u m)^k with c = k u; log Π b^e = Σ e log b for positive b; sin and cos by the
addition theorem; sign of a product is the product of the signs. Each holds at every real point where
both sides are defined.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import sympy

from symad.core.graph import Node, op_of, topological
from symad.core.nodes import Moved
from symad.ops.basic.arithmetic import Add, Mul, add, div, mul, neg, sub
from symad.ops.basic.shaping import broadcast_to
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow, power
from symad.ops.elementwise.selection import Compare
from symad.verification.rewriting.basis import Basis
from symad.verification.terms.discontinuities import SIGNS, LooseSign
from symad.verification.terms.linear_terms import (
    MAX_ORDER,
    collect_roots,
    linear_terms,
    number,
    power_factors,
    through,
)


def integer_power(base: Node, k: int) -> Node:
    """base ** k for an integer k of either sign; roots in it that become whole are taken out."""
    if not k:
        return constant(1)
    if isinstance(base.op, Add) and len(base.args) == 1:
        return mul(constant(base.op.signs[0] ** k), integer_power(base.args[0], k))
    collected = collect_roots([(k, base)])
    return power(base, constant(k)) if collected is None else collected


def exponential(argument: Node, basis: Basis) -> Node:
    """exp of a node."""
    factors = [_exponential_of(c, m, basis) for c, m in basis.terms(argument)]
    return broadcast_to(mul(*factors) if factors else constant(1), argument.shape)


def _exponential_of(c: Fraction, m: Node, basis: Basis) -> Node:
    """exp(c m): a power of b for m = log b, a power of exp(u m) for an atom."""
    if m.op.moves <= Moved.ALL:
        moved = through(m, lambda inner: exponential(mul(constant(abs(c)), inner), basis))
        return moved if c > 0 else div(constant(1), moved)
    if isinstance(m.op, Apply):
        if m.op.head is sympy.log:
            return rational_power(m.args[0], c, basis)
        if m.op.head is sympy.LambertW and c.denominator == 1:  # W e^W = x (DLMF 4.13.1)
            return integer_power(div(m.args[0], m), int(c))
        base = _inverse_of_exponential(m, basis)
        if base is not None:
            return rational_power(base, c, basis)
    parts = basis.exponents.split(c)
    return mul(*[integer_power(apply(sympy.exp, mul(constant(unit), m)), k) for k, unit in parts])


def _inverse_of_exponential(m: Node, basis: Basis) -> Node | None:
    """exp of the inverse hyperbolic functions: exp(asinh x) = x + √(x² + 1), and so on."""
    x = m.args[0]
    one, half = constant(1), Fraction(1, 2)
    head = op_of(m, Apply).head
    if head is sympy.asinh:
        return add(x, rational_power(add(mul(x, x), one), half, basis))
    if head is sympy.acosh:
        roots = [rational_power(e, half, basis) for e in (sub(x, one), add(x, one))]
        return add(x, mul(*roots))
    if head is sympy.atanh:
        return rational_power(div(add(one, x), sub(one, x)), half, basis)
    return None


def logarithm(argument: Node, basis: Basis) -> Node:
    """log of a node, on the set where it is positive."""

    def of(node: Node) -> Node:
        parts = power_factors(node, basis.sign, basis.absolutes)
        terms = [_logarithm_of(e, b, basis) for e, b in parts]
        return broadcast_to(add(*terms) if terms else constant(0), node.shape)

    return through(argument, of)


def _logarithm_of(e: Fraction, b: Node, basis: Basis) -> Node:
    """E log b, which is e a for b = exp(a)."""
    if b.op.moves <= Moved.ALL:
        return mul(constant(e), logarithm(b, basis))
    exponent = number(b.args[1]) if isinstance(b.op, Pow) else None
    if exponent is not None and (exponent.denominator > 1 or exponent % 2):
        return mul(constant(e * exponent), logarithm(b.args[0], basis))
    inner = b.args[0] if isinstance(b.op, Apply) and b.op.head is sympy.exp else apply(sympy.log, b)
    return mul(constant(e), inner)


def rational_power(base: Node, exponent: Fraction, basis: Basis) -> Node:
    """base ** exponent: integer powers as they are, others by positive factors and their roots."""
    if exponent.denominator == 1:
        return integer_power(base, int(exponent))

    def of(node: Node) -> Node:
        parts = power_factors(_squared(node), basis.sign, basis.absolutes)
        factors = [_root_power(b, e * exponent, basis) for e, b in parts]
        return broadcast_to(mul(*factors) if factors else constant(1), node.shape)

    return through(base, of)


def _squared(node: Node) -> Node:
    """1 − sin² as cos², and 1 − cos² as sin², or a multiple of these; else the node."""
    terms = linear_terms(node) if isinstance(node.op, Add) and len(node.args) == 2 else []
    numbers = [c for c, m in terms if constant_value(m) == 1]
    for c, m in terms if len(terms) == 2 else []:
        base = m.args[0] if isinstance(m.op, (Pow, Mul)) else m
        alike = isinstance(m.op, Pow) and number(m.args[1]) == 2
        alike = alike or (isinstance(m.op, Mul) and m.args == (base, base) and m.op.powers == (1, 1))
        other = PYTHAGOREAN.get(base.op.head) if isinstance(base.op, Apply) else None
        if alike and other is not None and numbers == [-c]:
            return mul(constant(-c), power(apply(other, base.args[0]), constant(2)))
    return node


PYTHAGOREAN = {sympy.sin: sympy.cos, sympy.cos: sympy.sin}


def _root_power(b: Node, exponent: Fraction, basis: Basis) -> Node:
    """b ** exponent for an atom b: a power of its root of the common order."""
    if b.op.moves <= Moved.ALL:
        return rational_power(b, exponent, basis)
    if isinstance(b.op, Apply) and b.op.head is sympy.exp:
        return exponential(mul(constant(exponent), b.args[0]), basis)
    if exponent.denominator == 1:
        return integer_power(b, int(exponent))
    if isinstance(b.op, Pow):  # b is itself a root
        inner = number(b.args[1])
        if inner is not None:
            return _root_power(b.args[0], inner * exponent, basis)
    whole = exponent.numerator // exponent.denominator if exponent.denominator <= MAX_ORDER else 0
    whole = whole if abs(exponent.numerator) > MAX_ORDER else 0  # of x^(100/3), a root is all that is needed
    parts = basis.roots.split(exponent - whole)
    return mul(integer_power(b, whole), *[integer_power(power(b, constant(unit)), k) for k, unit in parts])


# ---- sines and cosines --------------------------------------------------------------------------


Rotation = tuple[Node, Node]
"""(cos φ, sin φ)."""


def sine_and_cosine(argument: Node, basis: Basis) -> Rotation:
    """(cos, sin) of a node, by the addition theorem over its terms."""
    total: Rotation = constant(1), constant(0)
    for c, m in basis.terms(argument):
        total = _compose(total, _rotation_of(c, m, basis))
    cosine, sine = total
    return broadcast_to(cosine, argument.shape), broadcast_to(sine, argument.shape)


def _compose(a: Rotation, b: Rotation) -> Rotation:
    """The rotation by the sum of two angles."""
    if constant_value(a[0]) == 1:
        return b
    return sub(mul(a[0], b[0]), mul(a[1], b[1])), add(mul(a[1], b[0]), mul(a[0], b[1]))


def _rotation_of(c: Fraction, m: Node, basis: Basis) -> Rotation:
    """The rotation by c·m."""
    if constant_value(m) is sympy.pi and (2 * c).denominator == 1:
        quarter = int(2 * c) % 4
        return constant((1, 0, -1, 0)[quarter]), constant((0, 1, 0, -1)[quarter])
    if m.op.moves <= Moved.ALL:
        return (
            through(m, lambda inner: sine_and_cosine(mul(constant(c), inner), basis)[0]),
            through(m, lambda inner: sine_and_cosine(mul(constant(c), inner), basis)[1]),
        )
    total: Rotation = constant(1), constant(0)
    for k, unit in basis.angles.split(c):
        angle = mul(constant(unit), m)
        rotation = _inverse_of_rotation(m, basis) if unit == 1 else None
        turned = _turned(rotation or (apply(sympy.cos, angle), apply(sympy.sin, angle)), abs(k))
        total = _compose(total, turned if k > 0 else (turned[0], neg(turned[1])))
    return total


def _turned(rotation: Rotation, k: int) -> Rotation:
    """The rotation k times, by repeated doubling."""
    result: Rotation = constant(1), constant(0)
    while k:
        if k & 1:
            result = _compose(result, rotation)
        k >>= 1
        if k:
            rotation = _compose(rotation, rotation)
    return result


def _inverse_of_rotation(m: Node, basis: Basis) -> Rotation | None:
    """cos and sin of the inverse functions: sin(asin x) = x, tan(atan x) = x."""
    if not isinstance(m.op, Apply):
        return None
    x, one = m.args[0], constant(1)
    square = mul(x, x)
    if m.op.head is sympy.asin:
        return rational_power(sub(one, square), Fraction(1, 2), basis), x
    if m.op.head is sympy.atan:
        over = rational_power(add(one, square), Fraction(-1, 2), basis)
        return over, mul(x, over)
    if m.op.head is sympy.atan2:  # (x, y)/√(x² + y²)
        y, x = m.args
        over = rational_power(add(mul(x, x), mul(y, y)), Fraction(-1, 2), basis)
        return mul(x, over), mul(y, over)
    return None


# ---- signs --------------------------------------------------------------------------------------


def sign(argument: Node, basis: Basis) -> Node:
    """The sign of a node: products split, known signs put in."""

    def of(node: Node) -> Node:
        return broadcast_to(_sign_of_factor(node, basis), node.shape)

    return through(argument, of)


def step(argument: Node, at_zero: Fraction | int, basis: Basis) -> Node:
    """1 where a node is positive, ``at_zero`` where it is 0, and 0 where it is negative."""
    return steps(argument, (at_zero,), basis)[0]


def steps(argument: Node, at_zero: Sequence[Fraction | int], basis: Basis) -> list[Node]:
    """Steps with several values at 0: (1 + s)/2 with the sign s of a node.

    Where s may be 0 on an open set it is (s² + s)/2 + v (1 − s²), with the value v there.
    """
    s, one, half = sign(argument, basis), constant(1), constant(Fraction(1, 2))
    plain = mul(half, add(one, s))
    if basis.may_vanish(argument):
        square = mul(s, s)
        inside, zero = mul(half, add(square, s)), sub(one, square)
        by_value = {v: add(inside, mul(constant(v), zero)) if v else inside for v in at_zero}
    else:
        by_value = dict.fromkeys(at_zero, plain)
    by_value[Fraction(1, 2)] = plain
    return [broadcast_to(by_value[v], argument.shape) for v in at_zero]


def is_zero(argument: Node, basis: Basis) -> Node:
    """1 where a node is 0, and 0 elsewhere: 1 − s², where s is its sign.

    That is 0 for a node that vanishes on no open set. A node of integers, such as i − 37, may vanish at one
    value of i: it is compared with 0 instead.
    """
    if not basis.may_vanish(argument):
        if basis.integers.isdisjoint(topological([argument])):
            return broadcast_to(constant(0), argument.shape)
        return Node.of(Compare("=="), (argument, constant(0)))
    s = sign(argument, basis)
    return broadcast_to(sub(constant(1), mul(s, s)), argument.shape)


def _sign_of_factor(node: Node, basis: Basis) -> Node:
    known = basis.sign(node)
    if known:
        return constant(known)
    if isinstance(node.op, Mul):
        return mul(*[sign(a, basis) for a in node.args])
    if isinstance(node.op, Add):
        if _is_indicator(node):
            return div(node, constant(2))
        known_by = _sign_of_sum(node, basis)
        if known_by is not None:
            return known_by
    exponent = number(node.args[1]) if isinstance(node.op, Pow) else None
    if exponent is not None:
        base = sign(node.args[0], basis)
        return mul(base, base) if exponent.denominator == 1 and exponent % 2 == 0 else base
    if isinstance(node.op, Apply) and node.op.head in (*SIGNS, LooseSign):
        return node
    return apply(basis.sign_head(node), node)


def _sign_of_sum(node: Node, basis: Basis) -> Node | None:
    """The sign of a multiple of one term, or of the difference of one increasing function at two places."""
    if len(node.args) == 1:
        return mul(constant(op_of(node, Add).signs[0]), sign(node.args[0], basis))
    terms = linear_terms(node)
    if len(terms) == 1:
        ((c, m),) = terms
        return mul(constant(1 if c > 0 else -1), sign(m, basis))
    inside = _of_one_increasing(*terms) if len(terms) == 2 else None
    return None if inside is None else sign(sub(*inside), basis)


INCREASING = {sympy.exp, sympy.log, sympy.atan, sympy.asin, sympy.erf, sympy.erfi, sympy.asinh}


def _of_one_increasing(one: tuple[Fraction, Node], other: tuple[Fraction, Node]) -> tuple[Node, Node] | None:
    """u and v of c f(u) − c f(v), with an increasing f: an odd power, or such a function; None for others."""
    (c, a), (d, b) = (one, other) if one[0] > 0 else (other, one)
    (f, u), (g, v) = _as_increasing(a), _as_increasing(b)
    return (u, v) if c == -d and c > 0 and f is not None and f == g else None


def _as_increasing(node: Node) -> tuple[object, Node]:
    """f and u of f(u), of products of exponentials that of the sum; no f where none is known."""
    op = node.op
    if isinstance(op, Pow):
        exponent = number(node.args[1])
        odd = exponent is not None and exponent > 0 and exponent.denominator == 1 and exponent % 2 == 1
        return (exponent if odd else None), node.args[0]
    if isinstance(op, Apply):
        return (op.head if op.head in INCREASING else None), node.args[0]
    parts = [_as_increasing(a) for a in node.args] if isinstance(op, Mul) else []
    if not isinstance(op, Mul) or any(f is not sympy.exp for f, _ in parts):
        return None, node
    return sympy.exp, add(*[u if p == 1 else neg(u) for p, (_, u) in zip(op.powers, parts, strict=True)])


def _is_indicator(node: Node) -> bool:
    """Whether a sum is 1 + s or 1 − s with a sign s = ±1: 0 or 2."""
    one, s = node.args if len(node.args) == 2 else (node, node)
    return number(one) == 1 and isinstance(s.op, Apply) and s.op.head is sympy.sign

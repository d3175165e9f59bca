"""Radii: absolute values, norms of any order, and hypot(u, v); they have no derivative at 0.

A norm is r = q^(1/d) of a sum q = Σ_k w_k Σ |u_k|^(e_k) of powers, the least of which
has the exponent d. Its slopes are made of ratios u/r, which neither overflow nor underflow where q does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf

import numpy as np
import sympy
from sympy.codegen.cfunctions import hypot

from symad.core.dims import size
from symad.core.graph import Node
from symad.core.interning import WeakMemo
from symad.core.questions import Nodes, evaluate
from symad.ops.basic.arithmetic import Add, Mul, add, div, mul
from symad.ops.basic.contraction import Einsum, permute
from symad.ops.basic.shaping import Broadcast, Reshape, Slice, broadcast_axes, reshape
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import SLOPES, Apply, apply
from symad.ops.elementwise.powers import Pow, power, sqrt
from symad.ops.elementwise.selection import equal, select

RADIAL = frozenset((Apply, Pow))
"""The ops of radii and of others."""

Number = int | Fraction | float

MAX_ELEMENTS = 100
"""Sums of more squares are only compared as arrays."""


@dataclass(frozen=True)
class Part:
    """The term w Σ|u|^e of a sum of powers; for other radii u alone."""

    node: Node
    """u."""
    weight: Number = 1
    exponent: Number = 2
    path: Nodes = ()
    """The ops that lead from the powers to the sum: sums along axes, and other shapes."""

    def total(self, terms: Node) -> Node:
        """What the ops make of an array in the shape of u."""
        for step in self.path:
            terms = Node.of(step.op, (terms,))
        return terms

    def spread(self, value: Node) -> Node:
        """An array in the shape of the radius, repeated for all elements of u that it is made of."""
        for step in reversed(self.path if value.shape else ()):
            value = _spread(step, value)
        return value


def _spread(step: Node, value: Node) -> Node:
    to = step.args[0].shape
    if not isinstance(step.op, Einsum):
        return reshape(value, to)
    (labels,), output = step.op.inputs, step.op.output
    kept = [k for k, label in enumerate(labels) if label in output]
    return broadcast_axes(permute(value, [output.index(labels[k]) for k in kept]), to, kept)


# ---- sums of powers -------------------------------------------------------------------------------


def powers_in(node: Node, constants: bool = False) -> list[Part] | None:
    """The terms of a sum of powers; None if a node is no such sum.

    The sum is along axes or term by term, of even powers, powers of absolute values, or ⟨x, x⟩, with positive
    weights. It is not negative, and is 0 only where all terms are. With ``constants`` a positive number w may
    be a term; its part is w·1⁰.
    """
    op, args = node.op, node.args
    value = constant_value(node) if constants else None
    if isinstance(value, (int, float, Fraction)) and 0 < value < inf:
        return [Part(constant(1), value, 0)]
    if isinstance(op, Pow):
        return _of_one_power(*args)
    if isinstance(op, Add):
        terms = [powers_in(a, constants) for a in args] if -1 not in op.signs else [None]
        return None if None in terms else [part for term in terms if term is not None for part in term]
    if isinstance(op, Mul):
        return _of_product(op, args, constants)
    if isinstance(op, Einsum):
        return _of_contraction(op, args)
    found = powers_in(args[0]) if isinstance(op, (Broadcast, Reshape, Slice)) else None
    return None if found is None else [replace(part, path=(*part.path, node)) for part in found]


def _of_one_power(base: Node, raised: Node) -> list[Part] | None:
    """An even power, or a power of an absolute value."""
    exponent = constant_value(raised)
    if type(exponent) not in (int, Fraction, float) or exponent <= 0:
        return None
    even = isinstance(exponent, int) and exponent % 2 == 0
    return [Part(base, 1, exponent)] if even or is_size(base) else None


def _of_product(op: Mul, args: Nodes, constants: bool) -> list[Part] | None:
    """A square, or a sum of powers times positive numbers."""
    weight: Number = 1
    rest = []
    for sign, factor in zip(op.powers, args, strict=True):
        value = constant_value(factor)
        if isinstance(value, (int, float, Fraction)) and value > 0:
            exact = value if isinstance(value, float) else Fraction(value)
            weight = weight * exact if sign == 1 else weight / exact
        else:
            rest.append((sign, factor))
    if len(rest) > 1:
        one = _of_one_base([factor for _, factor in rest]) if all(sign == 1 for sign, _ in rest) else None
        return None if one is None else [replace(one, weight=weight)]
    found = powers_in(rest[0][1], constants) if len(rest) == 1 and rest[0][0] == 1 else None
    return None if found is None else [replace(part, weight=part.weight * weight) for part in found]


def _of_one_base(factors: list[Node]) -> Part | None:
    """u u, and u² |u|, which is how SymPy writes |u|³."""
    exponents: dict[Node, Number] = {}
    for factor in factors:
        raised = constant_value(factor.args[1]) if isinstance(factor.op, Pow) else None
        base, exponent = (factor.args[0], raised) if type(raised) is int else (factor, 1)
        exponents[base] = exponents.get(base, 0) + exponent
    sizes = [base for base in exponents if is_size(base)]
    below = {base.args[0] if is_size(base) else base for base in exponents}
    if len(below) > 1 or any(n % 2 for base, n in exponents.items() if not is_size(base)):
        return None
    total = sum(exponents.values())
    return Part(sizes[0] if sizes else next(iter(below)), 1, total) if total > 0 else None


def _of_contraction(op: Einsum, args: Nodes) -> list[Part] | None:
    """A sum along axes of powers, or of squares."""
    labels = op.inputs[0]
    if len(set(labels)) < len(labels) or not set(op.output) <= set(labels):
        return None
    if len(args) == 2 and args[0] is args[1] and labels == op.inputs[1]:
        squares = power(args[0], constant(2))
        return [Part(args[0], path=(Node.of(Einsum((labels,), op.output), (squares,)),))]
    found = powers_in(args[0]) if len(args) == 1 else None
    if found is None:
        return None
    step = Node.of(op, args)
    return [replace(part, path=(*part.path, step)) for part in found]


def degree(node: Node) -> Number | None:
    """The least exponent of a sum of powers; None if a node is no such sum."""
    found = powers_in(node)
    return None if found is None else min(part.exponent for part in found)


def is_size(node: Node) -> bool:
    """Whether a node is |u|."""
    return isinstance(node.op, Apply) and node.op.head is sympy.Abs


def terms_of(terms: Sequence[Part], like: Node) -> Counter[object]:
    """What a sum of powers is made of, in whatever form; ``like``: an array in its shape, the same for all.

    Sums that are a number are equal if their elements are.
    """
    found: Counter[object] = Counter()
    for part in terms:
        source, places = (part.node, [part.spread(like)]) if like.shape else _elements(part)
        found.update([(source, place, part.weight, part.exponent) for place in places])
    return found


def source_of(u: Node) -> Node:
    """The array of which u has elements."""
    while isinstance(u.op, (Slice, Reshape)):
        u = u.args[0]
    return u


def _elements(part: Part) -> tuple[Node, Sequence[object]]:
    """The array of which u has elements, and their places in it."""
    chosen = any(isinstance(step.op, (Broadcast, Slice)) for step in part.path)
    path, source, inner = list[Node](), source_of(part.node), part.node
    while inner is not source:
        path.append(inner)
        inner = inner.args[0]
    count = size(source.shape)
    if chosen or not isinstance(count, int) or count > MAX_ELEMENTS:
        return part.node, [part.path if chosen else None]
    places = np.arange(count).reshape(source.shape)
    for step in reversed(path):
        places = evaluate(step.op, (places,))
    return source, np.ravel(places).tolist()


# ---- radii ----------------------------------------------------------------------------------------


_PARTS: WeakMemo[Node, tuple[Part, ...]] = WeakMemo()


def parts(node: Node) -> tuple[Part, ...]:
    """What is inside of a radius: u of |u|, u and v of hypot(u, v), the terms of a norm; () for other nodes.

    For hypot(u, v) what is inside of these, too; hypot(1, v) is never 0, and no radius.
    """
    op, args = node.op, node.args
    if isinstance(op, Apply):
        if op.head is hypot and all(constant_value(a) is None for a in args):
            below = [parts(a) if isinstance(a.op, Apply) else () for a in args]
            return tuple([p for a, part in zip(args, below, strict=True) for p in part or (Part(a),)])
        return (Part(args[0]),) if op.head is sympy.Abs else ()
    if not isinstance(op, Pow):
        return ()
    found = _PARTS.get(node)
    if found is None:
        found = _PARTS[node] = _of_root(*args)
    return found


def _of_root(base: Node, exponent: Node) -> tuple[Part, ...]:
    value = constant_value(exponent)
    if type(value) not in (Fraction, float) or not 0 < value < 1:
        return ()
    found = powers_in(base)
    if found is None or Fraction(min(p.exponent for p in found)) * Fraction(value) != 1:
        return ()  # of q**(1/3), too, where 1/3 is a float: slopes by u/r would be those of another function
    one_to_many = any(isinstance(step.op, (Broadcast, Slice)) for part in found for step in part.path)
    return () if one_to_many else tuple(found)


def inside(node: Node) -> Nodes:
    """The values u inside of a radius; () for other nodes."""
    return tuple([part.node for part in parts(node)])


def order_of(radius: Node) -> Number:
    """The order d of a norm; 2 for absolute values and hypot(u, v)."""
    return min(part.exponent for part in parts(radius))


def slopes_of(radius: Node) -> Nodes:
    """Those by what is inside: sign u, u/r and v/r of hypot(u, v), (|u|/r)^(d−1) sign u. All are 0 at 0."""
    if isinstance(radius.op, Apply):
        rule, below = SLOPES[radius.op.head], inside(radius)
        slopes = [rule(radius, below, k) for k in range(len(below))]
        return tuple([slope for slope in slopes if isinstance(slope, Node)])
    beside = add(constant(1), sqrt(radius))  # at 0 it is 1, and has no derivative
    divisor = select(equal(radius, constant(0)), beside, radius)
    return tuple([_ratio(p, p.spread(divisor), order_of(radius)) for p in parts(radius)])


def _ratio(part: Part, r: Node, d: Number) -> Node:
    """(w e/d) |u|^(e−d) (|u|/r)^(d−1) sign u."""
    u = part.node
    signed = is_size(u) or d % 2 == 0
    size = u if signed else apply(sympy.Abs, u)
    if d == 2:
        powered = div(mul(_factor(part, d), size), r)
    else:
        powered = mul(_factor(part, d), power(div(size, r), constant(d - 1)))
    above = [power(size, constant(part.exponent - d))] if part.exponent != d else []
    return mul(powered, *above, *([] if signed else [apply(sympy.sign, u)]))


def half_slope(part: Part) -> Node:
    """Half of the slope of r² by u: w (e/2) u |u|^(e−2)."""
    return mul(_factor(part, 2), power(part.node, constant(part.exponent - 1)))


def _factor(part: Part, d: Number) -> Node:
    """w e/d."""
    return constant(part.weight if part.exponent == d else part.weight * part.exponent / Fraction(d))


def square_of(radius: Node) -> Node:
    """r² for absolute values, hypot(u, v) and norms of order 2."""
    if isinstance(radius.op, Pow):
        return radius.args[0]
    return add(*[mul(u, u) for u in inside(radius)])

"""Logarithms and quotients of positive values that consist of exponentials.

A node is *positive by its exponentials* if it is exp(L) for a known L: exponentials, positive
numbers, products, powers and sums of such nodes, sums over axes, σ and softmax. Its logarithm is L in every
notation, and a quotient of two of them is exp(L₁ − L₂); neither overflows unless the value does. With weights
of any sign, log Σ c exp(L) is log Σ c exp(L − m) + m for the largest L, m, of a weight other than 0.
Source: Blanchard, Higham, Higham, "Accurately computing the log-sum-exp and softmax functions"
(2021), algorithms 3.1 and 3.2, for any number of terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from fractions import Fraction
from typing import Any

import sympy
from sympy.codegen.cfunctions import expm1, log1p

from symad.core.arrays import Number
from symad.core.graph import Node, Op, op_of
from symad.core.questions import Nodes
from symad.ops.arrays.reduction import extreme, keep_axes
from symad.ops.arrays.softmax import Softmax, log_softmax, logsumexp
from symad.ops.basic.arithmetic import Add, Mul, add, div, mul, neg, signed_product, signed_sum, sub
from symad.ops.basic.contraction import Einsum, sum_axes
from symad.ops.basic.shaping import Broadcast, Reshape, Slice, broadcast_to
from symad.ops.basic.sources import Input, constant, constant_value, symbol_of
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow
from symad.ops.elementwise.selection import Select, equal, select
from symad.stable.differences import complement
from symad.stable.normal_forms import Parts, factors_of, head_of, parts_of, terms_of
from symad.stable.overflows import GAMMAS, flat
from symad.stable.rows import EXPONENTIALS_OF, LOGARITHMS_OF, FormulaNode
from symad.stable.shifts import (
    MAX_LEAVES,
    chain,
    chain_without,
    exponential,
)
from symad.sympy_functions.scalar_functions import sigmoid, softplus, stop_gradient, xlogy

DEPTH = 6
"""The maximum depth of products, powers and sums that are examined."""


def of_logarithm(op: Apply, args: Nodes, last: bool) -> Node | None:
    """log x, log(1 + x) and y log x for an x of exponentials, or of tails of the normal distribution.

    These count only if the graph is not differentiated afterwards (``last``): the slopes of their logarithms
    are rows of products.
    """
    inside, heads = args[-1], (*EXPONENTIALS, *SIGNED, *((sympy.erfc,) if last else ()))
    if op.head is log1p:
        known = logarithm_of(inside)
        if known is not None:
            return apply(softplus, known)
        total = add(constant(1), inside)
        made = complement(total)
        return _of_weights(total, last) if made is None else logarithm_of(made)
    if not _holds(inside, heads, DEPTH):
        return None
    known = logarithm(inside) or _of_weights(inside, last)
    return known if known is None or op.head is sympy.log else mul(args[0], known)


def logarithm_of(node: Node) -> Node | None:
    """L if the node is exp(L) and contains an exponential; None otherwise."""
    return logarithm(node) if _holds(node, EXPONENTIALS, DEPTH) else None


def logarithm(node: Node, depth: int = DEPTH) -> Node | None:
    """L if the node is exp(L), through ``depth`` levels; None if L is not known."""
    return _of_positive(node) or (_by_arguments(node, depth - 1) if depth else None)


def _of_positive(node: Node) -> Node | None:
    """The logarithm of a positive number, input or function."""
    value, op = constant_value(node), node.op
    if _is_positive(value):
        return constant(0) if value == 1 else apply(sympy.log, constant(value))
    if isinstance(op, Input) and getattr(symbol_of(node), "is_positive", False):
        return apply(sympy.log, node)
    if type(op) is Softmax:
        return log_softmax(node.args[0], op.axes)
    row = LOGARITHMS_OF.get(head_of(node))
    return None if row is None or row.condition is not None else row.result(FormulaNode(node.args[0])).node


def _by_arguments(node: Node, depth: int) -> Node | None:
    """The logarithm by those of the arguments."""
    rule, args = OF_OPS.get(type(node.op)), node.args
    if rule is None:
        return None
    if type(node.op) is Add:
        args = tuple([a for _, a in parts_of(node, _positive_terms, MAX_LEAVES)])
        if -1 in node.op.signs or len(args) > MAX_LEAVES:
            return None
    elif type(node.op) is Pow:
        args = args[:1]
    elif type(node.op) is Select:
        args = args[1:]
    parts = [logarithm(a, depth) for a in args]
    known = [part for part in parts if part is not None]
    return rule(node, known) if len(known) == len(parts) else None


def _is_positive(value: Number | None) -> bool:
    """Whether a constant is a positive number: 2, 1/10, 0.1, π."""
    if isinstance(value, sympy.Expr):
        return bool(value.is_positive and value.is_finite)
    return isinstance(value, (int, float, Fraction)) and not isinstance(value, bool) and 0 < value < math.inf


def _positive_terms(node: Node) -> Parts | None:
    return terms_of(node) if isinstance(node.op, Add) and -1 not in node.op.signs else None


def _of_sum_over_axes(node: Node, parts: list[Node]) -> Node | None:
    """log Σ exp over some axes."""
    axes = summed_axes(node)
    return None if axes is None else logsumexp(parts[0], axes)


def _placed(node: Node, parts: list[Node]) -> Node:
    return Node.of(node.op, tuple(parts))


OF_OPS: dict[type[Op], Callable[[Node, list[Node]], Node | None]] = {
    Mul: lambda node, parts: signed_sum(list(zip(op_of(node, Mul).powers, parts, strict=True))),
    Pow: lambda node, parts: mul(node.args[1], parts[0]),
    Add: lambda node, parts: chain(_numbers_first(parts)),
    Einsum: _of_sum_over_axes,
    Select: lambda node, parts: select(node.args[0], *parts),
    Broadcast: _placed,
    Reshape: _placed,
    Slice: _placed,
}
"""The logarithm by those of the arguments."""


def _numbers_first(parts: list[Node]) -> list[Node]:
    return sorted(parts, key=lambda part: constant_value(part) is None)


def summed_axes(total: Node) -> tuple[int, ...] | None:
    """The axes of a plain sum over axes that keeps the order of the others; None for other nodes."""
    spec = total.op
    if not isinstance(spec, Einsum) or len(spec.inputs) != 1:
        return None
    (labels,) = spec.inputs
    kept = tuple(label for label in labels if label in spec.output)
    if len(set(labels)) != len(labels) or kept != spec.output:
        return None
    return tuple(k for k, label in enumerate(labels) if label not in spec.output)


def _holds(node: Node, heads: Collection[Any], depth: int) -> bool:
    """True if there is one of these functions, or softmax, where `logarithm` finds it."""
    level, seen = [node], {node}
    for _ in range(depth + 1):
        if any(isinstance(n.op, Softmax) or head_of(n) in heads for n in level):
            return True
        below = [a for n in level if isinstance(n.op, LOOKED_THROUGH) for a in n.args]
        level = [a for a in dict.fromkeys(below) if a not in seen]
        seen.update(level)
    return False


# ---- factors of any sign -------------------------------------------------------------------------


def _of_weights(node: Node, last: bool) -> Node | None:
    """log(c exp(L)) = log c + L, whatever the signs of the factors of c: c is positive where the value is."""
    c, exponent = _weighted(node, DEPTH, last)
    row = LOGARITHMS_OF.get(head_of(c))
    if row is not None:
        return add(row.result(FormulaNode(c.args[0])).node, exponent)
    if c is node:
        return None
    factors = [(power, f, logarithm(f)) for power, f in factors_of(c) or [(1, c)]]
    logs = [(power, known) for power, _, known in factors if known is not None]
    rest = signed_product([(power, f) for power, f, known in factors if known is None])
    return signed_sum([(1, _log(rest, exponent)), *logs, (1, exponent)])


def _log(c: Node, largest: Node) -> Node:
    """log c; a sum with the term exp(−m) is 1 + r with expm1(−m) in r, and its logarithm is log1p(r)."""
    below = neg(largest)
    terms, one = terms_of(c), (1, apply(sympy.exp, below))
    if one not in terms:
        return apply(sympy.log, c)
    terms[terms.index(one)] = 1, apply(expm1, below)
    return apply(log1p, signed_sum(terms))


def guarded_product(op: Mul, args: Nodes) -> Node | None:
    """A product of exp(L − m) and other factors: 0 where these are 0, for L may be larger than m there."""
    rest = [(power, f) for power, f in zip(op.powers, args, strict=True) if not _has_shift(f)]
    if len(rest) == len(args) or all(power == -1 or constant_value(f) is not None for power, f in rest):
        return None
    made = Node.of(op, args)
    return broadcast_to(select(equal(signed_product(rest), constant(0)), constant(0), made), made.shape)


def _weighted(node: Node, depth: int, last: bool) -> tuple[Node, Node]:
    """c and L of a value c exp(L); L is 0 where no exponential is found."""
    known = logarithm_of(node)
    if known is not None:
        return constant(1), known
    if depth and isinstance(node.op, Add) and len(node.args) > 1:
        one = complement(node)
        if one is not None:
            return _weighted(one, depth, last)
        return _of_terms(node, depth - 1, last) or (node, constant(0))
    found = _by_parts(node, depth - 1, last) if depth else None
    return (node, constant(0)) if found is None or constant_value(found[1]) == 0 else found


def _by_parts(node: Node, depth: int, last: bool) -> tuple[Node, Node] | None:
    """c and L by those of the arguments of a product, a sum over axes, or a node that moves elements."""
    op, axes = node.op, summed_axes(node)
    if isinstance(op, (Broadcast, Reshape, Slice)):
        c, exponent = _weighted(node.args[0], depth, last)
        return _repeated(node, c), _repeated(node, exponent)
    if isinstance(op, Add):
        c, exponent = _weighted(node.args[0], depth, last)
        return signed_sum([(op.signs[0], c)]), exponent
    if isinstance(op, Mul) and not any([head_of(f) in GAMMAS for _, f in flat(node) or ()]):
        parts = [_weighted(_with_exponential(a), depth, last) for a in node.args]
        weights, exponents = [list(zip(op.powers, part, strict=True)) for part in zip(*parts, strict=True)]
        return signed_product(weights), signed_sum(exponents)
    return _of_elements(node, axes, depth, last) if axes else None


def _repeated(node: Node, part: Node) -> Node:
    """A part of the argument in its place; a number for all elements stays one."""
    return part if not part.shape else _placed(node, [part])


def _with_exponential(f: Node) -> Node:
    """A hyperbolic sine, or exp(u) − 1, as a sign times an exponential."""
    row = EXPONENTIALS_OF.get(head_of(f))
    return f if row is None else row.result(FormulaNode(f.args[0])).node


def _of_terms(node: Node, depth: int, last: bool) -> tuple[Node, Node] | None:
    """c and L of a sum: Σ c exp(L − m) and the largest L with a weight other than 0, m."""
    listed = parts_of(node, lambda part: terms_of(part) if isinstance(part.op, Add) else None, MAX_LEAVES)
    if len(listed) > MAX_LEAVES:
        return None
    terms = [(sign, *_weighted(term, depth, last)) for sign, term in listed]
    if len(terms) == 2 and all(constant_value(c) == 1 for _, c, _ in terms):
        (sign, _, a), (_, _, b) = terms
        return (neg(apply(expm1, sub(b, a))), a) if sign == 1 else (neg(apply(expm1, sub(a, b))), b)
    exponents = [exponent for *_, exponent in terms if constant_value(exponent) != 0]
    if not exponents or any(map(_has_shift, exponents)):
        return None
    largest = _largest([_of_weight(c, exponent) for _, c, exponent in terms])
    return signed_sum([(s, _times_exponential(c, sub(e, largest), last)) for s, c, e in terms]), largest


def _of_elements(node: Node, axes: tuple[int, ...], depth: int, last: bool) -> tuple[Node, Node] | None:
    """c and L of a sum over axes."""
    (inside,) = node.args
    c, exponent = _weighted(inside, depth, last)
    if constant_value(exponent) == 0 or _has_shift(exponent):
        return None
    largest = _largest([extreme("max", broadcast_to(_of_weight(c, exponent), inside.shape), axes)])
    below = sub(exponent, keep_axes(largest, inside.shape, axes))
    return sum_axes(_times_exponential(c, below, last), axes), largest


def _of_weight(c: Node, exponent: Node) -> Node:
    """The exponent where the weight is not 0."""
    return select(equal(c, constant(0)), LEAST, exponent)


def _largest(exponents: list[Node]) -> Node:
    """The largest exponent m. It counts as constant, because the value does not depend on m."""
    return apply(stop_gradient, apply(sympy.Max, LEAST, *exponents))


def _times_exponential(c: Node, exponent: Node, last: bool) -> Node:
    made = mul(c, apply(sympy.exp, exponent))
    return (guarded_product(made.op, made.args) if last and isinstance(made.op, Mul) else None) or made


def _has_shift(node: Node, depth: int = DEPTH) -> bool:
    """Whether a maximum is subtracted in an exponent, or in an exponential."""
    if depth and (isinstance(node.op, (Broadcast, Reshape, Add, Pow)) or head_of(node) is sympy.exp):
        return any([_has_shift(a, depth - 1) for a in node.args])
    return head_of(node) is stop_gradient


LEAST = constant(-(10**38))
"""A finite logarithm in single precision."""

LOGARITHMS = (sympy.log, log1p, xlogy)
SIGNED = tuple([f for f, row in LOGARITHMS_OF.items() if row.condition is not None])
EXPONENTIALS = (sympy.exp, sigmoid, sympy.cosh, expm1)
LOOKED_THROUGH = (Broadcast, Reshape, Slice, Mul, Pow, Add, Einsum, Select)


# ---- differences and quotients -------------------------------------------------------------------


def quotient(factors: list[tuple[int, Node]]) -> Node | None:
    """A product with an exponential sum as a divisor: σ, softmax, or exp of a difference of logarithms."""
    for k, (power, divisor) in enumerate(factors):
        under = logarithm_of(divisor) if power == -1 and _is_sum(divisor) else None
        if under is None:
            continue
        others = [pair for f in (*factors[:k], *factors[k + 1 :]) for pair in _signed_factors(*f)]
        found = next((f for p, f in others if p == 1 and _is_over(f, divisor)), None)
        if found is None and not _is_elementwise(divisor):
            continue
        signs, size = ([], constant(0)) if found is None else _sign_and_size(found)
        rest = [(p, f) for p, f in others if not (p == 1 and f is found)]
        return signed_product([*rest, *signs, (1, _exponential_of(size, divisor, under))])
    return None


def _signed_factors(power: int, factor: Node) -> list[tuple[int, Node]]:
    """The factors of a product with a hyperbolic sine, and elements of exp(x) as exp of them."""
    if isinstance(factor.op, (Slice, Reshape)):
        known = logarithm_of(factor)
        return [(power, factor if known is None else apply(sympy.exp, known))]
    if any(head_of(a) is sympy.sinh for a in factor.args):
        return [(power * p, a) for p, a in factors_of(factor) or [(1, factor)]]
    return [(power, factor)]


def _sign_and_size(f: Node) -> tuple[list[tuple[int, Node]], Node]:
    """The other factors and L of a function that is their product with exp(L) by its row."""
    made = _with_exponential(f)
    *signs, exponential = made.args if isinstance(made.op, Mul) else (made,)
    return [(1, sign) for sign in signs], exponential.args[0]


def _is_over(f: Node, divisor: Node) -> bool:
    """Whether a factor is taken together with a sum of exponentials as a divisor."""
    return head_of(f) is sympy.exp or (head_of(f) in EXPONENTIALS_OF and _is_elementwise(divisor))


def _is_sum(node: Node) -> bool:
    """True if the node is a sum of exponentials, one that is repeated, or a power of one."""
    if isinstance(node.op, (Broadcast, Reshape, Pow)):
        return _is_sum(node.args[0])
    if isinstance(node.op, Add):
        return -1 not in node.op.signs
    return summed_axes(node) is not None


def _is_elementwise(node: Node) -> bool:
    """True if a sum adds its arguments, and not elements along axes of an array."""
    return isinstance(node.op, Add) or (isinstance(node.op, Pow) and isinstance(node.args[0].op, Add))


def _minus(u: Node, v: Node) -> Node:
    """The difference u − v; 0 − (−a − b) is a + b."""
    if constant_value(u) == 0 and isinstance(v.op, Add) and set(v.op.signs) == {-1}:
        return add(*v.args)
    return sub(u, v)


def _exponential_of(u: Node, divisor: Node, under: Node) -> Node:
    """exp(u)/divisor, the divisor exp(under)."""
    if u is under:
        return constant(1)
    if isinstance(divisor.op, Add):
        parts = [part for a in divisor.args if (part := logarithm(a)) is not None]
        for part in parts:
            number = _number_beside(part, u)
            if number is not None:
                parts = _numbers_first(parts)
                made = apply(sigmoid, _minus(part, chain_without(parts, parts.index(part))))
                return div(made, number)
    return exponential(sub(u, under))


def _number_beside(part: Node, u: Node) -> Node | None:
    """The number c if the part is u + log(c)."""
    if part is u:
        return constant(1)
    terms = part.args if isinstance(part.op, Add) and part.op.signs == (1, 1) else ()
    found = [t.args[0] for t, other in zip(terms, terms[::-1], strict=True) if other is u and t.args]
    known = found and head_of(next(t for t in terms if t is not u)) is sympy.log
    return found[0] if known and constant_value(found[0]) is not None else None

"""Logarithms and quotients of positive values that consist of exponentials.

A node is *positive by its exponentials* if it is exp(L) for a known L: exponentials, positive
numbers, products, powers and sums of such nodes, sums over axes, σ and softmax. Its logarithm is L in every
notation, and a quotient of two of them is exp(L₁ − L₂); neither overflows unless the value does.
Source: Blanchard, Higham, Higham, "Accurately computing the log-sum-exp and softmax functions"
(2021), algorithms 3.1 and 3.2, for any number of terms.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import sympy
from sympy.codegen.cfunctions import expm1, log1p
from sympy.codegen.numpy_nodes import logaddexp

from symad.core.graph import Node, Op, rebuild, topological
from symad.core.questions import Nodes, question
from symad.ops.arrays.softmax import LogSoftmax, LogSumExp, Softmax, log_softmax, logsumexp
from symad.ops.basic.arithmetic import Add, Mul, add, mul, neg, signed_product, signed_sum, sub
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast, Reshape, Slice
from symad.ops.basic.sources import constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.ops.elementwise.powers import Pow, sqrt
from symad.stable.normal_forms import Forms, product
from symad.stable.rows import Rows, complement
from symad.stable.shifts import (
    MAX_LEAVES,
    chain,
    chain_without,
    of_unshifted,
    without_logarithm,
    without_shift,
)
from symad.sympy_functions.probability import log_ndtr
from symad.sympy_functions.scalar_functions import logcosh, sigmoid, softplus, xlogy

if TYPE_CHECKING:
    Logarithm = Node | None
else:  # plum dispatches on the op alone
    Logarithm = Any

DEPTH = 6
"""The maximum depth of products, powers and sums that are examined."""


def smooth(outputs: Sequence[Node], kept: Collection[Node] = ()) -> tuple[tuple[Node, ...], list[Node]]:
    """The outputs with their logarithms and quotients of exponentials in forms whose derivatives are stable.

    The second result is all nodes of these outputs, arguments first.

    Args:
        outputs: nodes that are to be differentiated.
        kept: nodes that stay unchanged, with all nodes below them.
    """
    order = topological(outputs)
    if not any(map(_may_change, order)):
        return tuple(outputs), order
    rows = Rows(last=False)
    made = rebuild(outputs, {n: n for n in order if n in kept or not n.args}, partial(smooth_node, rows=rows))
    return made, order if made == tuple(outputs) else topological(made)


def smooth_node(node: Node, args: Nodes, rows: Rows) -> Node:
    """The node with new arguments, in its stable form."""
    made = of_exponentials(node.op, args)
    if made is None:
        made = node if args == node.args else Node.of(node.op, args)
    return rows.better(made)


def of_exponentials(op: Op, args: Nodes, last: bool = False) -> Node | None:
    """The stable form of a logarithm, difference or quotient of exponentials; None for other nodes.

    ``last``: whether the graph is not differentiated afterwards. Tails of the normal distribution count as
    exponentials only then: the slopes of their logarithms are rows of products.
    """
    if isinstance(op, Apply) and op.head in LOGARITHMS:
        return _of_logarithm(op, args, (*SIGNED, sympy.erfc) if last else SIGNED)
    if isinstance(op, Add):
        return without_logarithm(op, args)
    if isinstance(op, Mul) and -1 in op.powers:
        return _quotient(list(zip(op.powers, args, strict=True)))
    return without_shift(op, args)


def _of_logarithm(op: Apply, args: Nodes, heads: Collection[Any]) -> Node | None:
    """log x, log(1 + x) and y log x for an x of exponentials, or of tails of the normal distribution."""
    inside = args[-1]
    if op.head is log1p:
        known = logarithm_of(inside)
        if known is not None:
            return apply(softplus, known)
        made = complement(add(constant(1), inside))
        return None if made is None else logarithm_of(made)
    if _holds(inside, heads, DEPTH):
        known = logarithm(inside.op, inside, DEPTH) or _logarithm_of_signed(inside, DEPTH)
        return known if known is None or op.head is sympy.log else mul(args[0], known)
    return None


def logarithm_of(node: Node) -> Node | None:
    """L if the node is exp(L) and contains an exponential; None otherwise."""
    return logarithm(node.op, node, DEPTH) if _holds(node, EXPONENTIALS, DEPTH) else None


def _logarithm_of_signed(node: Node, depth: int) -> Node | None:
    """The logarithm of exp a − exp b, also times positive values; NaN where the value is negative.

    Only for the whole operand: a term of a sum, a base or a second factor may be negative if the whole is
    positive.
    """
    if not depth:
        return None
    if isinstance(node.op, (Broadcast, Reshape, Slice)):
        inner = _logarithm_of_signed(node.args[0], depth - 1)
        return None if inner is None else Node.of(node.op, (inner,))
    if _head(node) is expm1:
        return _of_difference(node.args[0], constant(0))
    made = complement(node)
    if made is not None:
        return logarithm(made.op, made, depth - 1)
    if isinstance(node.op, Add) and sorted(node.op.signs) == [-1, 1] and _holds(node, EXPONENTIALS, depth):
        parts = _each(node, depth)
        if parts is None:
            return None
        return _of_difference(*(parts if node.op.signs == (1, -1) else parts[::-1]))
    if isinstance(node.op, Mul):
        known = [logarithm(a.op, a, depth - 1) for a in node.args]
        if known.count(None) == 1:
            k = known.index(None)
            known[k] = _logarithm_of_signed(node.args[k], depth - 1)
        found = [part for part in known if part is not None]
        if len(found) == len(known):
            return signed_sum(list(zip(node.op.powers, found, strict=True)))
    return None


@question
def logarithm(op: Op, node: Node, depth: int) -> Any:
    """L if the node is exp(L), through ``depth`` levels; None if L is not known."""


@logarithm.dispatch
def unknown_logarithm(op: Op, node: Node, depth: int) -> Logarithm:
    """L of a positive number; None for other values."""
    value = constant_value(node)
    if isinstance(value, (int, Fraction)) and not isinstance(value, bool) and value > 0:
        return constant(0) if value == 1 else apply(sympy.log, constant(value))
    return None


@logarithm.dispatch
def apply_logarithm(op: Apply, node: Node, depth: int) -> Logarithm:
    """exp(u), σ(u) = 1/(1 + exp(−u)), cosh(u), and erfc(u) = 2 Φ(−√2 u)."""
    u = node.args[0]
    if op.head is sympy.exp:
        return u
    if op.head is sigmoid:
        return neg(apply(softplus, neg(u)))
    if op.head is sympy.cosh:
        return apply(logcosh, u)
    if op.head is sympy.erfc:
        scaled = product(*Forms().monomial(neg(mul(sqrt(constant(2)), u))))  # √2/√2 is 1
        return add(apply(sympy.log, constant(2)), apply(log_ndtr, scaled))
    return None


@logarithm.dispatch
def softmax_logarithm(op: Softmax, node: Node, depth: int) -> Logarithm:
    """log p."""
    return log_softmax(node.args[0], op.axes)


@logarithm.dispatch
def broadcast_logarithm(op: Broadcast, node: Node, depth: int) -> Logarithm:
    """L of the repeated value, repeated."""
    return _below(node, depth)


@logarithm.dispatch
def reshape_logarithm(op: Reshape, node: Node, depth: int) -> Logarithm:
    """L of the array, reshaped."""
    return _below(node, depth)


@logarithm.dispatch
def slice_logarithm(op: Slice, node: Node, depth: int) -> Logarithm:
    """The same part of L."""
    return _below(node, depth)


def _below(node: Node, depth: int) -> Node | None:
    inner = logarithm(node.args[0].op, node.args[0], depth - 1) if depth else None
    return None if inner is None else Node.of(node.op, (inner,))


def _each(node: Node, depth: int) -> list[Node] | None:
    """L of all arguments; None if one is not known."""
    parts: list[Node | None] = [logarithm(a.op, a, depth - 1) for a in node.args] if depth else [None]
    known = [part for part in parts if part is not None]
    return known if len(known) == len(parts) else None


@logarithm.dispatch
def mul_logarithm(op: Mul, node: Node, depth: int) -> Logarithm:
    """Σ ± L of the factors."""
    parts = _each(node, depth)
    return None if parts is None else signed_sum(list(zip(op.powers, parts, strict=True)))


@logarithm.dispatch
def pow_logarithm(op: Pow, node: Node, depth: int) -> Logarithm:
    """The exponent times L of the base."""
    base = logarithm(node.args[0].op, node.args[0], depth - 1) if depth else None
    return None if base is None else mul(node.args[1], base)


@logarithm.dispatch
def add_logarithm(op: Add, node: Node, depth: int) -> Logarithm:
    """log(exp a + exp b + ...)."""
    parts = None if -1 in op.signs else _each(node, depth)
    if parts is None or len(parts) > MAX_LEAVES:
        return None
    return chain(_numbers_first(parts))


def _numbers_first(parts: list[Node]) -> list[Node]:
    return sorted(parts, key=lambda part: constant_value(part) is None)


def _of_difference(a: Node, b: Node) -> Node:
    """log(exp a − exp b) = a + log(1 − exp(b − a)), a > b: exact at a = b as well as far above."""
    return signed_sum([(1, a), (1, apply(sympy.log, neg(apply(expm1, sub(b, a)))))])


@logarithm.dispatch
def einsum_logarithm(op: Einsum, node: Node, depth: int) -> Logarithm:
    """log Σ exp over some axes."""
    axes = summed_axes(node)
    inner = logarithm(node.args[0].op, node.args[0], depth - 1) if depth and axes is not None else None
    return None if inner is None else logsumexp(inner, axes)


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
        if any(isinstance(n.op, Softmax) or _head(n) in heads for n in level):
            return True
        below = [a for n in level if isinstance(n.op, LOOKED_THROUGH) for a in n.args]
        level = [a for a in dict.fromkeys(below) if a not in seen]
        seen.update(level)
    return False


LOGARITHMS = (sympy.log, log1p, xlogy)
SUMS = (logaddexp, softplus)
EXPONENTIALS = (sympy.exp, sigmoid, sympy.cosh, expm1)
SIGNED = (*EXPONENTIALS, sympy.tanh)
LOOKED_THROUGH = (Broadcast, Reshape, Slice, Mul, Pow, Add, Einsum)


def _head(node: Node) -> Any:
    return node.op.head if isinstance(node.op, Apply) else None


def _sums(op: Op) -> bool:
    return isinstance(op, (Softmax, LogSoftmax, LogSumExp))


def _divides(op: Op) -> bool:
    return isinstance(op, Mul) and -1 in op.powers


def _may_change(node: Node) -> bool:
    """Whether a node may have a stable form."""
    return _head(node) in (*LOGARITHMS, *SUMS) or _divides(node.op) or _sums(node.op) or _cancels(node)


def _cancels(node: Node) -> bool:
    """Whether a sum may have a stable form: terms that are functions have opposite signs."""
    signs = node.op.signs if isinstance(node.op, Add) else ()
    return len(set(signs)) == 2 and any([isinstance(a.op, (Apply, Mul, Pow)) for a in node.args])


# ---- differences and quotients -------------------------------------------------------------------


def _repeated(total: Node, inner: Node, axes: tuple[int, ...]) -> bool:
    """True if each value of ``total`` is repeated along the axes of its sum."""
    kept = tuple(k for k in range(len(inner.args[0].shape)) if k not in axes)
    return total.op.axes == kept if isinstance(total.op, Broadcast) else not kept


def _quotient(factors: list[tuple[int, Node]]) -> Node | None:
    """A product with an exponential sum as a divisor: σ, softmax, or exp of a difference of logarithms."""
    for k, (power, divisor) in enumerate(factors):
        if power != -1 or not _is_sum(divisor):
            continue
        under = logarithm_of(divisor)
        if under is None:
            continue
        others = [*factors[:k], *factors[k + 1 :]]
        over = [f for p, f in others if p == 1 and _head(f) is sympy.exp]
        rest = [(p, f) for p, f in others if not (p == 1 and f in over[:1])]
        if not over and not _is_elementwise(divisor):
            continue
        u = over[0].args[0] if over else constant(0)
        return signed_product([*rest, (1, _exponential_of(u, divisor, under))])
    return None


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


def _exponential_of(u: Node, divisor: Node, under: Node) -> Node:
    """exp(u)/divisor, the divisor exp(under)."""
    inner = divisor.args[0] if isinstance(divisor.op, Broadcast) else divisor
    axes = summed_axes(inner)
    if axes is not None and _head(inner.args[0]) is sympy.exp:
        x = inner.args[0].args[0]
        if x is u and _repeated(divisor, inner, axes):
            return of_unshifted(Softmax(axes), x)
    if isinstance(divisor.op, Add):
        parts = [part for a in divisor.args if (part := logarithm(a.op, a, DEPTH)) is not None]
        if u in parts:
            parts = _numbers_first(parts)
            return apply(sigmoid, sub(u, chain_without(parts, parts.index(u))))
    return apply(sympy.exp, sub(u, under))

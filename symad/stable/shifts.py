"""Shifts of softmax and logarithms of sums, and their differences with one of the terms.

Softmax and log-softmax do not change if a number c is added to all elements along their axes, and
log Σ exp(x + c) = log Σ exp(x) + c. Programs subtract the maximum by hand; it would be differentiated. The
difference of log Σ exp(x) and one x_k has the slope p_k − 1, which keeps no digit where p_k is almost 1; as
log-softmax, or as log(1 + Σ exp(x_j − x_k)) over the others, it is a sum of their probabilities.
"""

from __future__ import annotations

import numpy as np
import sympy
from sympy.codegen.numpy_nodes import logaddexp

from symad.core.dims import Dim, same_dim, same_shape
from symad.core.graph import Node, Op, op_of, rebuild
from symad.core.nodes import Moved
from symad.core.questions import Nodes
from symad.ops.arrays.gathering import Gather
from symad.ops.arrays.positions import Positions
from symad.ops.arrays.softmax import LogSoftmax, LogSumExp, Softmax, logsumexp
from symad.ops.basic.arithmetic import Add, ElementwiseOp, mul, neg, signed_sum, sub
from symad.ops.basic.shaping import Broadcast, Reshape, Slice
from symad.ops.basic.sources import ArrayConstant, Iota, constant, constant_value
from symad.ops.elementwise.apply import Apply, apply
from symad.stable.normal_forms import Part, Parts, head_of, parts_of, terms_of
from symad.sympy_functions.scalar_functions import logcosh, softplus

MAY_HOLD = (Apply, Broadcast, Reshape, LogSumExp)
"""The ops of logarithms of sums, and of their places in larger arrays."""

DEPTH = 6
"""The maximum depth of shifts and of selections of elements that are examined."""

MAX_LEAVES = 64
"""The maximum number of terms of a logarithm that is written as a chain."""


def without_shift(op: Op, args: Nodes) -> Node | None:
    """Softmax and log-softmax of x + c as those of x, c constant along their axes; None for other nodes."""
    if not isinstance(op, (Softmax, LogSoftmax)) or not isinstance(args[0].op, Add):
        return None
    terms = terms_of(args[0])
    kept = [(sign, term) for sign, term in terms if not _is_constant(term, op.axes, DEPTH)]
    if not kept or len(kept) == len(terms):
        return None
    moved = signed_sum(kept)
    return Node.of(op, (moved,)) if moved.shape == args[0].shape else None


def of_unshifted(op: Softmax | LogSoftmax, x: Node) -> Node:
    """Softmax or log-softmax of x, without a shift."""
    return without_shift(op, (x,)) or Node.of(op, (x,))


def without_logarithm(op: Op, args: Nodes) -> Node | None:
    """A sum with log Σ exp(x) and a term x_k of the other sign, or the shift of x; None for other nodes."""
    if not isinstance(op, Add):
        return None
    terms = list(zip(op.signs, args, strict=True))
    if not any([type(a.op) in MAY_HOLD and _is_logarithm(a) for a in args]):
        inside = [a for a in args if type(a.op) is Add]
        if not any([head_of(t) is logcosh for a in inside for t in a.args]):
            return None
        terms = [(s * k, t) for s, arg in terms for k, t in terms_of(arg)]
    for k, (sign, total) in enumerate(terms):
        for j, (other_sign, other) in enumerate(terms):
            if j != k and _is_logarithm(total):
                made = _pair(total, other, other_sign * sign)
                if made is not None:
                    rest = [term for i, term in enumerate(terms) if i not in (j, k)]
                    return signed_sum([*rest, (sign * made[0], made[1])])
    return None


def _is_logarithm(node: Node) -> bool:
    return _is_chain(node) or head_of(node) is logcosh or isinstance(_inside(node)[0].op, LogSumExp)


def _pair(total: Node, other: Node, sign: int) -> Part | None:
    """total ± other in another form, with a sign; None if there is none."""
    if head_of(total) is logcosh:  # log(exp(u) + exp(−u)) − log 2
        near = sign == -1 and other is apply(sympy.Abs, total.args[0])
        two = constant(2)
        made = sub(apply(softplus, neg(mul(two, other))), apply(sympy.log, two)) if near else None
        return None if made is None else (1, made)
    if _is_chain(total):
        leaves = _leaves(total)
        if sign == -1 and len(leaves) == 2 and _is_largest(other, leaves):
            return 1, apply(softplus, neg(apply(sympy.Abs, sub(*leaves))))
        leaf = other if sign == -1 else neg(other)
        if leaf not in leaves or len(leaves) > MAX_LEAVES:
            return None
        return 1, apply(softplus, sub(chain_without(leaves, leaves.index(leaf)), leaf))
    inner, places = _inside(total)
    x, axes = inner.args[0], op_of(inner, LogSumExp).axes
    if sign == -1:
        path = _path(other, x)
        if path is not None and _in_the_same_rows(path, total, inner, places):
            made = of_unshifted(LogSoftmax(axes), x)
            for node in reversed(path):
                made = Node.of(node.op, (made, *node.args[1:]))
            return -1, made
    return _unshifted(total, inner, other, sign)


def exponential(u: Node) -> Node:
    """exp(u), of elements of a log-softmax those of the softmax: their slopes do not cancel."""
    path = signed_sum([(s * k, t) for s, arg in terms_of(u) for k, t in terms_of(arg)])
    while (made := without_logarithm(path.op, path.args)) is not None:
        path = made
    source = path
    while isinstance(source.op, (Slice, Reshape, Gather)):
        source = source.args[0]
    if not isinstance(source.op, LogSoftmax) or not same_shape(path.shape, u.shape):
        return apply(sympy.exp, u)
    return rebuild((path,), {source: of_unshifted(Softmax(source.op.axes), source.args[0])})[0]


def _is_largest(node: Node, leaves: list[Node]) -> bool:
    """True for the larger of two terms, or |u| for u and −u."""
    if head_of(node) is sympy.Max:
        return set(node.args) == set(leaves)
    return head_of(node) is sympy.Abs and set(leaves) == {node.args[0], neg(node.args[0])}


# ---- shifts ---------------------------------------------------------------------------------------


def _is_constant(node: Node, axes: tuple[int, ...], depth: int) -> bool:
    """True if a node has equal elements along some axes, by its form."""
    if not node.shape:
        return True
    if isinstance(node.op, Broadcast):
        return set(axes).isdisjoint(node.op.axes)
    if depth and isinstance(node.op, ElementwiseOp):
        return all(_is_constant(arg, axes, depth - 1) for arg in node.args)
    return False


def _unshifted(total: Node, inner: Node, other: Node, sign: int) -> Part | None:
    """log Σ exp(x) for log Σ exp(x + c) − c."""
    x, axes = inner.args[0], op_of(inner, LogSumExp).axes
    terms, source = terms_of(x), _inside(other)[0]
    for k, (shift_sign, shift) in enumerate(terms):
        known = _is_constant(shift, axes, 0) and len(terms) > 1 and sign == -shift_sign
        if known and _inside(shift)[0] is source and source.shape in ((), inner.shape):
            if other.shape != total.shape and other.shape:
                continue
            moved = signed_sum(terms[:k] + terms[k + 1 :])
            if moved.shape == x.shape:
                return 1, rebuild((total,), {inner: logsumexp(moved, axes)})[0]
    return None


def _inside(node: Node) -> tuple[Node, list[int | None]]:
    """The array that a node repeats along new axes, and where its axes are; None for an axis of length 1."""
    places: list[int | None] = list(range(len(node.shape)))
    while node.op.moves is Moved.IN_ORDER:
        (below,) = node.args
        if isinstance(node.op, Broadcast):
            places = [places[k] for k in node.op.axes]
        else:
            long = [k for k, dim in enumerate(node.shape) if dim != 1]
            if not same_shape([node.shape[k] for k in long], [dim for dim in below.shape if dim != 1]):
                break
            rest = iter(long)
            places = [None if dim == 1 else places[next(rest)] for dim in below.shape]
        node = below
    return node, places


# ---- elements -------------------------------------------------------------------------------------


def _path(node: Node, x: Node) -> list[Node] | None:
    """The selections of elements that lead from x to a node, the last one first; None if others do."""
    path: list[Node] = []
    while node is not x:
        if not isinstance(node.op, (Slice, Reshape, Gather)) or len(path) == DEPTH:
            return None
        path.append(node)
        node = node.args[0]
    return path


def _in_the_same_rows(path: list[Node], total: Node, inner: Node, places: list[int | None]) -> bool:
    """True if each element that a path selects is one of those whose sum stands at its place in ``total``."""
    x, axes = inner.args[0], op_of(inner, LogSumExp).axes
    kept = [k for k in range(len(x.shape)) if k not in axes]
    if not kept:
        return True
    if not path:
        return all(place in (k, None) for place, k in zip(places, kept, strict=True))
    if places != [*range(len(kept))] or not same_shape(total.shape, inner.shape):
        return False
    found = [node for node in path if not isinstance(node.op, Reshape)]
    if len(found) != 1:
        return False
    (node,) = found
    if not isinstance(node.op, Slice):
        return _reads_each_row(node.args[1], inner, kept)
    if node.args[0] is not x:
        return False
    whole = all(node.op.step[k] == 1 and same_dim(node.shape[k], x.shape[k]) for k in kept)
    return whole and all(node.shape[k] == 1 for k in axes)


def _reads_each_row(read: Node, inner: Node, kept: list[int]) -> bool:
    """True if a gather reads one element from each row, in order."""
    x = inner.args[0]
    if isinstance(read.op, ArrayConstant) and all(isinstance(dim, int) for dim in x.shape):
        places_of_all = np.unravel_index(read.op.array.ravel(), x.shape)
        rows = [places_of_all[k] for k in kept]
        return np.array_equal(rows, np.indices(inner.shape).reshape(len(kept), -1))
    full = isinstance(read.op, Positions) and read.op.axes == tuple(range(len(x.shape)))
    return full and len(kept) == 1 and _counts(read.args[kept[0]], x.shape[kept[0]])


def _counts(node: Node, size: Dim) -> bool:
    """True for the numbers 0, 1, 2, ... below a size."""
    while isinstance(node.op, Reshape):
        node = node.args[0]
    if isinstance(node.op, Iota):
        return same_dim(node.op.size, size)
    if not isinstance(node.op, ArrayConstant) or not isinstance(size, int):
        return False
    return np.array_equal(node.op.array.ravel(), np.arange(size))


# ---- chains of terms ------------------------------------------------------------------------------


def _is_chain(node: Node) -> bool:
    """True for log(exp a + exp b) and log(1 + exp b)."""
    return head_of(node) in (logaddexp, softplus)


def _leaves(node: Node) -> list[Node]:
    """The terms of a chain, in order: log Σ exp of them is the node."""
    return [leaf for _, leaf in parts_of(node, _links, MAX_LEAVES)]


def _links(node: Node) -> Parts | None:
    if not _is_chain(node):
        return None
    return [(1, a) for a in (node.args if len(node.args) == 2 else (constant(0), *node.args))]


def log_add_exp(a: Node, b: Node) -> Node:
    """log(exp a + exp b)."""
    return apply(softplus, b) if constant_value(a) == 0 else apply(logaddexp, a, b)


def chain(parts: list[Node]) -> Node:
    """log Σ exp of the parts, from the left."""
    total = parts[0]
    for part in parts[1:]:
        total = log_add_exp(total, part)
    return total


def chain_without(parts: list[Node], k: int) -> Node:
    """log Σ exp of all parts but one; the sums of the first and of the last are shared by all k."""
    before, after = parts[:k], parts[k + 1 :]
    if not after:
        return chain(before)
    last = after[-1]
    for part in reversed(after[:-1]):
        last = log_add_exp(part, last)
    return log_add_exp(chain(before), last) if before else last

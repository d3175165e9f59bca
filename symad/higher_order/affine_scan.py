"""Affine recurrences h_t = a_t h_{t−1} + b_t, for all t at once, in logarithmic depth.

Two steps combine to one step: (a', b') after (a, b) is (a' a, a' b + b'). The combination is associative.
So neighbors are combined in pairs, the recurrence of half the length is solved, and the steps in
between are filled in (Blelloch 1990, "Prefix sums and their applications", sections 1.3 and 1.4.1).
The work is O(T), the depth O(log T), and no step is a separate statement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symad.core.dims import Shape, format_shape, plus, same_dim, same_shape, size
from symad.core.graph import ZERO, Node, Op, shape
from symad.core.questions import (
    Array,
    Count,
    Flags,
    Nodes,
    Tangent,
    Tangents,
    Values,
    batch,
    definition,
    evaluate,
    flops,
    jvp,
    transpose,
)
from symad.errors import ShapeError
from symad.higher_order.scan import backwards, scan, swapped
from symad.ops.arrays.stacking import concatenate, take
from symad.ops.basic.arithmetic import add, add_tangents, mul
from symad.ops.basic.contraction import matmul, matrix_transpose
from symad.ops.basic.shaping import broadcast_to, lift, reshape, slice_axis
from symad.ops.basic.sources import constant


@dataclass(frozen=True, eq=False)
class AffineScan(Op):
    """h_t = a_t h_{t−1} + b_t from h_0 = 0; h_t = a_t h_{t+1} + b_t from h_{T+1} = 0 if ``backward``.

    Arguments a and b, with the leading axis T, of one shape: a_t h is the product of elements. If
    ``matrices``, a is (T, ..., n, n) and b is (T, ..., n, m): a_t h is a product of matrices. The first
    a (the last if ``backward``) is not read. Linear in b.
    """

    matrices: bool = False
    backward: bool = False


def affine_scan(a: Node, b: Node, initial: Node | None = None, backward: bool = False) -> Node:
    """All h_t = a_t h_{t−1} + b_t, an array like b.

    Args:
        a: (T, ...) like b, or (T, ..., n, n) with one axis more than b (T, ..., n).
        b: the summands.
        initial: h_0 (h_{T+1} if backward), 0 by default, of the shape of one b_t.
        backward: from the last step to the first.

    Raises:
        ShapeError: the shapes do not fit.
    """
    matrices = len(a.shape) == len(b.shape) + 1
    if not b.shape or (not matrices and not same_shape(a.shape, b.shape)):
        raise ShapeError(
            f"affine_scan: a {format_shape(a.shape)} and b {format_shape(b.shape)} must have one shape, or a "
            "matrices along the last two axes and b vectors along the last"
        )
    if initial is not None:
        if not same_shape(initial.shape, b.shape[1:]):
            raise ShapeError(
                f"affine_scan: the initial state has shape {format_shape(initial.shape)}, but one b_t has "
                f"{format_shape(b.shape[1:])}"
            )
        b = _started(a, b, initial, matrices, backward)
    if not matrices:
        return Node.of(AffineScan(False, backward), (a, b))
    return reshape(Node.of(AffineScan(True, backward), (a, reshape(b, (*b.shape, 1)))), b.shape)


def _started(a: Node, b: Node, initial: Node, matrices: bool, backward: bool) -> Node:
    """The array b with a_1 h_0 added to its first element (a_T h_{T+1} to its last)."""
    rest = plus(b.shape[0], -1)
    place = rest if backward else 0
    first, at = take(a, 0, place), reshape(take(b, 0, place), initial.shape)
    if matrices:
        product = reshape(matmul(first, reshape(initial, (*initial.shape, 1))), initial.shape)
    else:
        product = mul(first, initial)
    edge = reshape(add(at, product), (1, *initial.shape))
    others = slice_axis(b, 0, 0 if backward else 1, rest)
    return concatenate([others, edge] if backward else [edge, others])


@shape(AffineScan)
def affine_scan_shape(op: AffineScan, args: Nodes) -> Shape:
    a, b = args
    if op.matrices:
        fits = same_shape(a.shape[:-1], b.shape[:-1]) and same_dim(a.shape[-1], a.shape[-2])
    else:
        fits = same_shape(a.shape, b.shape)
    if not fits:
        raise ShapeError(f"affine_scan: a {format_shape(a.shape)} does not fit b {format_shape(b.shape)}")
    return b.shape


def _product(op: AffineScan, a: Node, h: Node) -> Node:
    return matmul(a, h) if op.matrices else mul(a, h)


def _before(op: AffineScan, h: Node) -> Node:
    """The state h_{t−1} for each t (h_{t+1} if backward), 0 at the edge."""
    zero = broadcast_to(constant(0), (1, *h.shape[1:]))
    kept = slice_axis(h, 0, 1 if op.backward else 0, plus(h.shape[0], -1))
    return concatenate([kept, zero] if op.backward else [zero, kept])


@jvp.dispatch
def affine_scan_jvp(op: AffineScan, y: Node, tangents: Tangents) -> Tangent:
    """h_dot_t = a_t h_dot_{t−1} + (a_dot_t h_{t−1} + b_dot_t)."""
    a_dot, b_dot = tangents
    moved = _product(op, a_dot, _before(op, y)) if isinstance(a_dot, Node) else ZERO
    total = add_tangents((moved, b_dot))
    return Node.of(op, (y.args[0], total)) if isinstance(total, Node) else ZERO


@transpose.dispatch
def affine_scan_transpose(op: AffineScan, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    """b_bar_t = y_bar_t + a_{t+1}ᵀ b_bar_{t+1}: the recurrence runs the other way."""
    turned = AffineScan(op.matrices, not op.backward)
    later = _before(turned, y.args[0])
    return ZERO, Node.of(turned, (matrix_transpose(later) if op.matrices else later, y_bar))


@batch.dispatch
def affine_scan_batch(op: AffineScan, args: Nodes, batched: Flags, count: Count) -> Node:
    """The batch axis comes after the time axis."""
    inner = [swapped(lift(a, flag, count)) for a, flag in zip(args, batched, strict=True)]
    return swapped(Node.of(op, tuple(inner)))


@definition.dispatch
def affine_scan_definition(op: AffineScan, y: Node) -> Node:
    """Computes the states in a loop over the steps."""
    a, b = (backwards(x) if op.backward else x for x in y.args)
    zero = broadcast_to(constant(0), b.shape[1:])
    h = scan(lambda c, a_t, b_t: add(_product(op, a_t, c), b_t), zero, [a, b])
    return backwards(h) if op.backward else h


@flops.dispatch
def affine_scan_flops(op: AffineScan, y: Node) -> Count:
    """T/2 pairs are combined and T/2 steps filled in; then the same for T/2, T/4, ...: twice the first."""
    if not op.matrices:
        return 5 * size(y.shape)
    n, m = y.shape[-2:]
    return size(y.shape[:-2]) * (2 * n**3 + 4 * n**2 * m + 2 * n * m)


@evaluate.dispatch
def affine_scan_evaluate(op: AffineScan, values: Values) -> Array:
    a, b = values
    return join_pairs(np.asarray(a), np.asarray(b), op.matrices, op.backward)


def join_pairs(a: Array, b: Array, matrices: bool, backward: bool) -> Array:
    """The recurrence on arrays; generated code contains the same function."""
    if backward:
        return join_pairs(a[::-1], b[::-1], matrices, False)[::-1]
    if len(b) < 2:
        return b.copy()
    late, even = a[1::2], slice(0, len(b) // 2 * 2, 2)
    joined = late @ a[even] if matrices else late * a[even]
    added = late @ b[even] if matrices else late * b[even]
    odd = join_pairs(joined, added + b[1::2], matrices, False)
    known = odd[: (len(b) - 1) // 2]
    between = a[2::2] @ known if matrices else a[2::2] * known
    h = np.empty(b.shape, between.dtype)
    h[0], h[1::2], h[2::2] = b[0], odd, between + b[2::2]
    return h

"""Contractions: the one multiplicative primitive between arrays.

``Einsum`` covers matrix products, inner and outer products, sums over axes, transposition, traces
and diagonals. Axes are named by small integers. Its derivative is the product rule; its transpose in
one operand is the contraction of the others with the cotangent, with an identity matrix where an
operand repeats an index and ones where an index was summed out of it alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from symad.core.dims import Dim, Shape, format_shape, same_dim, size
from symad.core.graph import ZERO, Node, Op, shape
from symad.core.nodes import Moved
from symad.core.questions import (
    Array,
    Count,
    Flags,
    Nodes,
    Tangent,
    Tangents,
    Values,
    batch,
    evaluate,
    flops,
    jvp,
    transpose,
)
from symad.errors import ShapeError
from symad.numbers.contractions import contracted, letters, subscripts
from symad.ops.basic.arithmetic import add_tangents, mul
from symad.ops.basic.shaping import Broadcast, broadcast_axes, broadcast_to, reshape
from symad.ops.basic.sources import Eye, constant, constant_value, described, eye

Labels = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Einsum(Op):
    """y[out] = Σ over the other labels of Π_k x_k[labels_k]."""

    finite_slopes = True

    inputs: tuple[Labels, ...]
    output: Labels

    @property
    def spec(self) -> str:
        """The subscripts as NumPy writes them: ``ij,jk->ik``."""
        return subscripts(self.inputs, self.output)

    @property
    def moves(self) -> Moved:
        """A transposition has all elements, a diagonal some of them."""
        if len(self.inputs) != 1 or set(self.inputs[0]) != set(self.output):
            return Moved.COMPUTED
        if len(set(self.output)) < len(self.output):
            return Moved.PADDED
        return Moved.ALL if len(self.inputs[0]) == len(self.output) else Moved.SOME


# ---- makers -------------------------------------------------------------------------------------


def contract(inputs: Sequence[Sequence[Hashable]], output: Sequence[Hashable], *args: Node) -> Node:
    """The contraction with any hashable axis labels; labels are renumbered in order of appearance.

    Nested one-operand contractions (transpositions, sums) are merged into the labels.
    """
    merged_args: list[Node] = []
    merged_labels: list[tuple[Hashable, ...]] = []
    for position, (labels, arg) in enumerate(zip(inputs, args, strict=True)):
        inner = arg.op
        if permutes(inner):
            names = dict(zip(inner.output, labels, strict=True))
            merged_labels.append(tuple(names[k] for k in inner.inputs[0]))
            merged_args.append(arg.args[0])
        else:
            merged_labels.append(tuple(labels))
            merged_args.append(arg)
        if len(merged_labels[-1]) != len(merged_args[-1].shape):
            raise ShapeError(
                f"a contraction names {len(labels)} axes of argument {position + 1}, which has shape "
                f"{format_shape(arg.shape)}"
            )
    factors = _fold_identities(merged_labels, merged_args, list(output))
    units = _fold_units(merged_labels, merged_args, output, factors)
    kept = [label for label in output if label not in units] if units else output
    result = _numbered(merged_labels, kept, merged_args)
    if len(kept) < len(output):
        result = _with_unit_axes(result, [label in units for label in output])
    return result if not factors else _scaled(result, factors)


def _scaled(result: Node, factors: Sequence[Node]) -> Node:
    return mul(*factors, result)


def _fold_units(
    labels: list[tuple[Hashable, ...]], args: list[Node], output: Sequence[Hashable], factors: list[Node]
) -> set[Hashable]:
    """Take numbers in the shape of 1×1 arrays out as factors, with the axes that no other operand has.

    Returns the labels of those axes; ``labels``, ``args`` and ``factors`` are changed in place.
    """
    gone: set[Hashable] = set()
    for k in reversed(range(len(args))):
        arg = args[k]
        if len(args) > 1 and _is_unit(arg):
            gone |= set(labels[k])
            if constant_value(arg.args[0]) != 1:
                factors.append(arg.args[0])
            del labels[k], args[k]
    if not gone:
        return gone
    # an axis of length 1 that is summed over can serve as an output axis of length 1
    present = {label for part in labels for label in part}
    spare = [x for x in dict.fromkeys(x for part in labels for x in part) if x in gone and x not in output]
    renamed = dict(zip(spare, [x for x in output if x in gone and x not in present], strict=False))
    gone -= set(renamed.values())
    for k, (part, arg) in enumerate(zip(labels, args, strict=True)):
        axes = [(renamed.get(x, x), d) for x, d in zip(part, arg.shape, strict=True)]
        kept = [(x, d) for x, d in axes if x not in gone]
        args[k] = reshape(arg, tuple(d for _, d in kept))
        labels[k] = tuple(x for x, _ in kept)
    return gone


def _is_unit(node: Node) -> bool:
    """Whether a node is a number in the shape of a 1×1 array."""
    return isinstance(node.op, Broadcast) and not node.op.axes and all(d == 1 for d in node.shape)


def _with_unit_axes(a: Node, unit: Sequence[bool]) -> Node:
    """``a`` with an axis of length 1 inserted at each true entry of ``unit``."""
    dims = iter(a.shape)
    return reshape(a, tuple(1 if flag else next(dims) for flag in unit))


def _fold_identities(
    labels: list[tuple[Hashable, ...]], args: list[Node], output: list[Hashable]
) -> list[Node]:
    """Remove identity matrices and repeated axes from a contraction; scalar operands become factors.

    Σ_j δ_ij x_j = x_i. An operand that only repeats a smaller array along an axis that another operand
    has is replaced by the smaller array. ``labels`` and ``args`` are changed in place.
    """
    factors: list[Node] = []
    k = 0
    while k < len(args):
        op = args[k].op
        if isinstance(op, Broadcast) and _without_repetition(op, labels, args, k):
            continue
        if isinstance(op, Eye) and len(args) > 1 and _without_identity(op, labels, args, output, k):
            k = 0
        elif not labels[k] and len(args) > 1:
            if constant_value(args[k]) != 1:
                factors.append(args[k])
            del labels[k], args[k]
        else:
            k += 1
    return factors


def _elsewhere(labels: Sequence[tuple[Hashable, ...]], k: int) -> set[Hashable]:
    """The labels of all operands but one."""
    return {x for j, part in enumerate(labels) if j != k for x in part}


def _without_repetition(
    op: Broadcast, labels: list[tuple[Hashable, ...]], args: list[Node], k: int
) -> bool:
    """Replace operand k by the array that it repeats, if others have the axes; whether this was done."""
    added = [x for axis, x in enumerate(labels[k]) if axis not in op.axes]
    if len(set(labels[k])) < len(labels[k]) or not added or not _elsewhere(labels, k).issuperset(added):
        return False
    _check_axes(labels, args, dict(zip(labels[k], args[k].shape, strict=True)))
    labels[k] = tuple(labels[k][axis] for axis in op.axes)
    args[k] = args[k].args[0]
    return True


def _without_identity(
    op: Eye, labels: list[tuple[Hashable, ...]], args: list[Node], output: Sequence[Hashable], k: int
) -> bool:
    """Remove the identity matrix δ_ab that is operand k, with one of its labels; whether this was done."""
    a, b = labels[k]
    gone, kept = (b, a) if b not in output else (a, b)
    if a == b or gone in output or gone not in _elsewhere(labels, k):
        return False
    _check_axes(labels, args, {a: op.size, b: op.size})
    del labels[k], args[k]
    labels[:] = [tuple(kept if x == gone else x for x in part) for part in labels]
    return True


def _check_axes(
    labels: Sequence[Sequence[Hashable]], args: Sequence[Node], dims: Mapping[Hashable, Dim]
) -> None:
    """Check that every axis with a label of ``dims`` has that size, before an operand is removed."""
    for part, arg in zip(labels, args, strict=True):
        for label, dim in zip(part, arg.shape, strict=True):
            if label in dims and not same_dim(dims[label], dim):
                raise ShapeError(
                    f"a contraction of {', '.join(format_shape(a.shape) for a in args)} joins axes of "
                    f"sizes {dims[label]} and {dim}"
                )


def _numbered(
    merged_labels: Sequence[tuple[Hashable, ...]], output: Sequence[Hashable], merged_args: Sequence[Node]
) -> Node:
    """The contraction node, its labels numbered in order of appearance.

    Of two operands the one that has the first output axis comes first, so that equal products are the same
    node for any order of construction.
    """
    if len(merged_args) == 2 and _owner(merged_labels, output) == 1:
        merged_labels, merged_args = merged_labels[::-1], merged_args[::-1]
    numbers: dict[Hashable, int] = {}
    for labels in merged_labels:
        for label in labels:
            numbers.setdefault(label, len(numbers))
    op = Einsum(
        tuple([tuple([numbers[label] for label in labels]) for labels in merged_labels]),
        tuple([numbers[label] for label in output]),
    )
    if len(merged_args) == 1 and op.inputs[0] == op.output and len(set(op.output)) == len(op.output):
        return merged_args[0]
    return Node.of(op, tuple(merged_args))


def _owner(labels: Sequence[tuple[Hashable, ...]], output: Sequence[Hashable]) -> int:
    """The position of the operand (of two) that has the first output axis that only one of them has."""
    for label in output:
        if (label in labels[0]) != (label in labels[1]):
            return 0 if label in labels[0] else 1
    return 0


def permutes(op: Op) -> TypeGuard[Einsum]:
    """Whether an op only permutes the axes of an array."""
    if not isinstance(op, Einsum) or len(op.inputs) != 1 or len(set(op.output)) < len(op.output):
        return False
    return sorted(op.inputs[0]) == sorted(op.output)


def einsum(spec: str, *args: Node) -> Node:
    """The contraction with NumPy's subscripts, ``einsum("ij,jk->ik", a, b)``."""
    left, _, right = spec.replace(" ", "").partition("->")
    return contract([tuple(part) for part in left.split(",")], tuple(right), *args)


def permute(a: Node, axes: Sequence[int]) -> Node:
    """Axes in another order: axis k of the result is axis ``axes[k]`` of ``a``."""
    return contract([range(len(a.shape))], tuple(axes), a)


def matrix_transpose(a: Node) -> Node:
    """The transpose of the last two axes."""
    rank = len(a.shape)
    return permute(a, (*range(rank - 2), rank - 1, rank - 2))


def matmul(a: Node, b: Node) -> Node:
    """NumPy's a @ b for one, two or more axes; leading axes are equal or missing.

    Raises:
        ShapeError: the inner dimensions differ.
    """
    if not a.shape or not b.shape:
        raise ShapeError("a matrix product needs arrays with axes; use * with a scalar")
    inner_a, inner_b = a.shape[-1], b.shape[max(len(b.shape) - 2, 0)]
    if not same_dim(inner_a, inner_b):
        raise ShapeError(
            f"matmul: inner dimensions differ, the factors are {described(a)} and {described(b)}"
        )
    lead = max(len(a.shape), len(b.shape)) - 2
    stack = [f"s{k}" for k in range(max(lead, 0))]
    left = [
        *stack[len(stack) - max(len(a.shape) - 2, 0) :],
        *(["i"] if len(a.shape) > 1 else []),
        "j",
    ]
    right = [
        *stack[len(stack) - max(len(b.shape) - 2, 0) :],
        "j",
        *(["k"] if len(b.shape) > 1 else []),
    ]
    out = [*stack, *(["i"] if len(a.shape) > 1 else []), *(["k"] if len(b.shape) > 1 else [])]
    return contract([left, right], out, a, b)


def sum_axes(a: Node, axes: Sequence[int]) -> Node:
    """The sum over some axes."""
    return contract([range(len(a.shape))], [k for k in range(len(a.shape)) if k not in axes], a)


def sum_all(a: Node) -> Node:
    """The sum of all elements."""
    return sum_axes(a, range(len(a.shape)))


def inner(a: Node, b: Node) -> Node:
    """Σ a b over all elements of two arrays of one shape."""
    labels = range(len(a.shape))
    return contract([labels, labels], (), a, b)


def diagonal_matrix(v: Node) -> Node:
    """The (n, n) matrix with the vector (n,) on its diagonal."""
    return contract(["i", "ij"], "ij", v, eye(v.shape[0]))


def trace_of(a: Node) -> Node:
    """The trace of an (n, n) array."""
    if not same_dim(a.shape[0], a.shape[1]):
        raise ShapeError(f"a trace needs a square matrix, not {format_shape(a.shape)}")
    return contract(["ii"], (), a)


# ---- answers ------------------------------------------------------------------------------------


def _label_dims(op: Einsum, args: Nodes) -> dict[int, Dim]:
    dims: dict[int, Dim] = {}
    for labels, arg in zip(op.inputs, args, strict=True):
        for label, dim in zip(labels, arg.shape, strict=True):
            known = dims.setdefault(label, dim)
            if known is not dim and not same_dim(known, dim):
                raise ShapeError(
                    f"contraction {op.spec} of {', '.join(map(described, args))}: the axis "
                    f"'{letters((label,))}' has sizes {dims[label]} and {dim}"
                )
    return dims


@shape(Einsum)
def einsum_shape(op: Einsum, args: Nodes) -> Shape:
    dims = _label_dims(op, args)
    return tuple(dims[label] for label in op.output)


@jvp.dispatch
def einsum_jvp(op: Einsum, y: Node, tangents: Tangents) -> Tangent:
    """y_dot = Σ_k einsum(x_1, ..., x_k_dot, ...)."""
    terms: list[Tangent] = []
    for k, tangent in enumerate(tangents):
        if isinstance(tangent, Node):
            args = [*y.args[:k], tangent, *y.args[k + 1 :]]
            terms.append(contract(op.inputs, op.output, *args))
    return add_tangents(terms)


@transpose.dispatch
def einsum_transpose(op: Einsum, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    """x_k_bar[labels_k] = Σ y_bar[out] Π_{j≠k} x_j[labels_j]."""
    (k,) = [i for i, flag in enumerate(linear) if flag]
    dims = _label_dims(op, y.args)
    labels = [op.output, *(op.inputs[j] for j in range(len(y.args)) if j != k)]
    args = [y_bar, *(y.args[j] for j in range(len(y.args)) if j != k)]
    target: list[int] = []
    fresh = max(dims, default=0) + 1
    for label in op.inputs[k]:
        if label in target:  # a repeated index: the identity joins it to a fresh one
            labels.append((label, fresh))
            args.append(eye(dims[label]))
            target.append(fresh)
            fresh += 1
        else:
            target.append(label)
    known = {label for part in labels for label in part}
    summed_out = [label for label in target if label not in known]
    kept = [label for label in target if label in known]
    x_bar = contract(labels, kept, *args)
    if summed_out:
        x_bar = broadcast_axes(x_bar, y.args[k].shape, tuple(target.index(label) for label in kept))
    result: list[Tangent] = [ZERO] * len(linear)
    result[k] = x_bar
    return tuple(result)


@batch.dispatch
def einsum_batch(op: Einsum, args: Nodes, batched: Flags, count: Count) -> Node:
    """The new axis is one more label, in the batched operands and the output."""
    lead = -1
    labels = [(lead, *part) if flag else part for part, flag in zip(op.inputs, batched, strict=True)]
    return contract(labels, (lead, *op.output), *args)


@flops.dispatch
def einsum_flops(op: Einsum, y: Node) -> Count:
    """A multiplication per operand after the first and an addition per summed element: 2mnk for a product."""
    dims = _label_dims(op, y.args)
    per_term = len(y.args) - 1 + (1 if set(dims) - set(op.output) else 0)
    return size(dims.values()) * per_term


@evaluate.dispatch
def einsum_evaluate(op: Einsum, values: Values) -> Array:
    return contracted(op.inputs, op.output, values)


def ones_like(a: Node) -> Node:
    """Ones of the shape of ``a``."""
    return broadcast_to(constant(1), a.shape)


@transpose.dispatch
def broadcast_transpose(op: Broadcast, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    return (contract([range(len(op.shape))], op.axes, y_bar),)

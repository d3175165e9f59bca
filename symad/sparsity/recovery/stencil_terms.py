"""Sparse Jacobians of stencil-like linear maps, constructed without seeds or colors.

A linear map L whose ops move elements and multiply them is a short sum L = Σ_k diag(v_k) S_k: S_k
selects for each element of the output one element of the inputs (or none), v_k is an array of the
output's shape. Each op acts on the terms: a product multiplies v_k, a slice slices v_k and S_k, a
sum concatenates the terms and adds the v_k of terms with equal selections. So the derivative of a stencil is
one array expression for each diagonal, without products with zeros of a seed; the
arrays v_k are nodes of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symad.core.arrays import Array
from symad.core.graph import Node, Tangent, topological
from symad.core.questions import evaluate
from symad.ops.arrays.gathering import Gather, ScatterAdd, gather
from symad.ops.basic.arithmetic import Add, Mul, mul, neg, signed_product
from symad.ops.basic.contraction import Einsum, contract
from symad.ops.basic.shaping import Broadcast, ShapingOp, Slice, broadcast_to, flatten, reshape, slice_axis
from symad.ops.basic.sources import array_constant, constant
from symad.ops.elementwise.selection import Select, select
from symad.sparsity.patterns.pattern import IntArray
from symad.sparsity.patterns.rules import size_of
from symad.sparsity.patterns.structural_zeros import constant_of, may_be_nonzero
from symad.sparsity.recovery.early_slices import moved_slice, sum_of

MAX_STENCIL_TERMS = 64
"""The maximum number of terms of a stencil."""

MAX_SUMMED_ELEMENTS = 16
"""The maximum number of elements of a sum; more would make too many terms."""


MAX_COEFFICIENTS = 4_000_000
"""The maximum number of constant coefficients of a sum that is examined row by row.

Origin: it bounds the memory, to some 200 MB.
"""


@dataclass(frozen=True, eq=False)
class StencilTerm:
    """diag(value) S: element i of the output, flat, depends on input ``picks[i]``, or none for −1.

    ``value`` has the output's shape; elements without a selection are arbitrary. So the ones that a
    slice or padding leaves of a seed are not an array of ones and zeros, but the number 1.
    """

    value: Node
    picks: IntArray


Terms = tuple[StencilTerm, ...]


class NotStencil(Exception):
    """The map is not a short sum of terms."""


def stencil_terms(tangents: Sequence[Tangent], placeholders: Sequence[Node]) -> list[Terms] | None:
    """The terms of each output of a linear map; None if it is not a stencil."""
    found: dict[Node, Terms] = {}
    first = 0
    for seed in placeholders:
        count = size_of(seed)
        found[seed] = (StencilTerm(broadcast_to(constant(1), seed.shape), np.arange(first, first + count)),)
        first += count
    try:
        for node in topological([t for t in tangents if isinstance(t, Node)]):
            if node not in found and any(arg in found for arg in node.args):
                found[node] = _merged(_terms_of(node, [found.get(arg) for arg in node.args]), node)
    except NotStencil:
        return None
    return [found.get(t, ()) if isinstance(t, Node) else () for t in tangents]


def _merged(terms: Sequence[StencilTerm], node: Node) -> Terms:
    """Terms with equal selections are added; if too many remain, compatible ones are merged too."""
    groups: dict[bytes, list[StencilTerm]] = {}
    for term in terms:
        if (term.picks >= 0).any():
            groups.setdefault(term.picks.tobytes(), []).append(term)
    totals = [_total([t.value for t in group], group[0].picks, node) for group in groups.values()]
    made = [term for term in totals if (term.picks >= 0).any()]
    if len(made) > MAX_STENCIL_TERMS:
        made = _joined(made, node)
    if len(made) > MAX_STENCIL_TERMS:
        raise NotStencil
    return tuple(made)


def _total(values: Sequence[Node], picks: IntArray, node: Node) -> StencilTerm:
    """The sum of values with equal selections, which selects nothing where it is zero for all inputs."""
    value = broadcast_to(sum_of(values), node.shape)
    kept = may_be_nonzero(value)
    return StencilTerm(value, picks if kept is None else np.where(kept, picks, -1))


def _joined(terms: Sequence[StencilTerm], node: Node) -> list[StencilTerm]:
    """Terms that select the same element or none, merged into one, with zeros where they select none."""
    groups: list[tuple[IntArray, list[Node]]] = []
    for term in terms:
        inside = array_constant((term.picks >= 0).reshape(node.shape))
        value = broadcast_to(select(inside, term.value, constant(0)), node.shape)
        for k, (picks, values) in enumerate(groups):
            if ((picks == term.picks) | (picks < 0) | (term.picks < 0)).all():
                values.append(value)
                groups[k] = (np.maximum(picks, term.picks), values)
                break
        else:
            groups.append((term.picks, [value]))
    return [_total(values, picks, node) for picks, values in groups]


def _terms_of(node: Node, terms: list[Terms | None]) -> list[StencilTerm]:
    op = node.op
    if isinstance(op, Add):
        return [
            StencilTerm(t.value if sign == 1 else neg(t.value), t.picks)
            for sign, arg, own in zip(op.signs, node.args, terms, strict=True)
            for t in _spread(own or (), arg, node)
        ]
    if isinstance(op, Mul):
        return _scaled(op, node, terms)
    if isinstance(op, Select):
        return _selected(node, terms)
    if isinstance(op, Gather):
        return _gathered(node, terms)
    if isinstance(op, Einsum):
        return _contracted(op, node, terms)
    if isinstance(op, ShapingOp) and not isinstance(op, ScatterAdd):
        return _moved(op, node, terms)
    raise NotStencil


def _spread(terms: Terms, arg: Node, node: Node) -> list[StencilTerm]:
    """The terms of an argument without axes, for every element."""
    if arg.shape or not node.shape:
        return list(terms)
    return [StencilTerm(broadcast_to(t.value, node.shape), np.repeat(t.picks, size_of(node))) for t in terms]


def _scaled(op: Mul, node: Node, terms: list[Terms | None]) -> list[StencilTerm]:
    (k,) = [i for i, own in enumerate(terms) if own is not None]
    others = [(op.powers[i], node.args[i]) for i in range(len(node.args)) if i != k]
    return [
        StencilTerm(broadcast_to(signed_product([*others, (1, t.value)]), node.shape), t.picks)
        for t in _spread(terms[k] or (), node.args[k], node)
    ]


def _selected(node: Node, terms: list[Terms | None]) -> list[StencilTerm]:
    condition, a, b = node.args
    zero = constant(0)
    made = [
        StencilTerm(broadcast_to(select(condition, t.value, zero), node.shape), t.picks)
        for t in _spread(terms[1] or (), a, node)
    ]
    made += [
        StencilTerm(broadcast_to(select(condition, zero, t.value), node.shape), t.picks)
        for t in _spread(terms[2] or (), b, node)
    ]
    return made


def _moved(op: ShapingOp, node: Node, terms: list[Terms | None]) -> list[StencilTerm]:
    """The op on the values and on the selections; terms of several arguments are paired."""
    longest = max(len(own) for own in terms if own is not None)
    moved = []
    for k in range(longest):
        values, picks = [], []
        for arg, own in zip(node.args, terms, strict=True):
            if own is not None and k < len(own):
                values.append(own[k].value)
                picks.append(own[k].picks.reshape(arg.shape) + 1)  # added elements become −1
            else:
                values.append(broadcast_to(constant(0), arg.shape))
                picks.append(np.zeros(arg.shape, np.int64))
        where = np.asarray(evaluate(op, tuple(picks))).ravel() - 1
        moved.append(StencilTerm(_same_op(op, values, node), where))
    return moved


def _same_op(op: ShapingOp, values: list[Node], node: Node) -> Node:
    """The op on the values of terms; arrays of equal elements stay such when they are moved."""
    repeated = {v.args[0] for v in values if isinstance(v.op, Broadcast) and not v.op.axes}
    if len(repeated) == 1 and all(isinstance(v.op, Broadcast) and not v.op.axes for v in values):
        return broadcast_to(repeated.pop(), node.shape)
    if isinstance(op, Slice):
        return moved_slice(op, values[0])
    return Node.of(op, tuple(values))


def _gathered(node: Node, terms: list[Terms | None]) -> list[StencilTerm]:
    table, indices = node.args
    rows = constant_of(indices)
    if terms[0] is None or rows is None:
        raise NotStencil
    return [
        StencilTerm(
            gather(t.value, indices),
            np.asarray(evaluate(node.op, (t.picks.reshape(table.shape), rows))).ravel(),
        )
        for t in terms[0]
    ]


def _contracted(op: Einsum, node: Node, terms: list[Terms | None]) -> list[StencilTerm]:
    """Labels of the operand that are summed are unrolled, the rest is elementwise."""
    (k,) = [i for i, own in enumerate(terms) if own is not None]
    own = op.inputs[k]
    summed = [label for label in dict.fromkeys(own) if label not in op.output]
    dims = dict(zip(own, map(int, node.args[k].shape), strict=True))
    by_rows = _by_rows(op, node, k, summed, terms[k] or ())
    if by_rows is not None:
        return by_rows
    if np.prod([dims[label] for label in summed], dtype=np.int64) > MAX_SUMMED_ELEMENTS:
        raise NotStencil
    made: list[StencilTerm] = []
    for t in terms[k] or ():
        for fixed in np.ndindex(*[dims[label] for label in summed]):
            at = dict(zip(summed, fixed, strict=True))
            value = contract(
                [_without(labels, at) for labels in op.inputs],
                op.output,
                *(_fixed(t.value if i == k else arg, op.inputs[i], at) for i, arg in enumerate(node.args)),
            )
            made.append(StencilTerm(value, _picked(t.picks, own, op.output, dims, at, node)))
    return made


def _by_rows(op: Einsum, node: Node, k: int, summed: Sequence[int], terms: Terms) -> list[StencilTerm] | None:
    """Σ_s c(o, s) x(o, s) with constant coefficients, for each element o only over the s with c(o, s) ≠ 0.

    The n-th term takes for each o the n-th such s. None if other operands are no constants, or if some o has
    as many as without this.
    """
    labels = [*op.output, *summed]
    others = [(constant_of(arg), op.inputs[i]) for i, arg in enumerate(node.args) if i != k]
    if not summed or any(a is None or a.dtype.kind not in "fiub" for a, _ in others):
        return None
    own, shape = op.inputs[k], node.args[k].shape
    sizes = dict(zip((*op.output, *own), map(int, (*node.shape, *shape)), strict=True))
    grid = tuple(sizes[x] for x in labels)
    if not 0 < math.prod(grid) <= MAX_COEFFICIENTS:
        return None
    operands: list[Any] = [part for a, names in others for part in (a, [labels.index(x) for x in names])]
    ones: list[Any] = [np.ones(grid), list(range(len(labels)))]
    coefficients = np.einsum(*operands, *ones, list(range(len(labels)))).reshape(size_of(node), -1)
    counts = np.count_nonzero(coefficients, axis=1)
    longest = int(counts.max(initial=0))
    if longest > MAX_SUMMED_ELEMENTS or longest >= coefficients.shape[1]:
        return None
    order = np.argsort(coefficients == 0, axis=1, kind="stable")  # the elements that are not 0 come first
    index = np.indices(grid).reshape(len(grid), size_of(node), -1)
    places = np.zeros_like(index[0])
    for x in own:
        places = places * sizes[x] + index[labels.index(x)]
    made = []
    for n in range(longest):
        s = order[:, n : n + 1]
        at = np.take_along_axis(places, s, axis=1).ravel()
        weights = np.take_along_axis(coefficients, s, axis=1).reshape(node.shape)
        for t in terms:
            value = mul(array_constant(weights), _at(t.value, at, node))
            made.append(StencilTerm(broadcast_to(value, node.shape), np.where(counts > n, t.picks[at], -1)))
    return made


def _at(value: Node, places: IntArray, node: Node) -> Node:
    """The elements of an array at flat places, in the shape of a node; of equal elements, their number."""
    if isinstance(value.op, Broadcast) and not value.op.axes:
        return value.args[0]
    return reshape(gather(flatten(value), array_constant(places)), node.shape)


def _without(labels: tuple[int, ...], at: dict[int, int]) -> tuple[int, ...]:
    return tuple(label for label in labels if label not in at)


def _fixed(arg: Node, labels: tuple[int, ...], at: dict[int, int]) -> Node:
    """The operand with some labels at fixed values."""
    for axis, label in enumerate(labels):
        if label in at:
            arg = slice_axis(arg, axis, at[label], 1)
    kept = tuple(d for d, label in zip(arg.shape, labels, strict=True) if label not in at)
    return reshape(arg, kept)


def _picked(
    picks: IntArray,
    own: tuple[int, ...],
    out: tuple[int, ...],
    dims: dict[int, int],
    at: dict[int, int],
    node: Node,
) -> IntArray:
    """The selection of each element of the output, with some labels of the operand fixed."""
    grid = dict(zip(out, np.indices([int(d) for d in node.shape]), strict=True))
    position: Array = np.zeros(node.shape, np.int64)
    for label in own:
        position = position * dims[label] + (at[label] if label in at else grid[label])
    return picks[np.ravel(position)]

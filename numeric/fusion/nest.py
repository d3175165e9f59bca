"""Loop nests: the one op for what a generated kernel computes.

A nest goes over the elements of the shape ``full``, row by row: the elements along ``axes`` are a row. The
nodes of its body are arrays of that shape, or have one number per row: sums, and arithmetic on them. A nest
without axes is an elementwise chain; a sum of a chain, layer norm and softmax have loops over a row
(`symad.numeric.fusion.nest_loops`). `fuse_rows`, `fuse_chains` and `softmax_nest` make nests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from graphlib import TopologicalSorter
from typing import TypeAlias, TypeGuard

import sympy

from symad.core.dims import Shape, same_shape
from symad.core.following import tell
from symad.core.graph import Graph, Node, Op, rebuild, shape
from symad.core.questions import Nodes
from symad.higher_order.scan import Local
from symad.numeric.passes.bodies import BodyOp, body_shape
from symad.ops.arrays.reduction import Extreme, keep_axes
from symad.ops.arrays.softmax import (
    LIKELY,
    ExponentialOp,
    LogSoftmax,
    LogSoftmaxCotangent,
    LogSoftmaxTangent,
    LogSumExp,
    Softmax,
    SoftmaxTangent,
)
from symad.ops.basic.arithmetic import add, div, mul, neg, sub
from symad.ops.basic.contraction import Einsum
from symad.ops.basic.shaping import Broadcast
from symad.ops.basic.sources import constant
from symad.ops.elementwise.apply import apply
from symad.ops.elementwise.selection import compare, select


@dataclass(frozen=True, eq=False)
class Nest(BodyOp):
    """Output ``index`` of a ``body`` over the elements of ``full``; its inputs are `Local`."""

    full: Shape
    axes: tuple[int, ...]


shape(Nest)(body_shape)


def is_chain(op: Op) -> TypeGuard[Nest]:
    """Whether an op is a nest of elementwise nodes alone."""
    return isinstance(op, Nest) and not op.axes


def with_sum(chain: Graph, axes: Sequence[int]) -> Nest:
    """The nest of the sum over some axes of the one output of an elementwise graph."""
    (term,) = chain.output_nodes
    return Nest(Graph(chain.input_nodes, (summed(term, axes),)), 0, term.shape, tuple(axes))


def summed(term: Node, axes: Sequence[int]) -> Node:
    """The sum over some axes as it stands: no factor is taken out of it."""
    labels = tuple(range(len(term.shape)))
    return Node.of(Einsum((labels,), tuple(k for k in labels if k not in axes)), (term,))


def summed_axes(node: Node) -> tuple[int, ...]:
    """The axes over which a node sums its one argument; none for other nodes, or if axes change places."""
    op = node.op
    if not isinstance(op, Einsum) or len(node.args) != 1:
        return ()
    (labels,) = op.inputs
    kept = tuple(label for label in labels if label in op.output)
    if len(set(labels)) < len(labels) or kept != tuple(op.output):
        return ()
    return tuple(k for k, label in enumerate(labels) if label not in op.output)


def total_of(nest: Nest) -> Node | None:
    """The only reduction of a nest, if its one result is a function of that sum alone; else None."""
    outputs, inside = nest.body.output_nodes, [n for n in nest.body.nodes if is_reduction(n, nest)]
    if len(inside) != 1 or len(outputs) > 1 or summed_axes(inside[0]) != nest.axes:
        return None
    (total,), todo = inside, [*outputs]
    while todo:
        node = todo.pop()
        if isinstance(node.op, Local):
            return None
        todo += () if node is total else node.args
    return total


# ---- the nodes of a body -------------------------------------------------------------------------


def is_reduction(node: Node, nest: Nest) -> bool:
    """Whether a node of a body reduces the elements of a row to a number."""
    if not nest.axes:
        return False
    if is_row_sum(node, nest.full, nest.axes) or is_row_dot(node, nest.full):
        return True
    return isinstance(node.op, Extreme) and node.op.axes == nest.axes


def is_row_sum(node: Node, full: Shape, axes: Sequence[int] = ()) -> bool:
    """Whether a node is Σ over the last axis (or others) of an array of the full shape, or of a product."""
    op = node.op
    if not isinstance(op, Einsum) or not all(same_shape(a.shape, full) for a in node.args):
        return False
    labels = tuple(op.inputs[0])
    distinct = len(set(labels)) == len(labels) and all(tuple(other) == labels for other in op.inputs)
    axes = axes or (len(labels) - 1,)
    return distinct and tuple(op.output) == tuple(x for k, x in enumerate(labels) if k not in axes)


def is_row_dot(node: Node, full: Shape) -> bool:
    """Whether a node is Σ_j a_ij v_j: an array of the full shape times one vector for all rows."""
    op = node.op
    if not isinstance(op, Einsum) or len(node.args) != 2 or not same_shape(node.args[0].shape, full):
        return False
    labels, vector = op.inputs
    distinct = len(set(labels)) == len(labels) and tuple(vector) == tuple(labels[-1:])
    return distinct and len(full) > 1 and tuple(op.output) == tuple(labels[:-1])


def is_row(node_shape: Shape, full: Shape) -> bool:
    """Whether a shape has one number per row, with or without the last axis."""
    lead = full[:-1]
    return same_shape(node_shape, lead) or same_shape(node_shape, (*lead, 1))


def repeats_rows(node: Node, full: Shape) -> bool:
    """Whether a node broadcasts one number per row to the elements of the row."""
    op, lead = node.op, tuple(range(len(full) - 1))
    return isinstance(op, Broadcast) and op.axes == lead and same_shape(node.shape, full)


def repeats_columns(node: Node, full: Shape) -> bool:
    """Whether a node broadcasts one row to all rows."""
    op = node.op
    return isinstance(op, Broadcast) and op.axes == (len(full) - 1,) and same_shape(node.shape, full)


# ---- graphs with groups of nodes computed at once ------------------------------------------------


New: TypeAlias = "Mapping[Node, Node]"


def in_units(
    outputs: Sequence[Node],
    order: Sequence[Node],
    unit_of: Mapping[Node, int],
    make: Callable[[Sequence[Node], New], Mapping[Node, Node]],
) -> Nodes:
    """The outputs with the nodes of each unit made together, once all that they read is made.

    Args:
        outputs: the outputs of a graph.
        order: its nodes, in order.
        unit_of: the number of a node's unit, at least 0; a node without one is a unit of its own.
        make: the new nodes of a unit, from its members and the new nodes so far.
    """
    keys = {node: unit_of.get(node, -1 - k) for k, node in enumerate(order)}
    units: dict[int, list[Node]] = {}
    for node in order:
        units.setdefault(keys[node], []).append(node)
    needs = {key: sorted({keys[a] for m in unit for a in m.args} - {key}) for key, unit in units.items()}
    new: dict[Node, Node] = {}
    for key in TopologicalSorter(needs).static_order():
        new |= make(units[key], new)
    tell(new)
    return tuple(new[o] for o in outputs)


def nests_of(
    results: Sequence[Node], leaves: Sequence[Node], new: New, full: Shape, axes: tuple[int, ...]
) -> dict[Node, Node]:
    """The nests of some results as functions of some leaves; they share a body."""
    local = {leaf: Node.of(Local(k, leaf.shape)) for k, leaf in enumerate(leaves)}
    body = Graph(tuple(local.values()), rebuild(results, local))
    args = tuple(new[leaf] for leaf in leaves)
    return {m: Node.of(Nest(body, k, full, axes), args) for k, m in enumerate(results)}


# ---- softmax and its kin over rows ---------------------------------------------------------------

# The largest element is subtracted first, unless it is infinite; then nothing is subtracted, and the result
# shows the infinity. A NaN is in the sum of exponentials, and so in every element. The tangents are sums of
# differences to the t of a p of almost 1, as 1 - p would lose digits.


@lru_cache(maxsize=256)
def softmax_nest(kind: type[ExponentialOp], shape: Shape, axes: tuple[int, ...]) -> Nest:
    """The nest of an op of this kind over arrays of a shape."""
    rows = _SoftmaxRows(shape, axes)
    count = 1 if kind in (Softmax, LogSoftmax, LogSumExp) else 2
    given = tuple([Node.of(Local(k, shape)) for k in range(count)])
    return Nest(Graph(given, (BODIES[kind](rows, *given),)), 0, shape, axes)


class _SoftmaxRows:
    """Sums over rows, and numbers for each row repeated along it."""

    def __init__(self, shape: Shape, axes: tuple[int, ...]) -> None:
        self.shape, self.axes = shape, axes

    def sum(self, term: Node) -> Node:
        return summed(term, self.axes)

    def along(self, number: Node) -> Node:
        return keep_axes(number, self.shape, self.axes)

    def exponentials(self, x: Node) -> Nodes:
        """(m, exp(x - m), Σ exp(x - m))."""
        highest = Node.of(Extreme("max", self.axes), (x,))
        finite = compare("<", apply(sympy.Abs, highest), constant(math.inf))
        shift = select(finite, highest, constant(0))
        e = apply(sympy.exp, sub(x, self.along(shift)))
        return shift, e, self.sum(e)

    def mean(self, p: Node, t: Node) -> Nodes:
        """(t of a p of almost 1, the mean of t less that), for each row."""
        likely = compare(">", p, constant(LIKELY))
        other = select(likely, constant(0), p)
        shift = self.sum(select(likely, t, constant(0)))
        return shift, sub(self.sum(mul(other, t)), mul(self.sum(other), shift))


def _softmax(rows: _SoftmaxRows, x: Node) -> Node:
    _, e, total = rows.exponentials(x)
    return mul(e, rows.along(div(constant(1), total)))


def _log_softmax(rows: _SoftmaxRows, x: Node) -> Node:
    shift, _, total = rows.exponentials(x)
    return sub(sub(x, rows.along(shift)), rows.along(apply(sympy.log, total)))  # a sum of both rounds


def _log_sum_exp(rows: _SoftmaxRows, x: Node) -> Node:
    shift, _, total = rows.exponentials(x)
    return add(shift, apply(sympy.log, total))


def _log_softmax_tangent(rows: _SoftmaxRows, p: Node, t: Node) -> Node:
    shift, mean = rows.mean(p, t)
    return sub(sub(t, rows.along(shift)), rows.along(mean))


def _softmax_tangent(rows: _SoftmaxRows, p: Node, t: Node) -> Node:
    return mul(p, _log_softmax_tangent(rows, p, t))


def _log_softmax_cotangent(rows: _SoftmaxRows, p: Node, t: Node) -> Node:
    """The sum of all is 0, which gives the element of a p of almost 1."""
    likely = compare(">", p, constant(LIKELY))
    made = sub(t, mul(p, rows.along(rows.sum(t))))
    rest = rows.sum(select(likely, constant(0), made))
    return select(likely, rows.along(neg(rest)), made)


BODIES: dict[type[ExponentialOp], Callable[..., Node]] = {
    Softmax: _softmax,
    LogSoftmax: _log_softmax,
    LogSumExp: _log_sum_exp,
    SoftmaxTangent: _softmax_tangent,
    LogSoftmaxTangent: _log_softmax_tangent,
    LogSoftmaxCotangent: _log_softmax_cotangent,
}
"""The value of each op for its arrays."""

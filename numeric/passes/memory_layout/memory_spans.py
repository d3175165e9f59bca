"""Elementwise work on slices as work on spans of memory, gaps between the rows included.

A slice of an array (m, n) has a gap in memory after every row, and NumPy's functions (also compiled ones)
pay for each row. With the strides s of the array, element i of a slice is Σ_k s_k i_k places after its first
one, and the same holds for all slices of arrays of this shape. Functions of slices are therefore evaluated on
the spans of memory that contain them: this computes some elements that nobody reads, but in one call. Ops
that read more than single elements, such as sums and products, read the span through a view with gaps, and a
sparse matrix gathers its entries from it. A padded array of this kind is the span itself with its gaps set to
zero, between zeros at both ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from symad.core.dims import Dim, Shape, is_concrete
from symad.core.graph import Graph, Node, Op, op_of, shape
from symad.core.questions import Array, Nodes, Values, definition, evaluate
from symad.numeric.passes.bodies import RowBlocks
from symad.numeric.passes.rewriting import with_results
from symad.ops.arrays.gathering import Gather, gather
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.shaping import (
    Broadcast,
    Pad,
    Reshape,
    Slice,
    broadcast_to,
    flatten,
    reshape,
    slice_axes,
)
from symad.ops.basic.sources import ArrayConstant, array_constant, constant
from symad.ops.elementwise.selection import select
from symad.ops.sparse.csr import CompressedRows

MAX_STRETCH = 1.5
"""A span may have at most this many times as many elements as the slice in it.

Gradients of Rosenbrock's function in rows take 0.75 to 0.79 of the time up to 1.5, and 1.03 at 2; the entries
of a sparse Hessian take 0.97 to 1.05 and 1.34 (bench_layout_thresholds.py, "stretch").
"""

ASSUMED_LENGTH = 1000
"""The value assumed for an unknown length when sizes are compared."""


class MemorySpan(NamedTuple):
    """An array of ``shape`` inside of a flat array: element i is at Σ_k strides_k i_k."""

    flat: Node
    shape: Shape
    strides: tuple[int, ...]

    @property
    def positions(self) -> np.ndarray:
        """The positions of the elements in the flat array, in row-major order; all sizes are known."""
        grid = np.indices(self.shape).reshape(len(self.shape), -1)
        return np.tensordot(self.strides, grid, 1)


@dataclass(frozen=True, eq=False)
class Spread(Op):
    """A view of ``shape`` of a flat array: element i is at Σ_k strides_k i_k."""

    shape: Shape
    strides: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Cleared(Op):
    """A flat array with all but the first ``width`` of each ``step`` elements set to zero, for each gap."""

    gaps: tuple[tuple[int, int], ...]


@shape(Spread)
def spread_shape(op: Spread, args: Nodes) -> Shape:
    """The shape of the view."""
    return op.shape


@shape(Cleared)
def cleared_shape(op: Cleared, args: Nodes) -> Shape:
    """The shape of the argument."""
    return args[0].shape


@evaluate.dispatch
def spread_evaluate(op: Spread, values: Values) -> Array:
    """The elements of the view."""
    return np.asarray(values[0])[_places(op)]


@definition.dispatch
def spread_definition(op: Spread, y: Node) -> Node | None:
    """The elements by their positions, if the shape is known."""
    return gather(y.args[0], array_constant(_places(op))) if is_concrete(op.shape) else None


def _places(op: Spread) -> np.ndarray:
    """The position of each element of the view."""
    return sum(stride * k for stride, k in zip(op.strides, np.indices(op.shape), strict=True))


@evaluate.dispatch
def cleared_evaluate(op: Cleared, values: Values) -> Array:
    """The array with its gaps set to zero."""
    return np.where(_in_gaps(op, len(values[0])), 0, values[0])


@definition.dispatch
def cleared_definition(op: Cleared, y: Node) -> Node | None:
    """A selection between zeros and elements, if the length is known."""
    (length,) = y.shape
    if not isinstance(length, int):
        return None
    return select(array_constant(_in_gaps(op, length)), constant(0), y.args[0])


def _in_gaps(op: Cleared, length: int) -> np.ndarray:
    """Whether each element is in a gap; elements after the last whole step are not."""
    found = np.zeros(length, bool)
    for width, step in op.gaps:
        for start in range(width, length, step):
            if start + step - width < length or step - width == 1:
                found[start : start + step - width] = True
    return found


def in_spans(graph: Graph) -> Graph:
    """The graph with functions of slices on spans of memory, if fewer operations then read or write gaps."""
    before = sum(map(_meets_gaps, graph.nodes))
    if not before:
        return graph
    spans = _Spans(graph.nodes, graph.output_nodes)
    made = with_results(graph, map(spans.dense, graph.output_nodes))
    return made if sum(map(_meets_gaps, made.nodes)) < before else graph


def lay_out_sparse(graph: Graph) -> Graph:
    """The graph with the parts of sparse matrices on spans."""
    matrices = any(isinstance(node.op, CompressedRows) for node in graph.output_nodes)
    return in_spans(graph) if matrices else graph


def works_in_gaps(graph: Graph) -> bool:
    """Whether elements in gaps are computed: floating-point warnings may then concern only these elements."""
    bodies = {node.op.body for node in graph.nodes if isinstance(node.op, RowBlocks)}
    inner = [node for body in bodies for node in body.nodes]
    matrices = [node for node in graph.output_nodes if isinstance(node.op, CompressedRows)]
    tables = [arg.args[0] for node in matrices for arg in node.args if isinstance(arg.op, Gather)]
    arrays = [table.args[0] if isinstance(table.op, Slice) else table for table in tables]
    spans = any(isinstance(node.op, (Spread, Cleared)) for node in [*graph.nodes, *inner])
    return spans or not all(isinstance(array.op, Reshape) for array in arrays)


class _Spans:
    """The arrays of a rewritten graph, as spans where they have one."""

    def __init__(self, order: Sequence[Node], outputs: Sequence[Node]) -> None:
        self.made: dict[Node, Node] = {}
        self.spans: dict[Node, MemorySpan] = {}
        padded = {n.args[0]: n for n in order if isinstance(n.op, Pad) and _is_known(n.shape)}
        for node in order:
            span = self._span(node) if node.shape and _is_known(node.shape) else None
            if span is not None and node in outputs and span.strides != _strides(node.shape):
                span = None  # results must be whole arrays
            if span is not None:
                self.spans[node] = span
            if span is None or isinstance(node.op, Slice):
                args = tuple(self._argument(node, a) for a in node.args)
                self.made[node] = node.over(args)
            if span is None and node in padded:
                self._note_padded(node, padded[node])

    def _note_padded(self, node: Node, pad: Node) -> None:
        """Records the span of a node inside the array that results from padding it."""
        op = op_of(pad, Pad)
        if len(node.shape) < 2 or any(step != 1 for step in op.step) or not is_concrete(op.start):
            return
        whole = MemorySpan(flatten(Node.of(op, (self.made[node],))), pad.shape, _strides(pad.shape))
        span = _cut(whole, op.start, node.shape)
        if span is not None:
            self.spans[node] = span

    def _argument(self, node: Node, arg: Node) -> Node:
        """An argument of a rewritten node; sparse matrices read their entries from a span."""
        if not isinstance(node.op, CompressedRows):
            return self.dense(arg)
        inner, chosen = arg, None
        if isinstance(arg.op, Gather) and isinstance(arg.args[1].op, ArrayConstant):
            inner, chosen = arg.args[0], arg.args[1].op.array
        if isinstance(inner.op, Reshape):
            (inner,) = inner.args
        span = self.spans.get(inner)
        if span is None or not is_concrete(span.flat.shape) or not _is_computed(span.flat):
            return self.dense(arg)
        positions = span.positions
        return gather(span.flat, array_constant(positions if chosen is None else positions[chosen]))

    def dense(self, node: Node) -> Node:
        """The array as a dense array."""
        if node not in self.made:
            span = self.spans[node]
            if span.strides == _strides(span.shape):
                self.made[node] = reshape(span.flat, span.shape)
            else:
                self.made[node] = Node.of(Spread(span.shape, span.strides), (span.flat,))
        return self.made[node]

    def _span(self, node: Node) -> MemorySpan | None:
        if isinstance(node.op, Slice):
            return self._slice(node)
        if isinstance(node.op, Pad):
            return self._pad(node)
        return self._elementwise(node) if isinstance(node.op, ElementwiseOp) else None

    def _whole(self, node: Node) -> MemorySpan:
        return self.spans.get(node) or MemorySpan(flatten(self.dense(node)), node.shape, _strides(node.shape))

    def _slice(self, node: Node) -> MemorySpan | None:
        op = op_of(node, Slice)
        (arg,) = node.args
        starts = all(isinstance(k, int) for k in op.start)
        if not starts or any(step != 1 for step in op.step) or not _has_gaps(node):
            return None
        return _cut(self._whole(arg), op.start, node.shape)

    def _elementwise(self, node: Node) -> MemorySpan | None:
        arrays = [a for a in node.args if a.shape and not _is_one_value(a)]
        if not any(a in self.spans for a in arrays):
            return None
        found = [self._whole(a) for a in arrays]
        if any(f.strides != found[0].strides for f in found):
            return None
        flats = {a: f.flat for a, f in zip(arrays, found, strict=True)}
        length = next(iter(flats.values())).shape
        repeated = {a for a in node.args if a.shape and a not in flats}
        args = [
            broadcast_to(self.dense(a.args[0]), length) if a in repeated else flats.get(a) or self.dense(a)
            for a in node.args
        ]
        made = Node.of(node.op, tuple(args))
        return MemorySpan(made, node.shape, found[0].strides)

    def _pad(self, node: Node) -> MemorySpan | None:
        op = op_of(node, Pad)
        span = self.spans.get(node.args[0])
        strides = _strides(node.shape)
        if span is None or span.strides != strides or any(step != 1 for step in op.step):
            return None
        starts = all(isinstance(k, int) for k in op.start)
        if not isinstance(span.flat.op, ElementwiseOp) or not starts:
            return None
        gaps = tuple(
            (d * inner, outer)
            for d, inner, outer in zip(span.shape[1:], strides[1:], strides, strict=False)
            if d * inner != outer
        )
        first = sum(k * s for k, s in zip(op.start, strides, strict=True))
        cleared = Node.of(Cleared(gaps), (span.flat,))
        return MemorySpan(Node.of(Pad((first,), (1,), (prod(node.shape),)), (cleared,)), node.shape, strides)


def _cut(whole: MemorySpan, start: Sequence[int], dims: Shape) -> MemorySpan | None:
    """The span of a slice; None if its gaps are too large a part of it."""
    length = _length(dims, whole.strides)
    if _number(length) > MAX_STRETCH * _number(prod(dims)):
        return None
    first = sum(k * s for k, s in zip(start, whole.strides, strict=True))
    return MemorySpan(slice_axes(whole.flat, (first,), (length,), (1,)), dims, whole.strides)


def _is_computed(flat: Node) -> bool:
    """Whether a span is a function of others, or a slice of one."""
    while isinstance(flat.op, Slice):
        (flat,) = flat.args
    return isinstance(flat.op, ElementwiseOp)


def _strides(dims: Shape) -> tuple[int, ...]:
    return tuple(prod(dims[k + 1 :]) for k in range(len(dims)))


def _length(dims: Shape, strides: Sequence[int]) -> int:
    """The number of elements from the first element of an array to the last."""
    return 1 + sum((d - 1) * s for d, s in zip(dims, strides, strict=True))


def _number(size: Dim) -> int:
    if isinstance(size, int):
        return size
    return int(size.subs(dict.fromkeys(size.free_symbols, ASSUMED_LENGTH)))


def _is_one_value(node: Node) -> bool:
    """Whether an array is one number, repeated."""
    return isinstance(node.op, Broadcast) and not node.op.axes


def _is_known(dims: Shape) -> bool:
    """Whether all dimensions but the first are numbers, and none is zero."""
    return all(isinstance(d, int) for d in dims[1:]) and 0 not in dims


def _has_gaps(node: Node) -> bool:
    """Whether an array is a part of another with gaps in memory."""
    op = node.op
    if isinstance(op, Spread):
        return True
    return isinstance(op, Slice) and len(node.shape) > 1 and node.shape[1:] != node.args[0].shape[1:]


def _meets_gaps(node: Node) -> bool:
    """Whether an operation reads or writes arrays with gaps."""
    if isinstance(node.op, Pad) and len(node.shape) > 1:
        return node.args[0].shape[1:] != node.shape[1:]
    return not isinstance(node.op, Slice) and any(_has_gaps(a) for a in node.args)

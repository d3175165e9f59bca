"""Stencils that only a sparse matrix reads, computed on contiguous ranges of memory.

A slice of an array (m, n) has a gap in memory after every row, and NumPy's functions (also compiled ones)
pay for each row. With the strides s of the array, element i of a slice is Σ_k s_k i_k places after its first
one, and the same holds for all slices of arrays of this shape. Elementwise functions of slices can therefore
be evaluated on the ranges of memory that contain them, gaps included: this computes some elements that
nobody reads, but in one call. The sparse matrix gathers its entries from the result and skips the gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from symad.core.graph import Graph, Node, op_of, rebuild, topological
from symad.ops.arrays.gathering import Gather, gather
from symad.ops.basic.arithmetic import ElementwiseOp
from symad.ops.basic.shaping import (
    Broadcast,
    Pad,
    Reshape,
    Slice,
    broadcast_to,
    flatten,
    slice_axes,
)
from symad.ops.basic.sources import ArrayConstant, array_constant
from symad.ops.sparse.csr import CompressedRows

MAX_STRETCH = 1.5
"""A range may have at most this many times as many elements as the slice in it.

Gradients of Rosenbrock's function in rows take 0.75 to 0.79 of the time up to 1.5, and 1.03 at 2; the entries
of a sparse Hessian take 0.97 to 1.05 and 1.34 (bench_layout_thresholds.py, "stretch").
"""


class Range(NamedTuple):
    """An array of ``shape`` inside of a flat array: element i is at Σ_k strides_k i_k."""

    flat: Node
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def positions(self) -> np.ndarray:
        """The positions of the elements in the flat array, in row-major order."""
        grid = np.indices(self.shape).reshape(len(self.shape), -1)
        return np.tensordot(self.strides, grid, 1)


def flatten_stencils(graph: Graph) -> Graph:
    """The graph with arrays that only sparse matrices read evaluated on ranges of memory."""
    matrices = [node for node in graph.output_nodes if isinstance(node.op, CompressedRows)]
    if not matrices:
        return graph
    ranges = _Ranges(graph.nodes)
    replaced = {arg: made for node in matrices for arg in node.args if (made := ranges.part(arg)) is not None}
    new = dict(zip(matrices, (_with_args(node, replaced) for node in matrices), strict=True))
    outputs = rebuild(graph, new)
    if not replaced or any(node in ranges.evaluated for node in topological(outputs)):
        return graph  # arrays with other readers would be computed twice: `memory_spans` treats them
    return Graph(graph.input_nodes, outputs, graph.structure, graph.name, graph.report)


def reads_ranges(graph: Graph) -> bool:
    """Whether elements in gaps are computed: floating-point warnings may then concern only these elements."""
    matrices = [node for node in graph.output_nodes if isinstance(node.op, CompressedRows)]
    tables = [arg.args[0] for node in matrices for arg in node.args if isinstance(arg.op, Gather)]
    return any(not isinstance((t.args[0] if isinstance(t.op, Slice) else t).op, Reshape) for t in tables)


def _with_args(node: Node, replaced: dict[Node, Node]) -> Node:
    return Node.of(node.op, tuple(replaced.get(arg, arg) for arg in node.args))


class _Ranges:
    """The ranges of the arrays of a graph that have one."""

    def __init__(self, order: Sequence[Node]) -> None:
        self.found: dict[Node, Range | None] = {}
        self.evaluated: set[Node] = set()
        """Elementwise nodes that are evaluated on ranges."""
        pads = (node for node in order if isinstance(node.op, Pad) and all(s == 1 for s in node.op.step))
        self.padded = {node.args[0]: node for node in pads if _is_known(node)}

    def part(self, node: Node) -> Node | None:
        """The replacement of a part of a matrix; None if it has no range, or is not computed."""
        inner, chosen = node, None
        if isinstance(node.op, Gather) and isinstance(node.args[1].op, ArrayConstant):
            inner, chosen = node.args[0], node.args[1].op.array
        if isinstance(inner.op, Reshape):
            (inner,) = inner.args
        before = set(self.evaluated)
        found = self.range(inner) if len(inner.shape) > 1 else None
        if found is None or (self.evaluated == before and not _computed(inner)):
            return None
        positions = found.positions
        return gather(found.flat, array_constant(positions if chosen is None else positions[chosen]))

    def range(self, node: Node) -> Range | None:
        """The range of an array."""
        if node not in self.found:
            self.found[node] = self._range(node) if node.shape and _is_known(node) else None
        return self.found[node]

    def _range(self, node: Node) -> Range | None:
        if isinstance(node.op, Slice):
            return self._slice(node)
        found = self._elementwise(node) if isinstance(node.op, ElementwiseOp) else None
        if found is None and node in self.padded:
            whole = self.padded[node]
            return self._cut(_whole(whole), op_of(whole, Pad).start, node.shape)
        return found

    def _slice(self, node: Node) -> Range | None:
        op = op_of(node, Slice)
        if any(step != 1 for step in op.step):
            return None
        (arg,) = node.args
        inside = self.range(arg) if isinstance(arg.op, ElementwiseOp) else None
        return self._cut(inside or _whole(arg), op.start, node.shape)

    def _cut(self, whole: Range, start: Sequence[int], shape: Sequence[int]) -> Range | None:
        dims = tuple(int(d) for d in shape)
        first = sum(int(k) * s for k, s in zip(start, whole.strides, strict=True))
        length = 1 + sum((d - 1) * s for d, s in zip(dims, whole.strides, strict=True))
        if not prod(dims) or length > MAX_STRETCH * prod(dims):
            return None
        return Range(slice_axes(whole.flat, (first,), (length,), (1,)), dims, whole.strides)

    def _elementwise(self, node: Node) -> Range | None:
        arrays = [a for a in node.args if a.shape and not is_one_value(a)]
        found = [self.range(a) for a in arrays]
        if not found or found[0] is None or any(f is None or f.strides != found[0].strides for f in found):
            return None
        first = found[0]
        flats = {a: f.flat for a, f in zip(arrays, found, strict=True) if f is not None}
        length = next(iter(flats.values())).shape
        args = [flats.get(a) or (broadcast_to(a.args[0], length) if a.shape else a) for a in node.args]
        made = Node.of(node.op, tuple(args))
        self.evaluated.add(node)
        return Range(made, first.shape, first.strides)


def _is_known(node: Node) -> bool:
    """Whether all dimensions of an array are known."""
    return all(isinstance(d, int) for d in node.shape)


def is_one_value(node: Node) -> bool:
    """Whether an array is one number, repeated."""
    return isinstance(node.op, Broadcast) and not node.op.axes


def _computed(node: Node) -> bool:
    """Whether an array is a function of others, or a slice of one."""
    while isinstance(node.op, Slice):
        node = node.args[0]
    return isinstance(node.op, ElementwiseOp)


def _whole(node: Node) -> Range:
    """An array as a range that covers the whole of it."""
    dims = tuple(int(d) for d in node.shape)
    strides = tuple(prod(dims[k + 1 :]) for k in range(len(dims)))
    return Range(flatten(node), dims, strides)

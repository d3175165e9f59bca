"""Sums of parts of a matrix, each written directly to its place: blocks, and arrays on diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symad.core.dims import Dim, Shape, size
from symad.core.graph import Graph, Node, Op, shape
from symad.core.questions import Array, Count, Nodes, Values, definition, evaluate, flops
from symad.numeric.passes.rewriting import with_results
from symad.ops.arrays.stacking import Concatenate
from symad.ops.basic.arithmetic import signed_sum
from symad.ops.basic.contraction import Einsum, contract
from symad.ops.basic.shaping import Reshape, pad, reshape
from symad.ops.basic.sources import eye

Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Mosaic(Op):
    """A matrix filled by blocks; block k, of ``shapes[k]``, begins at ``starts[k]``.

    An argument has the elements of its block in row-major order; its axes are those of the block, or a
    subdivision of them.
    """

    shape: Pair
    starts: tuple[Pair, ...]
    shapes: tuple[Pair, ...]


@shape(Mosaic)
def mosaic_shape(op: Mosaic, args: Nodes) -> Shape:
    """The shape of the whole matrix."""
    return op.shape


@definition.dispatch
def mosaic_definition(op: Mosaic, y: Node) -> Node:
    """The sum of the padded blocks."""
    blocks = (reshape(a, shape) for a, shape in zip(y.args, op.shapes, strict=True))
    return signed_sum((1, pad(b, start, op.shape)) for b, start in zip(blocks, op.starts, strict=True))


@evaluate.dispatch
def mosaic_evaluate(op: Mosaic, values: Values) -> Array:
    """The matrix with each block written at its first row and column."""
    result = np.empty(op.shape, np.result_type(*values))
    for (i, j), (m, n), block in zip(op.starts, op.shapes, values, strict=True):
        result[i : i + m, j : j + n] = np.reshape(block, (m, n))
    return result


@flops.dispatch
def mosaic_flops(op: Mosaic, y: Node) -> Count:
    """Moving elements costs no operations."""
    return 0


def in_mosaics(graph: Graph) -> Graph:
    """The graph with results that are concatenations of concatenations as one array with blocks."""
    return with_results(graph, map(_mosaic, graph.output_nodes))


def _mosaic(node: Node) -> Node:
    nested = isinstance(node.op, Concatenate) and any(isinstance(a.op, Concatenate) for a in node.args)
    if not nested or len(node.shape) != 2 or not all(isinstance(d, int) for d in node.shape):
        return node
    placed: list[tuple[Shape, Node]] = []
    todo: list[tuple[Shape, Node]] = [((0, 0), node)]
    while todo:
        start, part = todo.pop()
        if not isinstance(part.op, Concatenate):
            placed.append((start, part))
            continue
        axis = part.op.axis
        for arg in part.args:
            todo.append((start, arg))
            start = (*start[:axis], start[axis] + arg.shape[axis], *start[axis + 1 :])
    placed.sort(key=lambda pair: pair[0])
    starts, blocks = zip(*placed, strict=True)
    shapes = tuple(block.shape for block in blocks)
    return Node.of(Mosaic(node.shape, starts, shapes), tuple(map(_finer, blocks)))


def _finer(block: Node) -> Node:
    """The array that a block reshapes, if its axes subdivide those of the block; else the block."""
    if isinstance(block.op, Reshape) and only_cuts(block.shape, block.args[0].shape):
        return block.args[0]
    return block


def only_cuts(axes: Sequence[Dim], finer: Sequence[Dim]) -> bool:
    """Whether each axis is a product of consecutive finer axes, so that any view of it can be split so."""
    rest = list(finer)
    for d in axes:
        length = 1
        while rest and isinstance(rest[0], int) and length < d:
            length *= rest.pop(0)
        while rest and rest[0] == 1:
            rest.pop(0)
        if length != d:
            return False
    return not rest


# ---- arrays on diagonals -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AddDiagonal(Op):
    """y = x + sign·d on the diagonal where axes of x with equal labels have equal positions, y = x elsewhere.

    Arguments: x, whose axes have the ``labels``, some of them equal; and d, whose axes have the labels
    ``part``, all of them different.
    """

    labels: tuple[int, ...]
    part: tuple[int, ...]
    sign: int

    @property
    def spec(self) -> str:
        """The einsum subscripts of the diagonal of x, with its axes in the order of ``d``."""
        return Einsum((self.labels,), self.part).spec


def on_diagonal(whole: Node, part: Node, labels: tuple[int, ...], own: tuple[int, ...], sign: int) -> Node:
    """The sum x + sign·d; see `AddDiagonal`."""
    return Node.of(AddDiagonal(labels, own, sign), (whole, part))


@shape(AddDiagonal)
def add_diagonal_shape(op: AddDiagonal, args: Nodes) -> Shape:
    """The shape of x."""
    return args[0].shape


@flops.dispatch
def add_diagonal_flops(op: AddDiagonal, y: Node) -> Count:
    """One addition for each element of the diagonal."""
    return size(y.args[1].shape)


@definition.dispatch
def add_diagonal_definition(op: AddDiagonal, y: Node) -> Node:
    """x + sign·d times an identity matrix for each axis that repeats a label."""
    axes: list[int] = []
    factors, labels = [y.args[1]], [op.part]
    for label, length in zip(op.labels, y.shape, strict=True):
        axis = label if label not in axes else max(*op.labels, *axes) + 1
        axes.append(axis)
        if axis != label:
            factors.append(eye(length))
            labels.append((label, axis))
    return signed_sum([(1, y.args[0]), (op.sign, contract(labels, tuple(axes), *factors))])


@evaluate.dispatch
def add_diagonal_evaluate(op: AddDiagonal, values: Values) -> Array:
    """The sum, in a new array."""
    whole, part = values
    result = np.array(whole, dtype=np.result_type(whole, part))
    np.einsum(op.spec, result)[...] += op.sign * part
    return result

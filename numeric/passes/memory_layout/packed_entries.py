"""Arrays of scalars that a scalar graph returns, as one op; its entries may hold many points.

A scalar graph computes with numbers and arranges them into arrays last: a Jacobian is a reshaped stack of its
entries. As one op these arrays accept batches of points, whose axes come first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from symad.core.dims import Shape, size
from symad.core.graph import Graph, Node, Op, shape
from symad.core.questions import Array, Nodes, Values, definition, evaluate
from symad.errors import LoweringError, ShapeError
from symad.higher_order.remat import Remat
from symad.numeric.passes.algebra.definitions import SCALAR_OPS
from symad.numeric.passes.rewriting import with_results
from symad.ops.arrays.stacking import Stack, pack_scalars, stack
from symad.ops.basic.shaping import Reshape, reshape
from symad.ops.basic.sources import ArrayConstant, constant
from symad.ops.sparse.csr import CompressedRows


@dataclass(frozen=True, eq=False)
class Pack(Op):
    """Scalars in row-major order as an array of ``shape``."""

    shape: Shape


@shape(Pack)
def pack_shape(op: Pack, args: Nodes) -> Shape:
    if any(a.shape for a in args) or len(args) != size(op.shape):
        raise ShapeError(f"{len(args)} entries were given for an array of shape {op.shape}")
    return op.shape


@evaluate.dispatch
def pack_evaluate(op: Pack, values: Values) -> Array:
    return np.array(values).reshape(op.shape)


@definition.dispatch
def pack_definition(op: Pack, y: Node) -> Node:
    return reshape(stack(list(y.args)), op.shape)


@dataclass(frozen=True, eq=False)
class SparsePack(Op):
    """Scalars as the stored entries of a sparse matrix, row by row."""

    matrix: CompressedRows


@shape(SparsePack)
def sparse_pack_shape(op: SparsePack, args: Nodes) -> Shape:
    if any(a.shape for a in args) or len(args) != len(op.matrix.columns):
        raise ShapeError(f"{len(args)} entries were given for {len(op.matrix.columns)} stored ones")
    return op.matrix.shape


@evaluate.dispatch
def sparse_pack_evaluate(op: SparsePack, values: Values) -> Array:
    return evaluate(op.matrix, (np.array(values),))


@definition.dispatch
def sparse_pack_definition(op: SparsePack, y: Node) -> Node:
    return Node.of(op.matrix, (pack_scalars(y.args, (len(y.args),)),))


def entries_of(node: Node) -> Nodes | None:
    """The scalars of an array that is a stack of scalars; None for other arrays."""
    inner = node.args[0] if isinstance(node.op, Reshape) else node
    if isinstance(inner.op, Pack) or (isinstance(inner.op, Stack) and not inner.args[0].shape):
        return inner.args
    return None


def stored_entries(node: Node) -> Nodes | None:
    """The stored entries, row by row, of a sparse matrix made of scalars; None for other nodes."""
    op = node.op
    if isinstance(op, SparsePack):
        return node.args
    if not isinstance(op, CompressedRows) or len(node.args) != 1:
        return None
    (arg,), (places,) = node.args, op.places_of
    if not np.array_equal(places, np.arange(len(op.columns))):
        return None
    return constants_of(arg) if isinstance(arg.op, ArrayConstant) else entries_of(arg)


def constants_of(node: Node) -> Nodes:
    """The numbers of a constant array, row by row."""
    assert isinstance(node.op, ArrayConstant)
    return tuple(constant(value) for value in node.op.array.ravel().tolist())


def scalars_of(output: Node) -> Nodes:
    """The scalars of one output, row by row.

    Raises:
        LoweringError: the output is computed as an array.
    """
    entries = constants_of(output) if isinstance(output.op, ArrayConstant) else _entries(output)
    if entries is None:
        raise LoweringError("backend 'c' takes graphs of scalars; this one holds arrays inside")
    return entries


def output_scalars(graph: Graph) -> Nodes:
    """The scalars of all outputs, in one flat sequence."""
    return tuple(scalar for output in graph.output_nodes for scalar in scalars_of(output))


def _entries(output: Node) -> Nodes | None:
    """The scalars of an output; None if it is computed as an array."""
    if not output.shape:
        return (output,)
    sparse = isinstance(output.op, (CompressedRows, SparsePack))
    return stored_entries(output) if sparse else entries_of(output)


def is_scalar(graph: Graph) -> bool:
    """Whether all values are scalars, packed into arrays only in outputs, and none comes from an array op."""
    return _all_scalars(graph, _is_of_scalars)


def _is_of_scalars(node: Node) -> bool:
    for arg in node.args:
        if arg.shape:
            return False
    return not isinstance(node.op, Remat)


def is_straight(graph: Graph) -> bool:
    """Whether all values are scalars made by functions of numbers, so that no array pass applies."""
    return _all_scalars(graph, lambda node: isinstance(node.op, SCALAR_OPS))


def _all_scalars(graph: Graph, allowed: Callable[[Node], bool]) -> bool:
    if any(node.shape for node in graph.input_nodes):
        return False
    arrays: set[Node] = set()
    for output in graph.output_nodes:
        if output.shape and not isinstance(output.op, ArrayConstant) and _entries(output) is None:
            return False
        waiting = [output] if output.shape else []
        while waiting:
            arrays.update(waiting)
            waiting = [arg for node in waiting for arg in node.args if arg.shape]
    return all((not node.shape and allowed(node)) or node in arrays for node in graph.nodes)


def pack_entries(graph: Graph) -> Graph:
    """A scalar graph with its arrays as `Pack` and `SparsePack`."""
    made = []
    for output in graph.output_nodes:
        entries, stored = entries_of(output) if output.shape else None, stored_entries(output)
        if isinstance(output.op, CompressedRows) and stored is not None:
            made.append(Node.of(SparsePack(output.op), stored))
        else:
            made.append(output if entries is None else Node.of(Pack(output.shape), entries))
    return with_results(graph, made)


def pack_points(graph: Graph) -> Graph:
    """The result of `pack_entries` if all outputs can hold many points; otherwise the graph itself."""
    dense = all(entries_of(output) is not None for output in graph.output_nodes if output.shape)
    return pack_entries(graph) if graph.input_nodes and dense and is_scalar(graph) else graph

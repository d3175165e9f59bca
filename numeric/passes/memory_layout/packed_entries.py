"""Arrays of scalars at the end of scalar graphs: one op, whose entries may be those of many points.

A scalar graph computes with numbers and puts them into arrays last: a Jacobian is a reshaped stack of its
entries. Written as one op these arrays take batches of points: the axes of the batch lead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symad.core.dims import Shape, size
from symad.core.graph import Graph, Node, Op, shape, topological
from symad.core.questions import Nodes, Values, definition, evaluate
from symad.errors import ShapeError
from symad.ops.arrays.shaping import Reshape, reshape
from symad.ops.arrays.stacking import Stack, stack


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
def pack_evaluate(op: Pack, values: Values) -> Any:
    return np.array(values).reshape(op.shape)


@definition.dispatch
def pack_definition(op: Pack, y: Node) -> Node:
    return reshape(stack(list(y.args)), op.shape)


def entries_of(node: Node) -> Nodes | None:
    """The scalars of an array that is a stack of them; None for other arrays."""
    inner = node.args[0] if isinstance(node.op, Reshape) else node
    if isinstance(inner.op, Pack) or (isinstance(inner.op, Stack) and not inner.args[0].shape):
        return inner.args
    return None


def is_scalar(graph: Graph) -> bool:
    """Whether everything is computed from numbers in numbers, which may stand in arrays at the end."""
    if any(node.shape for node in graph.input_nodes) or not graph.input_nodes:
        return False
    found = [entries_of(o) if o.shape else (o,) for o in graph.output_nodes]
    if any(entries is None for entries in found):
        return False
    roots = [node for entries in found for node in entries or ()]
    return all(not node.shape and not hasattr(node.op, "body") for node in topological(roots))


def pack_entries(graph: Graph) -> Graph:
    """A scalar graph with its arrays as `Pack`; other graphs as they are."""
    if not is_scalar(graph):
        return graph
    made = []
    for output in graph.output_nodes:
        entries = entries_of(output) if output.shape else None
        made.append(output if entries is None else Node.of(Pack(output.shape), entries))
    return Graph(graph.input_nodes, tuple(made), graph.structure, graph.name, graph.report)

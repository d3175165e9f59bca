"""A part of a graph as one op, so that its intermediate values are recomputed when they are needed.

Equal nodes are one node, and a node is stored as long as a derivative reads it. The inner nodes of a part
that is an op are not nodes of the graph: the derivative of the op starts from the part's arguments and
recomputes them. This derivative is again such a part, so the same holds for derivatives of every order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symad.core.dims import Shape, size
from symad.core.graph import ZERO, Graph, Node, Op, rebuild, shape, topological
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
from symad.higher_order.scan import applied, body_of, flops_of, outer_nodes
from symad.numbers.values import outputs_at
from symad.ops.arrays.stacking import concatenate
from symad.ops.basic.shaping import cut, flatten
from symad.ops.basic.sources import fresh_input
from symad.transforms.batches import batch_outputs
from symad.transforms.cotangents import pull
from symad.transforms.tangents import push


@dataclass(frozen=True, eq=False)
class Remat(Op):
    """body(x_1, ..., x_k): the one output of a graph of `Local` inputs, an array of its shape."""

    body: Graph


@dataclass(frozen=True, eq=False)
class Fallback(Op):
    """y if all elements of c are from ``low`` to ``high``, else body(c, y, x_1, ..., x_k).

    The body is computed only then. In exact arithmetic y is the body; made after differentiation.
    """

    body: Graph
    low: float
    high: float


def fallback(c: Node, y: Node, whole: Node, xs: Sequence[Node], low: float, high: float) -> Node:
    """y, or where c leaves a range, the node ``whole``, made of c, y and the nodes ``xs``."""
    args = tuple(dict.fromkeys((c, y, *xs)))
    return Node.of(Fallback(body_of(args, [whole]), low, high), args)


def remat(fresh: Sequence[Node], outputs: Sequence[Node], args: Sequence[Node]) -> list[Node]:
    """A traced part, applied to arguments: outputs from inputs made by `fresh_input`.

    Values from outside that the outputs use become arguments too. Several outputs are packed in one flat
    array.
    """
    whole = outputs[0] if len(outputs) == 1 else concatenate([flatten(o) for o in outputs])
    outer = outer_nodes(fresh, [whole])
    y = Node.of(Remat(body_of([*fresh, *outer], [whole])), (*args, *outer))
    return [y] if len(outputs) == 1 else cut(y, [o.shape for o in outputs])


@shape(Remat)
@shape(Fallback)
def remat_shape(op: Remat | Fallback, args: Nodes) -> Shape:
    return op.body.output_nodes[0].shape


@jvp.dispatch
def remat_jvp(op: Remat, y: Node, tangents: Tangents) -> Tangent:
    """The tangent of the body, from the arguments and their tangents."""
    active = [k for k, t in enumerate(tangents) if isinstance(t, Node)]
    values = [fresh_input(x.shape) for x in y.args]
    dots = [fresh_input(y.args[k].shape) for k in active]
    along = {values[k]: dot for k, dot in zip(active, dots, strict=True)}
    (y_dot,) = push([applied(op.body, tuple(values))], along)
    if not isinstance(y_dot, Node):
        return ZERO
    given = [*y.args, *(t for t in tangents if isinstance(t, Node))]
    return _part([*values, *dots], [y_dot], given)[0]


def _part(fresh: Sequence[Node], outputs: Sequence[Node], args: Sequence[Node]) -> list[Node]:
    """The part, without arguments that it does not use."""
    read = set(topological(outputs))
    kept = [k for k, node in enumerate(fresh) if node in read]
    return remat([fresh[k] for k in kept], outputs, [args[k] for k in kept])


@transpose.dispatch
def remat_transpose(op: Remat, y: Node, y_bar: Node, linear: Flags) -> Tangents:
    """The cotangents, by the transposed body as another part."""
    values = [fresh_input(x.shape) for x in y.args]
    bar = fresh_input(y.shape)
    wrt = [v for v, flag in zip(values, linear, strict=True) if flag]
    bars = pull([applied(op.body, tuple(values))], [bar], wrt)
    present = [b for b in bars if isinstance(b, Node)]
    parts = iter(_part([*values, bar], present, [*y.args, y_bar])) if present else iter(())
    found = iter([next(parts) if isinstance(b, Node) else ZERO for b in bars])
    return tuple(next(found) if flag else ZERO for flag in linear)


@batch.dispatch
def remat_batch(op: Remat, args: Nodes, batched: Flags, count: Count) -> Node:
    values = [fresh_input(a.shape) for a in args]
    pairs = list(zip(op.body.input_nodes, values, batched, strict=True))
    made = rebuild(op.body.output_nodes, {x: v for x, v, flag in pairs if not flag})
    outputs = batch_outputs(made, {x: v for x, v, flag in pairs if flag}, count)
    return remat(values, outputs, args)[0]


@definition.dispatch
def remat_definition(op: Remat, y: Node) -> Node:
    """The part's nodes in the graph itself."""
    return applied(op.body, y.args)


@flops.dispatch
def remat_flops(op: Remat, y: Node) -> Count:
    return flops_of(op.body)


@evaluate.dispatch
def remat_evaluate(op: Remat, values: Values) -> Array:
    return outputs_at(op.body, *values)[0]


def in_range(c: Array, low: float, high: float) -> bool:
    """Whether all elements are from low to high; NaN is not."""
    return not np.size(c) or bool(low <= np.min(c) and np.max(c) <= high)


@definition.dispatch
def fallback_definition(op: Fallback, y: Node) -> Node:
    """The body, which is right everywhere."""
    return applied(op.body, y.args)


@flops.dispatch
def fallback_flops(op: Fallback, y: Node) -> Count:
    return 2 * size(y.args[0].shape)


@evaluate.dispatch
def fallback_evaluate(op: Fallback, values: Values) -> Array:
    return values[1] if in_range(values[0], op.low, op.high) else outputs_at(op.body, *values)[0]

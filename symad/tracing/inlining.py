"""Graphs called inside a traced function: their nodes become part of the graph that is being traced.

    slope = symad.gradient(f, "x")
    symad.trace(lambda x: (slope(x) ** 2).sum(), [(n,)])

is a function of a gradient, and can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from symad.core.arrays import Array
from symad.core.dims import broadcast_shapes, format_shape, same_shape, size, solve_dims
from symad.core.graph import Graph, Node, op_of, pack, rebuild
from symad.errors import ShapeError
from symad.higher_order.captured import Captured, captured_nodes
from symad.ops.basic.shaping import broadcast_to, reshape
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.sessions import is_tracing, seen
from symad.tracing.proxies.wrapped import Wrapped, number

if TYPE_CHECKING:
    from symad.core.arrays import ArrayLike


def is_traced(graph: Graph, values: Sequence[ArrayLike]) -> bool:
    """True if any of the values, or of those that the graph uses, belongs to a function being traced."""
    return any(isinstance(v, Wrapped) for v in values) or (is_tracing() and bool(captured_nodes(graph)))


def inline(graph: Graph, values: Sequence[Proxy] | tuple[Proxy | Array, ...]) -> Array | tuple[Proxy, ...]:
    """The graph's outputs at traced values, in the graph's structure; other values become constants.

    Dimension symbols of the graph are bound to the dimensions of the values, which may be symbols too. A
    graph of scalars takes arrays that broadcast together, elementwise.

    Raises:
        ShapeError: a value does not have the shape of its input; the message names the input.
    """
    names = [str(symbol) for symbol in graph.inputs]
    nodes = [number(v) for v in values]
    if any(n.shape for n in nodes) and not any(node.shape for node in graph.input_nodes):
        return pack(graph.structure, [Proxy(o) for o in _elementwise(graph, nodes)])
    declared = [node.shape for node in graph.input_nodes]
    bound = graph.at(solve_dims(list(zip(names, declared, [n.shape for n in nodes], strict=True))))
    for name, asked, given in zip(names, bound.input_nodes, nodes, strict=True):
        if not same_shape(asked.shape, given.shape):
            raise ShapeError(
                f"{name} of {graph.name} has shape {format_shape(asked.shape)}, but the value given has "
                f"shape {format_shape(given.shape)}"
            )
    made = rebuild(bound.output_nodes, _outer(bound) | dict(zip(bound.input_nodes, nodes, strict=True)))
    return pack(graph.structure, [Proxy(node) for node in made])


def _outer(graph: Graph) -> dict[Node, Node]:
    """The values of enclosing functions that a graph uses, as values in the function being traced."""
    ops = {node: op_of(node, Captured) for node in captured_nodes(graph)}
    return {node: seen(op.node, op.owner) for node, op in ops.items()}


def _elementwise(graph: Graph, nodes: Sequence[Node]) -> list[Node]:
    """The outputs of a graph of scalars at arrays, whose axes lead in every output."""
    from symad.transforms.batches import batch_outputs  # which imports tracing, and that evaluation

    common = broadcast_shapes(*[n.shape for n in nodes])
    count = size(common)
    flat = [reshape(broadcast_to(n, common), (count,)) if n.shape else n for n in nodes]
    pairs = list(zip(graph.input_nodes, flat, strict=True))
    single = _outer(graph) | {symbol: n for symbol, n in pairs if not n.shape}
    made = batch_outputs(graph.output_nodes, {symbol: n for symbol, n in pairs if n.shape}, count, single)
    return [reshape(o, (*common, *o.shape[1:])) for o in made]

"""Graphs called inside a traced function: their nodes join the graph that is being traced.

    slope = symad.gradient(f, "x")
    symad.trace(lambda x: (slope(x) ** 2).sum(), [(n,)])

is a function of a gradient, and can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symad.dims import format_shape, same_shape, solve_dims
from symad.errors import EvaluationError, ShapeError
from symad.graph import Graph, pack, rebuild
from symad.proxy import Proxy
from symad.wrapped import Wrapped, number


def is_traced(values: Sequence[Any]) -> bool:
    """Whether any of the values belongs to a function being traced."""
    return any(isinstance(v, Wrapped) for v in values)


def inline(graph: Graph, values: Sequence[Any]) -> Any:
    """The graph's outputs at traced values, in the graph's structure; other values become constants.

    Dimension symbols of the graph are bound to the dimensions of the values, which may be symbols too.

    Raises:
        EvaluationError: too many or too few values.
        ShapeError: a value does not have the shape of its input; names the input.
    """
    names = [str(symbol) for symbol in graph.inputs]
    if len(values) != len(names):
        raise EvaluationError(
            f"{graph.name} takes {len(names)} values ({', '.join(names)}), but {len(values)} were given"
        )
    nodes = [number(v) for v in values]
    declared = [node.shape for node in graph.input_nodes]
    bound = graph.at(solve_dims(list(zip(names, declared, [n.shape for n in nodes], strict=True))))
    for name, asked, given in zip(names, bound.input_nodes, nodes, strict=True):
        if not same_shape(asked.shape, given.shape):
            raise ShapeError(
                f"{name} of {graph.name} has shape {format_shape(asked.shape)}, but the value given has "
                f"shape {format_shape(given.shape)}"
            )
    made = rebuild(bound.output_nodes, dict(zip(bound.input_nodes, nodes, strict=True)))
    return pack(graph.structure, [Proxy(node) for node in made])

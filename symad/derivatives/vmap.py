"""Batching: a graph applied along a new leading axis. The rules are in the files of the ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import sympy

from symad.core.arguments import leaves_of
from symad.core.graph import Graph, Node, rebuild
from symad.core.identifiers import counted
from symad.core.process import without_collecting
from symad.core.signatures import Inputs, Traceable
from symad.core.structures import Structure, VectorOf
from symad.errors import ShapeError
from symad.ops.arrays.stacking import element
from symad.ops.basic.contraction import permute
from symad.ops.basic.sources import input_node, symbol_of
from symad.tracing import as_graph
from symad.tracing.proxies.sessions import is_tracing
from symad.tracing.wrt import symbol_like
from symad.transforms.batches import batch_outputs

Axes: TypeAlias = "int | Sequence[Axes] | Mapping[str, Axes] | None"
"""The position of the batch axis: one for all arguments, or one for each argument or part of it."""


@without_collecting
def vmap(f: Traceable, in_axes: Axes = 0, inputs: Inputs | None = None) -> Graph:
    """``f`` over a batch: every output gets a leading batch axis.

    Args:
        f: an argument of `trace`.
        in_axes: for each argument the position of its batch axis, or None if all points share it; one int for
            all arguments. For a dict, list or dataclass of arrays it is one position for all of them, or
            such an object of positions.
        inputs: order and grouping of the arguments, as in `trace`.

    Returns:
        A graph whose batched inputs have one more axis; the arrays of a call determine its length.

    Raises:
        TraceError: ``f`` cannot be traced, or is a Python function without ``inputs``.
        ShapeError: ``in_axes`` does not fit the arguments, or leaves all of them without a batch axis.

    Example:
        >>> import numpy as np, symad
        >>> norms = symad.vmap(symad.trace(lambda u: u @ u, [(2,)]))
        >>> norms(np.array([[3.0, 4.0], [1.0, 0.0]]))
        array([25.,  1.])
    """
    graph = with_arrays(as_graph(f, inputs=inputs))
    arguments = graph.arguments
    if not _is_axis(in_axes) and not isinstance(in_axes, (list, tuple)):
        raise ShapeError(f"in_axes={in_axes!r} is not an int, or a list of ints and None")
    axes = tuple(in_axes) if isinstance(in_axes, (list, tuple)) else (in_axes,) * len(arguments)
    if len(axes) != len(arguments):
        raise ShapeError(
            f"in_axes has {counted(len(axes), 'entry', 'entries')}, but {graph.name} has "
            f"{counted(len(arguments), 'input')}"
        )
    spread = [
        axis
        for k, (given, a) in enumerate(zip(axes, arguments, strict=True))
        for axis in leaves_of(a.structure, given, f"in_axes[{k}]", _is_axis)
    ]
    if not all(map(_is_axis, spread)):
        raise ShapeError(f"in_axes={in_axes!r} is not an int, or a list of ints and None")
    if all(axis is None for axis in spread):
        raise ShapeError(f"in_axes={in_axes!r} leaves {graph.name} without an input that carries the batch")
    name = _free_name({str(s) for s in (*graph.inputs, *graph.dims)})
    # the values of enclosing functions have their own dimension symbols, possibly of this name
    kind = sympy.Dummy if is_tracing() else sympy.Symbol
    count = kind(name, integer=True, positive=True)
    nodes, replaced = [], {}
    for node, axis in zip(graph.input_nodes, spread, strict=True):
        if axis is None:
            nodes.append(node)
            continue
        rank = len(node.shape) + 1
        if not -rank <= axis < rank:
            raise ShapeError(
                f"in_axes: {symbol_of(node)} has {rank} axes with the batch axis; axis {axis} is not one"
            )
        position = axis % rank
        shape = (*node.shape[:position], count, *node.shape[position:])
        outer = input_node(symbol_like(str(symbol_of(node)), shape, set()), shape)
        nodes.append(outer)
        replaced[node] = permute(outer, (position, *(k for k in range(rank) if k != position)))
    outputs = batch_outputs(graph.output_nodes, replaced, count)
    return Graph(tuple(nodes), outputs, graph.structure, f"{graph.name}_vmap", "", None, graph.grouping)


def _is_axis(axis: object) -> bool:
    return axis is None or (isinstance(axis, int) and not isinstance(axis, bool))


def with_arrays(graph: Graph) -> Graph:
    """The graph with one array input in place of each vector of scalar inputs."""
    if not graph.grouping:
        return graph
    taken = {str(s) for s in (*graph.inputs, *graph.dims)}
    nodes: list[Node] = []
    replaced: dict[Node, Node] = {}
    rest = iter(graph.input_nodes)

    def whole(structure: Structure, name: str) -> Structure:
        if structure is None:
            nodes.append(next(rest))
        elif isinstance(structure, VectorOf):
            array = input_node(symbol_like(name, structure.shape, taken), structure.shape)
            replaced.update((next(rest), element(array, *place)) for place in np.ndindex(*structure.shape))
            nodes.append(array)
        else:
            items = tuple(whole(item, f"{name}_{k}") for k, item in enumerate(structure.items))
            return replace(structure, items=items)
        return None

    grouping = tuple(replace(a, structure=whole(a.structure, a.name)) for a in graph.grouping)
    outputs = rebuild(graph, {**{n: n for n in nodes}, **replaced})
    return Graph(tuple(nodes), outputs, graph.structure, graph.name, graph.report, None, grouping)


def _free_name(taken: set[str]) -> str:
    return next(name for name in ("B", "batch", *(f"batch{k}" for k in range(1000))) if name not in taken)

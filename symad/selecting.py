"""Choosing inputs (`wrt`) and naming the new inputs that derivatives take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
from sympy.tensor.array.expressions import ArraySymbol

from symad.dims import Shape, same_dim, size
from symad.errors import DerivativeError
from symad.graph import Graph, Node
from symad.ops.shaping import reshape
from symad.ops.sources import input_node


def select_wrt(graph: Graph, wrt: Any) -> tuple[tuple[Node, ...], bool]:
    """The input nodes that ``wrt`` selects, and whether it was one bare entry.

    Entries are symbols, names, or positions; None selects every input.

    Raises:
        DerivativeError: an entry is no input of the graph or stands twice, or a name fits several.
    """
    if wrt is None:
        return graph.input_nodes, False
    bare = not isinstance(wrt, (list, tuple, sympy.Tuple))
    entries = (wrt,) if bare else tuple(wrt)
    by_symbol = dict(zip(graph.inputs, graph.input_nodes, strict=True))
    chosen = tuple(
        by_symbol[e] if isinstance(e, sympy.Basic) and e in by_symbol else _input_of(graph, e)
        for e in entries
    )
    if len(set(chosen)) < len(chosen):
        raise DerivativeError(f"wrt={wrt!r} names an input of {graph.name} twice; name each once")
    return chosen, bare


def _input_of(graph: Graph, entry: Any) -> Node:
    """The input of a name or position, or an error."""
    symbols = graph.inputs
    if isinstance(entry, int) and not isinstance(entry, bool):
        if -len(symbols) <= entry < len(symbols):
            return graph.input_nodes[entry]
    elif isinstance(entry, str):
        hits = [k for k, s in enumerate(symbols) if str(s) == entry]
        if len(hits) > 1:
            raise DerivativeError(
                f"wrt={entry!r} names {len(hits)} inputs of {graph.name}; give the symbol itself"
            )
        if hits:
            return graph.input_nodes[hits[0]]
    names = ", ".join(map(str, symbols))
    raise DerivativeError(f"wrt={entry!r} is not an input of {graph.name}; its inputs are {names}")


def scalar_output(graph: Graph, what: str) -> Node:
    """The one output of a scalar function, as a node without axes; 1×1 arrays count as scalars.

    Raises:
        DerivativeError: several outputs, or an array.
    """
    if len(graph.output_nodes) == 1 and same_dim(size(graph.output_nodes[0].shape), 1):
        return reshape(graph.output_nodes[0], ())
    shapes = ", ".join(str(o.shape) for o in graph.output_nodes)
    raise DerivativeError(
        f"{what} needs a scalar function, but {graph.name} has outputs of shape {shapes}; use jacobian, or "
        "reduce it to one number first"
    )


def input_names(graph: Graph) -> set[str]:
    """The names taken by the inputs."""
    return {str(s) for s in graph.inputs}


def symbol_like(name: str, shape: Shape, taken: set[str]) -> Any:
    """A symbol for an array of this shape, with a name not taken; the name is added to ``taken``."""
    unique, k = name, 2
    while unique in taken:
        unique, k = f"{name}_{k}", k + 1
    taken.add(unique)
    if not shape:
        return sympy.Symbol(unique, real=True)
    if len(shape) == 2:
        return sympy.MatrixSymbol(unique, *shape)
    return ArraySymbol(unique, shape)


def tangent_inputs(nodes: Sequence[Node], suffix: str, taken: set[str]) -> tuple[Node, ...]:
    """New inputs of the shapes of some inputs, named ``x_dot`` for ``x``."""
    return tuple(
        input_node(symbol_like(f"{node.op.symbol}_{suffix}", node.shape, taken), node.shape)  # type: ignore[attr-defined]
        for node in nodes
    )


def cotangent_inputs(outputs: Sequence[Node], taken: set[str]) -> tuple[Node, ...]:
    """New inputs of the shapes of the outputs: ``y_bar``, or ``y1_bar``, ``y2_bar``, ..."""
    names = ["y_bar"] if len(outputs) == 1 else [f"y{k}_bar" for k in range(1, len(outputs) + 1)]
    return tuple(
        input_node(symbol_like(name, node.shape, taken), node.shape)
        for name, node in zip(names, outputs, strict=True)
    )


def value_labels(graph: Graph) -> tuple[str, ...]:
    """What the outputs of a function are called: by its name, several by numbers behind it."""
    if len(graph.output_nodes) == 1:
        return (graph.name,)
    return tuple(f"{graph.name}_{k}" for k in range(1, len(graph.output_nodes) + 1))


def with_suffix(nodes: Sequence[Node], suffix: str) -> tuple[str, ...]:
    """The names of inputs with ``_bar`` or ``_dot`` behind them."""
    return tuple(f"{node.op.symbol}_{suffix}" for node in nodes)  # type: ignore[attr-defined]

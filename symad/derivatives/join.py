"""Joining graphs: several functions of shared inputs as one graph."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from symad.core.arguments import Argument, Packing
from symad.core.graph import Graph, Node, Structure, TupleOf, leaves
from symad.core.signatures import Inputs, Traceable
from symad.errors import TraceError
from symad.ops.basic.sources import symbol_of
from symad.tracing import as_graph
from symad.tracing.wrt import value_part


def join(*functions: Traceable, inputs: Inputs | None = None) -> Graph:
    """One graph with the outputs of all functions, nodes shared: value, gradient and Hessian in one sweep.

    Inputs are shared by symbol, in the order in which they first appear; the outputs form a tuple with
    one entry for each function, in the structure of this function.

    Args:
        functions: arguments of `trace`.
        inputs: order and grouping of the arguments of all, as in `trace`.

    Returns:
        A graph; called, it gives the tuple.

    Raises:
        TraceError: nothing was given, one symbol has two shapes, or inputs are grouped in two ways.

    Example:
        >>> import sympy, symad
        >>> x = sympy.Symbol("x", real=True)
        >>> symad.join(symad.trace(x**2), symad.gradient(x**2))(3)
        (9, 6)
    """
    if not functions:
        raise TraceError("join needs at least one function")
    graphs = [as_graph(f, inputs=inputs) for f in functions]
    known: dict[sympy.Basic, Node] = {}
    for graph in graphs:
        for node in graph.input_nodes:
            symbol = symbol_of(node)
            if known.setdefault(symbol, node) is not node:
                raise TraceError(f"join: {symbol} has shape {known[symbol].shape} and {node.shape}")
    nodes = tuple(known.values())
    structures: tuple[Structure, ...] = tuple(graph.structure for graph in graphs)
    outputs = tuple(output for graph in graphs for output in graph.output_nodes)
    name = "_and_".join(g.name for g in graphs)
    return Graph(
        nodes, outputs, TupleOf(structures), name, "", None, _grouping(graphs), _packing(graphs, nodes)
    )


def _grouping(graphs: Sequence[Graph]) -> tuple[Argument, ...]:
    """The arguments of all graphs, in the order in which they first appear."""
    if not any(graph.grouping for graph in graphs):
        return ()
    argument_of: dict[Node, Argument] = {}
    for graph in graphs:
        first = 0
        for argument in graph.arguments:
            count = leaves(argument.structure)
            for node in graph.input_nodes[first : first + count]:
                if argument_of.setdefault(node, argument) != argument:
                    raise TraceError(
                        f"join: {symbol_of(node)} occurs in the arguments {argument_of[node].name} and "
                        f"{argument.name}, which group inputs in two ways; give inputs= to join"
                    )
            first += count
    return tuple(dict.fromkeys(argument_of.values()))


def _packing(graphs: Sequence[Graph], nodes: Sequence[Node]) -> Packing | None:
    """The inputs that packed code flattens, if all derivatives among the functions are by the same inputs."""
    place = {node: k for k, node in enumerate(nodes)}
    kept = [(g, g.packing) for g in graphs if g.packing is not None]
    x = {tuple(place[g.input_nodes[k]] for k in p.x) for g, p in kept}
    if len(x) != 1:
        return None
    v = tuple(dict.fromkeys(place[g.input_nodes[k]] for g, p in kept for k in p.v))
    results = tuple(value_part(g) if g.packing is None else g.packing.results for g in graphs)
    return Packing(x.pop(), v, results)

"""Joining graphs: several functions of shared inputs as one."""

from __future__ import annotations

from typing import Any

from symad.errors import TraceError
from symad.graph import Graph, Node, Structure, TupleOf
from symad.tracing import as_graph


def join(*functions: Any) -> Graph:
    """One graph with the outputs of all, nodes shared: value, gradient and Hessian in one sweep.

    Inputs are shared by symbol, in the order in which they first appear; the outputs form a tuple with
    one entry for each function, in its own structure.

    Raises:
        TraceError: nothing was given, or one symbol has two shapes.
    """
    if not functions:
        raise TraceError("join needs at least one function")
    graphs = [as_graph(f) for f in functions]
    inputs: dict[Any, Node] = {}
    for graph in graphs:
        for node in graph.input_nodes:
            symbol = node.op.symbol  # type: ignore[attr-defined]
            if inputs.setdefault(symbol, node) is not node:
                raise TraceError(f"join: {symbol} has shape {inputs[symbol].shape} and {node.shape}")
    structures: tuple[Structure, ...] = tuple(graph.structure for graph in graphs)
    outputs = tuple(output for graph in graphs for output in graph.output_nodes)
    return Graph(tuple(inputs.values()), outputs, TupleOf(structures), "_and_".join(g.name for g in graphs))

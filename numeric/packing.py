"""``packed=True`` for scipy.optimize: the inputs of a derivative as one flat vector, and flat results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from symad.core.arguments import PackedResult, Packing, Results, argument_of
from symad.core.dims import same_dim, size
from symad.core.graph import Graph, Node
from symad.core.signatures import Wrt
from symad.core.structures import Structure, TupleOf, leaves
from symad.numeric.entry_point import EntryParameter, Flat
from symad.numeric.passes.memory_layout.packed_entries import entries_of
from symad.ops.arrays.stacking import concatenate, pack_scalars
from symad.ops.basic.shaping import flatten, reshape
from symad.ops.basic.sources import ArrayConstant, constant, symbol_of
from symad.tracing.wrt import select, value_part


def packed_by(graph: Graph, wrt: Wrt | None) -> Graph:
    """The graph, marked such that its packed code has these inputs in x."""
    made = graph.packing or Packing((), (), value_part(graph))
    x = tuple(graph.input_nodes.index(node) for node in select(graph, wrt).nodes)
    packing = replace(made, x=x)
    return graph.with_outputs(
        graph.output_nodes, graph.structure, graph.name, graph.origin, graph.report, packing
    )


def packed(graph: Graph) -> tuple[Graph, list[EntryParameter]]:
    """The graph with flat results, and its inputs in the order of the parameters (x, v, others...).

    The vector x holds the inputs that a derivative is taken by, or all inputs if these are not known.
    """
    made = graph.packing or Packing(tuple(range(len(graph.input_nodes))), (), value_part(graph))
    x = [graph.input_nodes[k] for k in made.x]
    v = [graph.input_nodes[k] for k in made.v]
    parameters = [EntryParameter("x", "x", Flat(), tuple(x))]
    if v:
        parameters.append(EntryParameter("v", "v", Flat(), tuple(v)))
    parameters += _others(graph, {*x, *v})
    rest = iter(graph.output_nodes)
    outputs, structure = _results(made.results, rest)
    nodes = tuple(node for parameter in parameters for node in parameter.nodes)
    return Graph(nodes, tuple(outputs), structure, graph.name, graph.report), parameters


def _others(graph: Graph, taken: set[Node]) -> list[EntryParameter]:
    """The arguments outside of the vectors; of an argument that is partly in them, each other input."""
    made: list[EntryParameter] = []
    first = 0
    for argument in graph.arguments:
        count = leaves(argument.structure)
        nodes = graph.input_nodes[first : first + count]
        first += count
        left = tuple(node for node in nodes if node not in taken)
        if len(left) == count:
            made.append(
                EntryParameter(argument.name, argument.code or argument.name, argument.structure, nodes)
            )
        else:
            own = [argument_of(symbol_of(node)) for node in left]
            made += [EntryParameter(a.name, a.code, None, (node,)) for a, node in zip(own, left, strict=True)]
    return made


def _results(part: Results, rest: Iterator[Node]) -> tuple[list[Node], Structure]:
    """The outputs of some parts, one node for each part, and their structure."""
    if not isinstance(part, PackedResult):
        found = [_results(p, rest) for p in part]
        return [node for nodes, _ in found for node in nodes], TupleOf(tuple(s for _, s in found))
    nodes = [next(rest) for _ in range(part.count)]
    if part.kind == "matrix":
        return nodes, None
    if part.kind == "value" and len(nodes) == 1 and same_dim(size(nodes[0].shape), 1):
        return [*(entries_of(nodes[0]) or (reshape(nodes[0], ()),))], None
    return [flat(nodes)], None


def flat(nodes: Sequence[Node]) -> Node:
    """All elements of some arrays and scalars, as one vector."""
    scalars = [_scalars(node) for node in nodes]
    if all(part is not None for part in scalars):
        found = [s for part in scalars for s in part or ()]
        return pack_scalars(found, (len(found),))
    return concatenate([flatten(node) for node in nodes])


def _scalars(node: Node) -> tuple[Node, ...] | None:
    """The elements of a node, if they are scalar nodes; else None."""
    if not node.shape:
        return (node,)
    if isinstance(node.op, ArrayConstant):
        return tuple(constant(value) for value in node.op.array.ravel().tolist())
    return entries_of(node)

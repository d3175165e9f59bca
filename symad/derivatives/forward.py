"""Forward mode: tangents pushed through a graph, node by node. The rules are in the files of the ops."""

from __future__ import annotations

from symad.core.graph import Graph, Origin, TupleOf
from symad.core.process import without_collecting
from symad.core.signatures import Inputs, Traceable, Wrt
from symad.tracing import as_graph
from symad.tracing.wrt import (
    input_names,
    packing_of,
    tangent_inputs,
    value_labels,
    value_part,
    with_directions,
)
from symad.tracing.wrt import select as select_inputs
from symad.transforms.tangents import dense, push


@without_collecting
def pushforward(f: Traceable, wrt: Wrt | None = None, inputs: Inputs | None = None) -> Graph:
    """The Jacobian-vector product: (x..., x_dot...) -> (y..., y_dot...).

    y_dot = Σ_k (∂f/∂x_k) x_k_dot over the entries of ``wrt`` (all inputs by default), in the shapes of
    the outputs. Cost: at most about three evaluations of ``f``, in constant memory. ``inputs`` as in `trace`.

    Example:
        >>> import sympy, symad
        >>> x, y = sympy.symbols("x y", real=True)
        >>> symad.pushforward([x * y, x + y])(3, 2, 1, 0)
        (6, 5, 2, 1)
    """
    graph = as_graph(f, wrt, inputs)
    selection = select_inputs(graph, wrt)
    nodes = selection.nodes
    dots = tangent_inputs(nodes, "dot", input_names(graph))
    y_dots = push(graph.output_nodes, dict(zip(nodes, dots, strict=True)))
    outputs = graph.output_nodes + tuple(dense(t, y) for t, y in zip(y_dots, graph.output_nodes, strict=True))
    values = value_labels(graph)
    origin = Origin((*values, *(f"{name}_dot" for name in values)))
    structure, name = TupleOf((None,) * len(outputs)), f"{graph.name}_pushforward"
    packing = packing_of(graph, selection, (value_part(graph), value_part(graph)), len(dots))
    return with_directions(graph, dots, selection, "dot", outputs, structure, name, origin, "", packing)

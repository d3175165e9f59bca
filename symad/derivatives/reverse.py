"""Reverse mode: linearize, then transpose. Only linear ops have a transpose rule."""

from __future__ import annotations

from symad.core.arguments import PackedResult
from symad.core.graph import Graph, Origin, TupleOf
from symad.core.process import without_collecting
from symad.core.signatures import Inputs, Traceable, Wrt
from symad.tracing import as_graph
from symad.tracing.wrt import (
    cotangent_inputs,
    input_names,
    packing_of,
    scalar_output,
    select,
    value_labels,
    value_part,
    with_directions,
)
from symad.transforms.cotangents import gradient_nodes, pull
from symad.transforms.tangents import dense


@without_collecting
def pullback(f: Traceable, wrt: Wrt | None = None, inputs: Inputs | None = None) -> Graph:
    """The vector-Jacobian product: (x..., y_bar...) -> (y..., x_bar...).

    x_k_bar = Σ_outputs (∂y/∂x_k)ᵀ y_bar in the shape of x_k. Cost: at most about four evaluations of
    ``f``, for any number of inputs; every intermediate value that a derivative needs is kept.
    ``inputs`` as in `trace`.

    Example:
        >>> import sympy, symad
        >>> x, y = sympy.symbols("x y", real=True)
        >>> symad.pullback([x * y, x + y])(3, 2, 1, 0)
        (6, 5, 2, 3)
    """
    graph = as_graph(f, wrt, inputs)
    selection = select(graph, wrt)
    nodes = selection.nodes
    bars = cotangent_inputs(graph.output_nodes, input_names(graph))
    x_bars = pull(graph.output_nodes, bars, nodes)
    found, entries = selection.packed([dense(b, x) for b, x in zip(x_bars, nodes, strict=True)])
    structure = TupleOf((*(None,) * len(bars), *entries))
    origin = Origin((*value_labels(graph), *selection.labels("bar")))
    packing = packing_of(graph, selection, (value_part(graph), PackedResult("vector", len(found))), len(bars))
    outputs, name = graph.output_nodes + found, f"{graph.name}_pullback"
    return with_directions(graph, bars, None, "bar", outputs, structure, name, origin, "", packing)


@without_collecting
def value_and_gradient(f: Traceable, wrt: Wrt | None = None, inputs: Inputs | None = None) -> Graph:
    """(inputs...) -> (value, gradient of each wrt entry...) of a scalar function, in one sweep.

    The gradient by an argument that is a dict, list or dataclass of arrays has this structure. ``inputs`` as
    in `trace`.

    Example:
        >>> import sympy, symad
        >>> x, y = sympy.symbols("x y", real=True)
        >>> symad.value_and_gradient(x**2 * y)(3, 2)
        (18, 12, 9)
    """
    graph = as_graph(f, wrt, inputs)
    selection = select(graph, wrt)
    nodes = selection.nodes
    value = scalar_output(graph, "a gradient")
    bars = gradient_nodes(value, nodes)
    found, entries = selection.packed([dense(b, x) for b, x in zip(bars, nodes, strict=True)])
    origin = Origin((graph.name, *selection.labels("bar")), value, nodes)
    packing = packing_of(graph, selection, (PackedResult("value"), PackedResult("vector", len(found))))
    structure, name = TupleOf((None, *entries)), f"{graph.name}_value_and_gradient"
    return graph.with_outputs((value, *found), structure, name, origin, "", packing)

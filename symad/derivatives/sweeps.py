"""One sweep: tangents pushed forward through a graph, cotangents pulled back; value and gradient."""

from __future__ import annotations

from symad.core.arguments import PackedResult
from symad.core.elsewhere import told_arguments
from symad.core.graph import Graph, Origin, TupleOf
from symad.core.process import without_collecting
from symad.core.signatures import Inputs, Traceable, Wrt
from symad.tracing import as_graph
from symad.tracing.wrt import (
    cotangent_inputs,
    differentiated,
    input_names,
    packing_of,
    scalar_output,
    tangent_inputs,
    value_labels,
    value_part,
    with_directions,
)
from symad.transforms.cotangents import gradient_nodes, pull
from symad.transforms.tangents import dense, push

# ---- reverse mode --------------------------------------------------------------------------------


@without_collecting
def pullback(f: Traceable, wrt: Wrt | None = None, inputs: Inputs | None = None) -> Graph:
    """The vector-Jacobian product: (x..., y_bar...) -> (y..., x_bar...).

    x_k_bar = Σ_outputs (∂y/∂x_k)ᵀ y_bar in the shape of x_k. Cost: at most about four evaluations of
    ``f``, for any number of inputs; every intermediate value that a derivative needs is kept.
    ``inputs`` as in `trace`.

    Returns:
        A graph with the arguments of ``f``, then one cotangent for each output.

    Raises:
        TraceError: ``f`` cannot be traced, or is a Python function without ``inputs``.
        DerivativeError: ``wrt`` names no input or one twice, or a function has no derivative.

    Example:
        >>> import sympy, symad
        >>> x, y = sympy.symbols("x y", real=True)
        >>> symad.pullback([x * y, x + y])(3, 2, 1, 0)
        (6, 5, 2, 3)
    """
    graph = as_graph(f, wrt, inputs)
    selection = differentiated(graph, wrt)
    nodes = selection.nodes
    bars = cotangent_inputs(graph.output_nodes, input_names(graph))
    x_bars = pull(graph.output_nodes, bars, nodes)
    found, entries = selection.packed([dense(b, x) for b, x in zip(x_bars, nodes, strict=True)])
    structure = TupleOf((*(None,) * len(bars), *entries))
    origin = Origin((*value_labels(graph), *selection.labels("bar")))
    packing = packing_of(graph, selection, (value_part(graph), PackedResult("vector", len(found))), len(bars))
    outputs, name = graph.output_nodes + found, f"{graph.name}_pullback"
    return with_directions(graph, bars, None, "bar", outputs, structure, name, origin, "", packing)


@told_arguments()
@without_collecting
def value_and_gradient(f: Traceable, wrt: Wrt | None = None, inputs: Inputs | None = None) -> Graph:
    """(inputs...) -> (value, gradient of each wrt entry...) of a scalar function, in one sweep.

    The gradient by an argument that is a dict, list or dataclass of arrays has this structure. ``inputs`` as
    in `trace`.

    Returns:
        A graph with the arguments of ``f``.

    Raises:
        TraceError: ``f`` cannot be traced, or is a Python function without ``inputs``.
        DerivativeError: ``f`` is not scalar, ``wrt`` names no input or one twice, or a function has no
            derivative.

    Example:
        >>> import sympy, symad
        >>> x, y = sympy.symbols("x y", real=True)
        >>> symad.value_and_gradient(x**2 * y)(3, 2)
        (18, 12, 9)
    """
    graph = as_graph(f, wrt, inputs)
    selection = differentiated(graph, wrt)
    nodes = selection.nodes
    value = scalar_output(graph, "a gradient")
    bars = gradient_nodes(value, nodes)
    found, entries = selection.packed([dense(b, x) for b, x in zip(bars, nodes, strict=True)])
    origin = Origin((graph.name, *selection.labels("bar")), value, nodes)
    packing = packing_of(graph, selection, (PackedResult("value"), PackedResult("vector", len(found))))
    structure, name = TupleOf((None, *entries)), f"{graph.name}_value_and_gradient"
    return graph.with_outputs((value, *found), structure, name, origin, "", packing)


@without_collecting
def pushforward(f: Traceable, wrt: Wrt | None = None, inputs: Inputs | None = None) -> Graph:
    """The Jacobian-vector product: (x..., x_dot...) -> (y..., y_dot...).

    y_dot = Σ_k (∂f/∂x_k) x_k_dot over the entries of ``wrt`` (all inputs by default), in the shapes of
    the outputs. Cost: at most about three evaluations of ``f``, in constant memory. ``inputs`` as in `trace`.

    Returns:
        A graph with the arguments of ``f``, then one direction for each entry of ``wrt``.

    Raises:
        TraceError: ``f`` cannot be traced, or is a Python function without ``inputs``.
        DerivativeError: ``wrt`` names no input or one twice, or a function has no derivative.

    Example:
        >>> import sympy, symad
        >>> x, y = sympy.symbols("x y", real=True)
        >>> symad.pushforward([x * y, x + y])(3, 2, 1, 0)
        (6, 5, 2, 1)
    """
    graph = as_graph(f, wrt, inputs)
    selection = differentiated(graph, wrt)
    nodes = selection.nodes
    dots = tangent_inputs(nodes, "dot", input_names(graph))
    y_dots = push(graph.output_nodes, dict(zip(nodes, dots, strict=True)))
    outputs = graph.output_nodes + tuple(dense(t, y) for t, y in zip(y_dots, graph.output_nodes, strict=True))
    values = value_labels(graph)
    origin = Origin((*values, *(f"{name}_dot" for name in values)))
    structure, name = TupleOf((None,) * len(outputs)), f"{graph.name}_pushforward"
    packing = packing_of(graph, selection, (value_part(graph), value_part(graph)), len(dots))
    return with_directions(graph, dots, selection, "dot", outputs, structure, name, origin, "", packing)

"""Recomputation: values inside a function are not kept for its derivatives, but computed again."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from symad.core.arrays import Array
from symad.core.graph import Graph
from symad.core.signatures import Inputs, Traceable
from symad.core.structures import field_names
from symad.higher_order.remat import remat as remat_nodes
from symad.ops.basic.sources import fresh_input
from symad.tracing import as_graph
from symad.tracing.proxies.proxy import Proxy
from symad.tracing.proxies.sessions import body
from symad.tracing.proxies.wrapped import number


def remat(f: Traceable, inputs: Inputs | None = None) -> Graph | Callable[..., object]:
    """``f`` with the same values and derivatives in less memory: its intermediate values are computed twice.

    Without `remat`, reverse mode keeps every value that a derivative reads from the forward sweep until the
    backward sweep reaches it. With it, only the arguments of ``f`` are kept, and the derivative runs ``f``
    again (Griewank and Walther 2008, chapter 12). A chain of n such functions keeps n states.

    Args:
        f: a Python function of arrays, or of tuples, lists and dicts of arrays, which returns such values; it
            is used inside functions that are traced. Or a Graph, or a SymPy object, which becomes a Graph.
        inputs: order and grouping of the arguments, as in `trace`; with them a Python function becomes a
            Graph, too.

    Returns:
        A function with the arguments of ``f``, or a Graph.

    Raises:
        TraceError: ``f`` cannot be traced; the function that is returned raises it where it is called.

    Example:
        >>> import numpy as np, symad
        >>> layer = symad.remat(lambda u: np.tanh(np.sin(u)))
        >>> loss = symad.trace(lambda u: np.sum(layer(layer(u))), [(3,)])
        >>> symad.gradient(loss)(np.zeros(3))
        array([1., 1., 1.])
    """
    if inputs is not None or not callable(f) or isinstance(f, Graph):
        return _graph(as_graph(f, None, inputs))

    inside = f"the part {getattr(f, '__name__', 'f')} of remat"

    @wraps(f)
    def part(*args: Any, **options: Any) -> object:
        given = [number(v) for v in _leaves((args, options)) if isinstance(v, Proxy)]
        if not given:
            return f(*args, **options)
        fresh = [fresh_input(node.shape) for node in given]
        stand_ins = iter(fresh)
        with body(inside):
            hidden, named = _each(
                lambda value: Proxy(next(stand_ins)) if isinstance(value, Proxy) else value, (args, options)
            )
            made = f(*hidden, **named)
            outputs = [number(v) for v in _leaves(made)]
        values = iter(remat_nodes(fresh, outputs, given))
        return _each(lambda _: Proxy(next(values)), made)

    return part


def _graph(graph: Graph) -> Graph:
    """The outputs of a graph as the value of one op."""
    from symad.core.graph import rebuild

    fresh = [fresh_input(node.shape) for node in graph.input_nodes]
    outputs = rebuild(graph, dict(zip(graph.input_nodes, fresh, strict=True)))
    return graph.with_outputs(remat_nodes(fresh, outputs, graph.input_nodes), graph.structure)


def _each(change: Callable[[Any], Any], value: Any) -> Any:
    """A value in which every leaf of its tuples, lists, dicts and dataclasses is changed."""
    if isinstance(value, dict):
        return {key: _each(change, item) for key, item in value.items()}
    if names := field_names(type(value)):
        return type(value)(**{name: _each(change, getattr(value, name)) for name in names})
    if isinstance(value, (tuple, list)):
        return type(value)(_each(change, item) for item in value)
    return change(value)


def _leaves(value: Any) -> list[Array | float]:
    """The leaves of tuples, lists and dicts, in order."""
    found: list[Any] = []
    _each(found.append, value)
    return found
